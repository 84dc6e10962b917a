//! Outcomes that concern one job.

use super::Controller;
use crate::attempt::Attempt;
use crate::backoff::Backoff;
use crate::event::{Acknowledgement, DispatchFault, FollowEnd, ReportAnswer, ServerWord};
use crate::id::{EffectId, JobId};
use crate::job::Job;
use crate::record::StopReason;
use crate::turn::{Fate, Turn};

impl Controller {
    pub(super) fn on_saved(&mut self, id: EffectId, job: &JobId, outcome: Result<(), String>) {
        let handle = |turn: &mut Turn<'_>| match outcome {
            Ok(()) => turn.job.save.succeeded(),
            Err(reason) => {
                turn.job.trouble = Some(reason);
                turn.desk.failed(&mut turn.job.save.attempt, Backoff::STORE);
            }
        };
        self.with_outcome(id, job, |job| &mut job.save.attempt, handle);
    }

    pub(super) fn on_beaten(&mut self, id: EffectId, job: &JobId, answer: Acknowledgement) {
        self.with_outcome(id, job, |job| &mut job.beat, |turn| turn.on_beaten(answer));
    }

    pub(super) fn on_accepted(&mut self, id: EffectId, job: &JobId, answer: Acknowledgement) {
        self.with_outcome(id, job, |job| &mut job.accept, |turn| turn.on_accepted(answer));
    }

    pub(super) fn on_dispatched(&mut self, id: EffectId, job: &JobId, outcome: Result<(), DispatchFault>) {
        if outcome == Err(DispatchFault::Fenced) {
            return self.on_fenced(id, job, |job| &mut job.dispatch);
        }
        self.with_outcome(id, job, |job| &mut job.dispatch, |turn| turn.on_dispatched(outcome));
    }

    pub(super) fn on_followed(&mut self, id: EffectId, job: &JobId, end: FollowEnd) {
        if end == FollowEnd::Fenced {
            return self.on_fenced(id, job, |job| &mut job.follow);
        }
        self.with_outcome(id, job, |job| &mut job.follow, |turn| turn.on_followed(end));
    }

    pub(super) fn on_cancel_sent(&mut self, id: EffectId, job: &JobId, outcome: Result<(), String>) {
        self.with_outcome(id, job, |job| &mut job.cancel, |turn| turn.on_cancel_sent(outcome));
    }

    pub(super) fn on_closed(&mut self, id: EffectId, job: &JobId, outcome: Result<(), String>) {
        self.with_outcome(id, job, |job| &mut job.close, |turn| turn.on_closed(outcome));
    }

    pub(super) fn on_reported(&mut self, id: EffectId, job: &JobId, answer: ReportAnswer) {
        self.with_outcome(id, job, |job| &mut job.report, |turn| turn.on_reported(answer));
    }

    pub(super) fn on_progressed(&mut self, job: &JobId, bytes: u64) {
        if let Some(job) = self.jobs.get_mut(job) {
            job.bytes = job.bytes.max(bytes);
        }
    }

    pub(super) fn on_server_said(&mut self, job: &JobId, word: ServerWord) {
        let now = self.desk.now;
        let reason = match word {
            ServerWord::Canceling => StopReason::Canceled,
            ServerWord::Aborted => StopReason::Aborted,
        };
        if let Some(known) = self.jobs.get_mut(job) {
            known.stop(reason, now);
            self.desk.touch_job(job);
        }
    }

    /// The outcome that this attempt waits for; any other is ignored.
    fn with_outcome(&mut self, id: EffectId, job: &JobId, of: impl FnOnce(&mut Job) -> &mut Attempt, handle: impl FnOnce(&mut Turn<'_>)) {
        let Some(mut turn) = self.turn(job) else { return };
        if of(turn.job).take(id) {
            handle(&mut turn);
            self.desk.touch_job(job);
        }
    }

    /// A later manager drives the job: nothing of it is touched from here any more.
    fn on_fenced(&mut self, id: EffectId, job: &JobId, of: impl FnOnce(&mut Job) -> &mut Attempt) {
        let Some(mut turn) = self.turn(job) else { return };
        if of(turn.job).take(id) {
            turn.leave();
            self.keep(job, Fate::Disowned);
        }
    }
}
