//! One environment.

use crate::attempt::Attempt;
use crate::event::InstanceState;
use crate::id::{EffectId, JobId};
use crate::settings::Environments;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// ```text
///  asked for --listed--> Creating --> Running --Connected--> up <--.
///                            |           |                   |     | Connected
///                            |           |       stream or dial    |
///                            |           |          broke    v     |
///                            |           '----------------> suspect'   no slots are handed out; inspected and dialled again
///                            '-------------> retired: no new jobs; removed when the last one is closed --> Deleting --> gone
/// ```
#[derive(Debug)]
pub(crate) struct Instance {
    pub state: InstanceState,
    /// An update has listed it, or the provider named it. Until then it is only known from a record.
    pub is_listed: bool,
    pub contact: Contact,
    pub connect: Attempt,
    pub inspect: Attempt,
    /// Jobs that hold a slot: placed, running, or not yet closed.
    pub jobs: BTreeSet<JobId>,
    /// Jobs that the agent holds and nobody here may touch.
    pub foreign: u32,
    /// Jobs that it was given so far.
    pub uses: u32,
    /// Since when it has been usable, on the monotonic clock.
    pub ready_since: Option<Duration>,
    /// Since when it has had no job: since its last one, or since it has been usable.
    pub idle_since: Option<Duration>,
    /// It was there at the start, and no record tells of it.
    pub is_preexisting: bool,
    /// The job it was made for.
    pub for_job: Option<JobId>,
    pub retired: Option<Retired>,
    /// Its removal was asked for.
    pub is_leaving: bool,
    /// What was asked for before this cannot know it.
    pub known_since: EffectId,
    /// When it must have become what it is expected to become: listed as running, or connected.
    pub patience: Option<Deadline>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contact {
    /// Nobody has reached it so far.
    Never,
    Up,
    /// The connection broke. `is_alive`: the provider has said since that it lives.
    Suspect {
        is_alive: bool,
    },
}

/// Why an environment gets no more jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retired {
    NeverCreated,
    NeverReady,
    Unreachable,
    UsedUp,
    /// More than there should be.
    Surplus,
    /// It has had no job for longer than idle time, and is not needed to have enough idle ones.
    Idle,
    /// It was there at the start, and nobody knows what happened on it.
    NoData,
    /// Made for a job that does not need it any more, or for nobody.
    Unclaimed,
    ShuttingDown,
}

impl Instance {
    pub fn new(state: InstanceState, known_since: EffectId) -> Self {
        Self {
            state,
            is_listed: false,
            contact: Contact::Never,
            connect: Attempt::default(),
            inspect: Attempt::default(),
            jobs: BTreeSet::new(),
            foreign: 0,
            uses: 0,
            ready_since: None,
            idle_since: None,
            is_preexisting: false,
            for_job: None,
            retired: None,
            is_leaving: false,
            known_since,
            patience: None,
        }
    }

    pub fn is_up(&self) -> bool {
        self.contact == Contact::Up
    }

    /// The connection broke: no slots are handed out before it has been proven again. `patience`: until when it may take.
    pub fn suspect(&mut self, patience: Deadline) {
        if self.is_up() {
            self.contact = Contact::Suspect { is_alive: false };
            self.connect.hurry();
            self.patience = Some(patience);
        }
    }

    /// The connection is down and nobody has said that the environment lives.
    pub fn may_be_gone(&self) -> bool {
        self.contact == Contact::Suspect { is_alive: false }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.foreign == 0
    }

    fn is_good(&self) -> bool {
        self.retired.is_none() && !self.is_leaving && self.state != InstanceState::Deleting
    }

    /// Jobs that it can be given now.
    pub fn free(&self, settings: &Environments) -> u32 {
        let is_usable = self.is_up() && self.is_good() && self.state == InstanceState::Running;
        if is_usable { self.places(settings) } else { 0 }
    }

    /// An agent answers there for the first time, or a job has left it.
    pub fn note_idle(&mut self, now: Now) {
        if self.is_up() {
            self.ready_since.get_or_insert(now.monotonic);
        }
        if self.is_empty() && self.ready_since.is_some() {
            self.idle_since.get_or_insert(now.monotonic);
        } else {
            self.idle_since = None;
        }
    }

    /// Since when it could have been removed for want of jobs.
    pub fn removable_since(&self) -> Option<Duration> {
        self.idle_since.filter(|_| self.is_empty() && self.is_good() && self.for_job.is_none())
    }

    /// Free slots that cannot be given out. Those of one that is not ready so far are coming.
    pub fn unavailable(&self, settings: &Environments) -> u32 {
        if self.contact == Contact::Never {
            return 0;
        }
        let used = self.used();
        settings.capacity().saturating_sub(used).saturating_sub(self.free(settings))
    }

    /// Slots that are taken.
    pub fn used(&self) -> u32 {
        u32::try_from(self.jobs.len()).unwrap_or(u32::MAX).saturating_add(self.foreign)
    }

    /// Jobs that it can be given when it is ready, while it is not.
    pub fn coming(&self, settings: &Environments) -> u32 {
        let is_booting = self.contact == Contact::Never && self.is_good() && self.connect.failures() == 0;
        if is_booting { self.places(settings) } else { 0 }
    }

    fn places(&self, settings: &Environments) -> u32 {
        settings.capacity().saturating_sub(self.used()).min(settings.uses().saturating_sub(self.uses))
    }

    /// Counts as one of those that there should be.
    pub fn is_counted(&self) -> bool {
        self.is_good()
    }

    /// It was made for a job that does not hold it yet.
    pub fn is_awaited(&self) -> bool {
        self.for_job.is_some() && self.jobs.is_empty()
    }

    /// No new jobs from now on. One that was made for a job lets that job ask again.
    pub fn retire(&mut self, why: Retired) {
        self.retired.get_or_insert(why);
        if self.jobs.is_empty() {
            self.for_job = None;
        }
    }

    /// Nothing keeps it, and nobody has asked for its removal yet.
    pub fn is_removable(&self) -> bool {
        self.retired.is_some() && self.is_empty() && !self.is_leaving && self.state != InstanceState::Deleting
    }

    /// The provider will soon say something else about it.
    pub fn is_changing(&self) -> bool {
        self.state != InstanceState::Running || self.is_leaving || !self.is_listed
    }

    /// Somebody should try to reach it.
    pub fn wants_contact(&self) -> bool {
        let is_needed = self.retired.is_none() || !self.jobs.is_empty();
        !self.is_up() && self.is_listed && self.state == InstanceState::Running && !self.is_leaving && is_needed
    }

    pub fn due(&self) -> Option<Deadline> {
        [self.connect.due(), self.inspect.due(), self.patience].into_iter().flatten().min()
    }

    /// What waited for a time that has come, waits no more.
    pub fn refresh(&mut self, now: Now) {
        self.connect.refresh(now);
        self.inspect.refresh(now);
    }
}
