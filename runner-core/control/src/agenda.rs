//! When something is due, and for whom: one moment per subject, the earliest of its own.

use crate::id::{InstanceId, JobId, RunnerId};
use std::collections::{BTreeMap, BTreeSet};
use step_model::time::{Deadline, Now};

/// What an event can touch, and what is moved on afterwards.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Job(JobId),
    Instance(InstanceId),
    Runner(RunnerId),
    /// The process as a whole: its end.
    Process,
}

#[derive(Debug, Default)]
pub(crate) struct Agenda {
    by_time: BTreeSet<(Deadline, Subject)>,
    by_subject: BTreeMap<Subject, Deadline>,
}

impl Agenda {
    /// The next moment of this subject. `None`: it waits for no time at all.
    pub fn set(&mut self, subject: &Subject, due: Option<Deadline>) {
        let before = match due {
            Some(due) => self.by_subject.insert(subject.clone(), due),
            None => self.by_subject.remove(subject),
        };
        if before == due {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, subject.clone()));
        }
        if let Some(due) = due {
            self.by_time.insert((due, subject.clone()));
        }
    }

    /// Takes one whose moment has come.
    pub fn pop_due(&mut self, now: Now) -> Option<Subject> {
        let (deadline, _) = self.by_time.first().filter(|(deadline, _)| deadline.has_passed(now))?;
        debug_assert!(deadline.has_passed(now));
        let (_, subject) = self.by_time.pop_first()?;
        self.by_subject.remove(&subject);
        Some(subject)
    }

    pub fn next(&self) -> Option<Deadline> {
        self.by_time.first().map(|(deadline, _)| *deadline)
    }
}
