//! A GitLab of bursts, cancels, repeated jobs and lost answers.

use super::{Chaos, Time};
use crate::event::{Acknowledgement, Offer, PollAnswer, ReportAnswer, ServerWord};
use crate::id::{JobId, RunnerId};
use crate::record::Requirements;
use crate::report::Report;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// After so long without a sign, a job that was claimed goes to somebody else.
const CLAIM: Time = 120_000;
/// After so long without a sign, a job that runs is given up.
const STUCK: Time = 3_600_000;

#[derive(Debug)]
pub(super) struct Server {
    pub jobs: BTreeMap<JobId, ServerJob>,
    /// The second phase of the commit: a job that was given out is claimed until `running` comes.
    pub is_two_phase: bool,
    /// What was given to a runner that still knows what it was given.
    pub given: BTreeSet<JobId>,
}

#[derive(Debug)]
pub(super) struct ServerJob {
    pub state: State,
    /// When it is put into the queue.
    pub from: Time,
    pub timeout: Time,
    /// The last sign of life.
    pub heard: Time,
    /// What was lost before any record could be durable cannot be found again.
    pub is_excused: bool,
    pub finals: u32,
    /// Cancelled or not: no runner has said that it runs.
    pub is_claimed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Claimed,
    Running,
    /// A user cancelled it; `running` says whether a runner was told to run it.
    Canceling,
    Done(Done),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    Reported(Report),
    /// Cancelled in the queue.
    Canceled,
    /// The server ended it, or the user erased it.
    Aborted,
    /// Nobody was heard for an hour.
    Stuck,
}

impl ServerJob {
    fn is_given_out(&self) -> bool {
        matches!(self.state, State::Claimed | State::Running)
    }
}

impl Server {
    /// What time does to jobs.
    pub fn tick(&mut self, now: Time) {
        for job in self.jobs.values_mut() {
            match job.state {
                State::Claimed if now > job.heard + CLAIM => job.state = State::Queued,
                State::Canceling if job.is_claimed && now > job.heard + CLAIM => job.state = State::Done(Done::Canceled),
                State::Running | State::Canceling if now > job.heard + STUCK => job.state = State::Done(Done::Stuck),
                _ => {}
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.jobs.values().all(|job| matches!(job.state, State::Done(_)))
    }

    pub fn poll(&mut self, runner: &RunnerId, now: Time, chaos: &mut Chaos) -> PollAnswer {
        self.tick(now);
        if chaos.happens(3) {
            return PollAnswer::Refused { reason: "forbidden".into() };
        }
        if chaos.happens(5)
            && let Some((id, job)) =
                self.jobs.iter().find(|(id, job)| self.given.contains(id) && id.runner == *runner && job.is_given_out())
        {
            // The server repeats itself.
            return PollAnswer::Job(Box::new(offer(id, job)));
        }
        let is_two_phase = self.is_two_phase;
        let next = self.jobs.iter_mut().find(|(id, job)| id.runner == *runner && job.state == State::Queued && job.from <= now);
        let Some((id, job)) = next else { return PollAnswer::Nothing };
        job.is_claimed = is_two_phase;
        job.state = if is_two_phase { State::Claimed } else { State::Running };
        job.heard = now;
        self.given.insert(id.clone());
        PollAnswer::Job(Box::new(offer(id, job)))
    }

    pub fn pending(&mut self, id: &JobId, now: Time) -> Acknowledgement {
        self.tick(now);
        let Some(job) = self.jobs.get_mut(id) else { return Acknowledgement::Aborted };
        match job.state {
            State::Claimed => {
                job.heard = now;
                Acknowledgement::Good
            }
            State::Running | State::Queued => Acknowledgement::Refused { reason: "400".into() },
            State::Canceling => Acknowledgement::Canceling,
            State::Done(_) => Acknowledgement::Aborted,
        }
    }

    pub fn running(&mut self, id: &JobId, now: Time) -> Acknowledgement {
        self.tick(now);
        let Some(job) = self.jobs.get_mut(id) else { return Acknowledgement::Aborted };
        job.heard = now;
        match job.state {
            State::Claimed | State::Running => {
                job.is_claimed = false;
                job.state = State::Running;
                Acknowledgement::Good
            }
            State::Queued => Acknowledgement::Refused { reason: "nobody is waiting".into() },
            State::Canceling => {
                job.is_claimed = false;
                Acknowledgement::Canceling
            }
            State::Done(_) => Acknowledgement::Aborted,
        }
    }

    /// What an answer to a touch would say.
    pub fn touch(&mut self, id: &JobId, now: Time) -> Option<ServerWord> {
        self.tick(now);
        let job = self.jobs.get_mut(id)?;
        match job.state {
            State::Running => {
                job.heard = now;
                None
            }
            State::Canceling => {
                job.heard = now;
                Some(ServerWord::Canceling)
            }
            State::Queued | State::Claimed => None,
            State::Done(_) => Some(ServerWord::Aborted),
        }
    }

    pub fn finish(&mut self, id: &JobId, report: &Report, now: Time) -> ReportAnswer {
        self.tick(now);
        let Some(job) = self.jobs.get_mut(id) else { return ReportAnswer::Unwanted };
        match job.state {
            State::Running | State::Canceling => {
                job.state = State::Done(Done::Reported(report.clone()));
                job.finals += 1;
                ReportAnswer::Delivered
            }
            State::Done(_) => ReportAnswer::Unwanted,
            State::Queued | State::Claimed => panic!("{id} is reported and was never accepted"),
        }
    }

    pub fn cancel(&mut self, id: &JobId) {
        if let Some(job) = self.jobs.get_mut(id) {
            match job.state {
                State::Queued => job.state = State::Done(Done::Canceled),
                State::Claimed | State::Running => job.state = State::Canceling,
                State::Canceling | State::Done(_) => {}
            }
        }
    }

    pub fn abort(&mut self, id: &JobId) {
        if let Some(job) = self.jobs.get_mut(id)
            && !matches!(job.state, State::Done(_))
        {
            job.state = State::Done(Done::Aborted);
        }
    }
}

fn offer(id: &JobId, job: &ServerJob) -> Offer {
    let requirements = Requirements([("image".to_owned(), format!("image-{}", id.number))].into());
    Offer { number: id.number, timeout: Duration::from_millis(job.timeout), requirements, fault: None }
}
