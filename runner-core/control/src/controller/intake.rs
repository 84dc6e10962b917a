//! Back-pressure: a job is asked for when, and only when, a slot, a request slot and a place to run it are there.

use super::Controller;
use super::ending::Mode;
use crate::agenda::Subject;
use crate::backoff::Backoff;
use crate::effect::Effect;
use crate::event::{Offer, PollAnswer};
use crate::id::{EffectId, JobId, RunnerId};
use crate::job::{Ended, Job, Phase, REPORT_PATIENCE};
use crate::record::{Record, Stage, StopReason};
use crate::runner::HeldBack;
use step_model::time::Deadline;

impl Controller {
    /// Polls as often as nothing holds it back.
    pub(super) fn feed(&mut self, id: &RunnerId) {
        loop {
            match self.holds_back(id) {
                // Whoever waited before comes first.
                None if !self.hungry.is_empty() && self.called.as_ref() != Some(id) => return self.wait_in_line(id),
                None => {
                    self.called = None;
                    self.take(id);
                }
                Some(HeldBack::Concurrent { .. }) => return self.wait_in_line(id),
                Some(HeldBack::Unhealthy { .. }) => return self.probe(id),
                Some(_) => return,
            }
        }
    }

    /// What holds back the next poll of this runner, if anything: the first in the order of GitLab's runner.
    pub(crate) fn holds_back(&self, id: &RunnerId) -> Option<HeldBack> {
        let now = self.desk.now;
        let Some(runner) = self.runners.get(id) else { return Some(HeldBack::Removed) };
        let (settings, intake) = (&runner.settings, &runner.intake);
        let allowed = intake.concurrency.allowed(settings.request_concurrency(), settings.is_adaptive);
        let is_flowing = intake.is_flowing && !settings.is_strict;
        let is_due = intake.next.is_none_or(|next| next.has_passed(now));
        if self.mode != Mode::Serving {
            Some(HeldBack::Ending)
        } else if runner.is_removed {
            Some(HeldBack::Removed)
        } else if let Some(why) = &settings.refused {
            Some(HeldBack::Refused { why: why.clone() })
        } else if intake.health.is_off() {
            Some(HeldBack::Unhealthy { reason: intake.health.reason().unwrap_or_default().to_owned() })
        } else if runner.is_recovering(now) {
            Some(HeldBack::Recovering)
        } else if !is_due && !is_flowing {
            Some(HeldBack::Pause { trouble: intake.trouble.clone() })
        } else if settings.limit > 0 && runner.jobs + runner.open() >= settings.limit {
            Some(HeldBack::Limit { limit: settings.limit })
        } else if runner.open() >= allowed {
            Some(HeldBack::RequestConcurrency { allowed })
        } else if runner.spare_capacity() == 0 {
            Some(HeldBack::Capacity { trouble: runner.fleet.trouble.clone() })
        } else if self.busy() >= self.settings.concurrent {
            Some(HeldBack::Concurrent { concurrent: self.settings.concurrent })
        } else {
            None
        }
    }

    fn take(&mut self, id: &RunnerId) {
        let pause = self.settings.pause();
        let Some(runner) = self.runners.get_mut(id) else { return };
        let open = runner.open() + 1;
        let effect = self.desk.ask(|take| Effect::Take { id: take, runner: id.clone(), open });
        runner.intake.open.insert(effect);
        runner.intake.next = Some(Deadline::after(self.desk.now, pause));
        self.polls += 1;
    }

    fn wait_in_line(&mut self, id: &RunnerId) {
        let turn = self.count();
        let Some(runner) = self.runners.get_mut(id) else { return };
        if !runner.is_hungry {
            runner.is_hungry = true;
            self.hungry.insert((turn, id.clone()));
        }
    }

    /// The runner whose turn it is, when `concurrent` allows one more.
    pub(super) fn next_hungry(&mut self) -> Option<RunnerId> {
        if self.busy() >= self.settings.concurrent {
            return None;
        }
        let (_, id) = self.hungry.pop_first()?;
        if let Some(runner) = self.runners.get_mut(&id) {
            runner.is_hungry = false;
        }
        self.called = Some(id.clone());
        Some(id)
    }

    fn probe(&mut self, id: &RunnerId) {
        let Some(runner) = self.runners.get_mut(id) else { return };
        let probe = &mut runner.intake.health.probe;
        self.desk.attempt(probe, |verify| Effect::Verify { id: verify, runner: id.clone() });
    }

    pub(super) fn on_verified(&mut self, id: EffectId, runner: &RunnerId, is_served: bool) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        if known.intake.health.probe.take(id) {
            known.intake.health.on_probed(is_served, self.desk.now);
            self.desk.touch_runner(runner);
        }
    }

    pub(super) fn on_polled(&mut self, id: EffectId, runner: &RunnerId, answer: PollAnswer, was_retried: bool) {
        let Some(known) = self.runners.get_mut(runner) else { return };
        if !known.intake.open.remove(&id) {
            return;
        }
        self.polls -= 1;
        self.desk.touch_runner(runner);
        self.desk.touch(Subject::Process);
        let (settings, intake) = (&known.settings, &mut known.intake);
        let had_job = matches!(answer, PollAnswer::Job(_));
        intake.concurrency.after_poll(settings.request_concurrency(), settings.is_adaptive, had_job, was_retried);
        intake.is_flowing = had_job;
        let is_reached = !matches!(answer, PollAnswer::Failed { .. });
        if is_reached {
            intake.failures = 0;
            intake.trouble = None;
        }
        match answer {
            PollAnswer::Nothing => intake.health.on_healthy(),
            PollAnswer::Job(offer) => {
                intake.health.on_healthy();
                self.on_offered(runner, *offer);
            }
            PollAnswer::Refused { reason } => intake.health.on_refused(reason, settings, self.desk.now),
            PollAnswer::Failed { reason } => {
                intake.health.on_healthy();
                let later = Deadline::after(self.desk.now, Backoff::SERVER.wait(intake.failures, self.desk.fraction()));
                intake.next = Some(intake.next.map_or(later, |next| next.max(later)));
                intake.failures = intake.failures.saturating_add(1);
                intake.trouble = Some(reason);
            }
        }
    }

    /// A job that is known, or was until a moment ago, is not taken again: the server repeats itself, or an answer was lost.
    fn on_offered(&mut self, runner: &RunnerId, offer: Offer) {
        let id = JobId::new(runner, offer.number);
        if self.jobs.contains_key(&id) || self.over.known.contains(&id) {
            return;
        }
        let now = self.desk.now;
        let record = Record {
            job: id.clone(),
            stage: Stage::Offered,
            accepted: false,
            requirements: offer.requirements,
            timeout: offer.timeout,
            offered_at: now.wall,
            ends_by: None,
            stopping: None,
            generation: self.desk.generation,
        };
        let arrival = self.count();
        let Some(known) = self.runners.get_mut(runner) else { return };
        let mut job = Job::new(record, Phase::Waiting, arrival, known.settings.environments.acquire_timeout, now);
        job.save.changed();
        match offer.fault {
            Some(report) => {
                let report_by = Deadline::after(now, REPORT_PATIENCE);
                job.enter(Phase::Ended(Ended { report: Some(report), instance: None, close_by: report_by, report_by }), now);
            }
            None => {
                known.queue.insert(arrival, id.clone());
            }
        }
        known.jobs += 1;
        if self.mode == Mode::Stopping {
            job.stop(StopReason::Interrupted, now);
        }
        self.jobs.insert(id.clone(), job);
        self.desk.touch_job(&id);
        if self.mode != Mode::Detaching {
            // Before its first record is written, so that one is enough when there is a place.
            self.place_waiting(runner);
        }
    }
}
