//! One job, from its offer until nobody needs to know of it any more.

use crate::attempt::Attempt;
use crate::id::{EffectId, InstanceName};
use crate::record::{Record, Stage, StopReason};
use crate::report::Report;
use std::time::Duration;
use step_model::time::{Deadline, Now, Timestamp};

/// How often a server hears that a job is being prepared: well under the two minutes after which it takes the job away.
pub(crate) const BEAT: Duration = Duration::from_secs(30);
/// How long a server waits for a beat or for `running` before it takes the job away.
pub(crate) const BEAT_WINDOW: Duration = Duration::from_secs(120);
/// An agent enforces a job's time limit itself; after so much more it is ended from here.
pub(crate) const LIMIT_GRACE: Duration = Duration::from_secs(60);
/// A job that is cancelled may still run what always runs: five minutes is what GitLab gives `after_script`.
pub(crate) const CANCEL_PATIENCE: Duration = Duration::from_secs(6 * 60);
/// How long a killed job may take to say that it has ended.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a job without contact waits for its environment's fate.
pub(crate) const LOSS_PATIENCE: Duration = Duration::from_secs(60);
/// How long an ended job's place is kept for an agent that cannot be reached.
pub(crate) const CLOSE_PATIENCE: Duration = Duration::from_secs(5 * 60);
/// How long a server that does not take a report is asked again.
pub(crate) const REPORT_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// So often may an agent be too busy for a job before another environment is looked for.
pub(crate) const BUSY_LIMIT: u32 = 3;

#[derive(Debug)]
pub(crate) struct Job {
    /// What should be durable. Each change that matters raises `revision`.
    pub record: Record,
    pub phase: Phase,
    /// Its place in the queue: earlier offers first, also when they come back to it.
    pub arrival: u64,
    pub save: Save,
    pub beat: Attempt,
    pub accept: Attempt,
    pub provide: Attempt,
    pub dispatch: Attempt,
    pub follow: Attempt,
    pub cancel: Attempt,
    pub close: Attempt,
    pub report: Attempt,
    pub server: ServerMind,
    /// Until when the server waits for a sign of life, as far as is known.
    pub window: Deadline,
    /// Until when it may wait for an environment.
    pub acquire_by: Deadline,
    /// When its time limit and the grace for it have passed.
    pub ends_at: Option<Deadline>,
    pub stop: Option<Stop>,
    /// Without contact: when it is given up unless its environment is known to live.
    pub lost_by: Option<Deadline>,
    /// Its environment is gone, and why.
    pub loss: Option<String>,
    /// What was asked for before this cannot know whether the agent has it.
    pub told_since: EffectId,
    /// For people.
    pub since: Timestamp,
    pub bytes: u64,
    /// What went wrong last, while it is tried again.
    pub trouble: Option<String>,
}

/// ```text
///  offered --> Waiting --slot--> Placed --accepted, record durable--> Dispatching --> Running --> Ended --> forgotten
///                 ^                |  ^                                  |    ^          |          ^
///                 '---lost early---'  '-----------unreachable------------'    '--broken--'          |
///                 any ----------------canceled, aborted, timed out, lost, given up------------------'
/// ```
#[derive(Debug)]
pub(crate) enum Phase {
    /// In the queue of its runner.
    Waiting,
    /// Holds a slot. `is_uncertain`: an agent there may have been asked to run it, and whether it does is not known yet.
    Placed {
        instance: InstanceName,
        is_uncertain: bool,
    },
    /// The agent is being asked.
    Dispatching {
        instance: InstanceName,
    },
    /// The agent has it.
    Running {
        instance: InstanceName,
    },
    Ended(Ended),
}

/// What is left to do for a job that has ended, or will not run.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: the server wants nothing, or has it.
    pub report: Option<Report>,
    /// Where an agent may still hold it, and a slot is taken.
    pub instance: Option<InstanceName>,
    pub close_by: Deadline,
    pub report_by: Deadline,
}

/// What is known of how the server takes jobs that are being prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerMind {
    Unknown,
    /// A beat was acknowledged: it waits for `running`, and takes the job back if nothing comes.
    TwoPhase,
    /// It refused a beat within the window: the job counts as running since its offer.
    Legacy,
}

#[derive(Debug)]
pub(crate) struct Stop {
    pub reason: StopReason,
    /// When a kill follows. `None`: at once, or it has been asked for.
    pub kill_at: Option<Deadline>,
    /// When nobody waits for the agent any more.
    pub give_up_at: Deadline,
    /// The agent has heard what it should do now.
    pub is_sent: bool,
}

/// Which revision of the record is durable.
#[derive(Debug, Default)]
pub(crate) struct Save {
    revision: u64,
    asked: u64,
    asked_stage: Option<Stage>,
    saved: u64,
    /// The stage that a later process would find.
    pub durable: Option<Stage>,
    pub attempt: Attempt,
}

impl Save {
    /// Of a record that was found in the store.
    pub fn found(stage: Stage) -> Self {
        Self { durable: Some(stage), ..Self::default() }
    }

    pub fn changed(&mut self) {
        self.revision += 1;
    }

    pub fn is_due(&self) -> bool {
        self.saved < self.revision
    }

    pub fn asked(&mut self, stage: &Stage) {
        self.asked = self.revision;
        self.asked_stage = Some(stage.clone());
    }

    pub fn succeeded(&mut self) {
        self.saved = self.asked;
        self.durable = self.asked_stage.take();
        self.attempt.succeeded();
    }
}

impl Job {
    pub fn new(record: Record, phase: Phase, arrival: u64, acquire_timeout: Duration, now: Now) -> Self {
        let mut beat = Attempt::default();
        // A server waits two minutes from the offer on, so most jobs need no beat at all.
        beat.not_before(Deadline::after(now, BEAT));
        Self {
            since: now.wall,
            record,
            phase,
            arrival,
            save: Save::default(),
            beat,
            accept: Attempt::default(),
            provide: Attempt::default(),
            dispatch: Attempt::default(),
            follow: Attempt::default(),
            cancel: Attempt::default(),
            close: Attempt::default(),
            report: Attempt::default(),
            server: ServerMind::Unknown,
            window: Deadline::after(now, BEAT_WINDOW),
            acquire_by: Deadline::after(now, acquire_timeout),
            ends_at: None,
            stop: None,
            lost_by: None,
            loss: None,
            told_since: EffectId(0),
            bytes: 0,
            trouble: None,
        }
    }

    /// Where it holds a slot.
    pub fn instance(&self) -> Option<&InstanceName> {
        match &self.phase {
            Phase::Waiting => None,
            Phase::Placed { instance, .. } | Phase::Dispatching { instance } | Phase::Running { instance } => Some(instance),
            Phase::Ended(ended) => ended.instance.as_ref(),
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Moves on: the record says so too.
    pub fn enter(&mut self, phase: Phase, now: Now) {
        let stage = match &phase {
            Phase::Waiting => Stage::Offered,
            Phase::Placed { instance, .. } | Phase::Dispatching { instance } => Stage::Dispatching { instance: instance.clone() },
            Phase::Running { instance } => Stage::Running { instance: instance.clone() },
            Phase::Ended(ended) => Stage::Ended { report: ended.report.clone(), instance: ended.instance.clone() },
        };
        if stage != self.record.stage {
            self.record.stage = stage;
            self.save.changed();
        }
        self.phase = phase;
        self.since = now.wall;
    }

    pub fn accepted(&mut self) {
        // Not worth a write of its own: a later process that does not know it asks the server again, which does no harm.
        self.record.accepted = true;
    }

    /// A server that wants nothing more wins over all other reasons; else the first reason stays.
    pub fn stop(&mut self, reason: StopReason, now: Now) {
        let stands = self.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::Aborted || reason != StopReason::Aborted);
        if stands || self.has_ended() {
            return;
        }
        let patience = if reason == StopReason::Canceled { CANCEL_PATIENCE } else { Duration::ZERO };
        self.stop = Some(Stop {
            reason,
            kill_at: (!patience.is_zero()).then(|| Deadline::after(now, patience)),
            give_up_at: Deadline::after(now, patience + KILL_PATIENCE),
            is_sent: false,
        });
        self.cancel.hurry();
        self.record.stopping = Some(reason);
        self.save.changed();
    }

    /// What waited for a time that has come, waits no more.
    pub fn refresh(&mut self, now: Now) {
        for attempt in self.attempts_mut() {
            attempt.refresh(now);
        }
    }

    pub fn due(&self) -> Option<Deadline> {
        let retries = match &self.phase {
            Phase::Waiting => [Some(&self.beat), Some(&self.accept), Some(&self.provide), None],
            Phase::Placed { .. } => [Some(&self.beat), Some(&self.accept), Some(&self.dispatch), None],
            Phase::Dispatching { .. } => [None; 4],
            Phase::Running { .. } => [Some(&self.follow), Some(&self.cancel), None, None],
            Phase::Ended(_) => [Some(&self.close), Some(&self.report), Some(&self.accept), None],
        };
        let retries = retries.into_iter().flatten().chain([&self.save.attempt]).filter_map(Attempt::due).min();
        let limits = match &self.phase {
            Phase::Waiting => [Some(self.acquire_by), None, None, None],
            Phase::Placed { .. } => [self.lost_by, Some(self.acquire_by), None, None],
            Phase::Dispatching { .. } => [None; 4],
            Phase::Running { .. } => {
                let stop = self.stop.as_ref();
                [self.lost_by, stop.and_then(|stop| stop.kill_at), stop.map(|stop| stop.give_up_at).or(self.ends_at), None]
            }
            Phase::Ended(ended) => {
                [ended.instance.is_some().then_some(ended.close_by), ended.report.is_some().then_some(ended.report_by), None, None]
            }
        };
        limits.into_iter().flatten().chain(retries).min()
    }

    fn attempts_mut(&mut self) -> [&mut Attempt; 9] {
        [
            &mut self.save.attempt,
            &mut self.beat,
            &mut self.accept,
            &mut self.provide,
            &mut self.dispatch,
            &mut self.follow,
            &mut self.cancel,
            &mut self.close,
            &mut self.report,
        ]
    }
}
