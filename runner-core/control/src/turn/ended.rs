//! After the end: the agent lets go, the server hears of it, and then nobody needs to know of it any more.

use super::{Fate, Turn};
use crate::backoff::Backoff;
use crate::effect::Effect;
use crate::event::ReportAnswer;
use crate::fleet::instance::Retired;
use crate::job::Phase;
use crate::record::{Stage, StopReason};

impl Turn<'_> {
    pub(super) fn ended(&mut self) -> Fate {
        self.close();
        self.report();
        self.save();
        let Phase::Ended(ended) = &self.job.phase else { return Fate::Stays };
        if ended.report.is_none() && ended.instance.is_none() { Fate::Over } else { Fate::Stays }
    }

    /// Frees the slot. What must be reported is durable here before the agent forgets it.
    fn close(&mut self) {
        let now = self.now();
        let Phase::Ended(ended) = &self.job.phase else { return };
        let Some(instance) = ended.instance.clone() else { return };
        let is_safe = ended.report.is_none() || matches!(self.job.save.durable, Some(Stage::Ended { .. }));
        if self.job.loss.take().is_some() || self.runner.fleet.get(&instance).is_none() {
            return self.release();
        }
        if ended.close_by.has_passed(now) {
            // It is removed, and the job with it.
            self.change(&instance, |instance| instance.retire(Retired::Unreachable));
            return self.release();
        }
        if is_safe && self.is_up(&instance) {
            let (job, place, generation) = (self.id, self.instance_id(&instance), self.desk.generation);
            self.desk.attempt(&mut self.job.close, |id| Effect::Close { id, job: job.clone(), instance: place, generation });
        }
    }

    pub fn on_closed(&mut self, outcome: Result<(), String>) {
        let Phase::Ended(ended) = &self.job.phase else { return };
        let Some(instance) = ended.instance.clone() else { return };
        match outcome {
            Ok(()) => self.release(),
            Err(reason) => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.close, Backoff::AGENT);
                self.suspect(&instance);
            }
        }
    }

    fn report(&mut self) {
        let now = self.now();
        let Phase::Ended(ended) = &mut self.job.phase else { return };
        let Some(report) = &ended.report else { return };
        if ended.report_by.has_passed(now) {
            ended.report = None;
            return;
        }
        // A server that waits for `running` takes no final state before it, unless it asked for the end itself.
        let was_canceled = self.job.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::Canceled);
        if !self.job.record.accepted && !was_canceled {
            return self.accept();
        }
        let job = self.id;
        self.desk.attempt(&mut self.job.report, |id| Effect::Report { id, job: job.clone(), report: report.clone() });
    }

    pub fn on_reported(&mut self, answer: ReportAnswer) {
        let Phase::Ended(ended) = &mut self.job.phase else { return };
        match answer {
            ReportAnswer::Delivered | ReportAnswer::Unwanted => ended.report = None,
            ReportAnswer::Failed { reason } => {
                self.job.trouble = Some(reason);
                self.desk.failed(&mut self.job.report, Backoff::SERVER);
            }
        }
    }
}
