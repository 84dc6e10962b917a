//! What the world does when it is asked, and how its answers get lost.

use super::{Happening, Simulation};
use crate::effect::{Ask, CancelHow, Effect};
use crate::event::{Acknowledgement, DispatchFault, Event, FollowEnd, Health, PollAnswer, Refusal, ReportAnswer};
use crate::id::JobId;

impl Simulation {
    /// A request reaches the one that it is for, also when the process that asked is gone.
    pub(super) fn apply(&mut self, process: u32, effect: Effect) {
        let lives = process == self.process && self.manager.is_some();
        // Neither applied nor answered in time: the process hears that it failed.
        let is_dropped = self.chaos.happens(4);
        let Some(event) = (if is_dropped { self.refused(&effect) } else { self.answer(process, lives, effect) }) else { return };
        let is_lost = self.chaos.happens(5);
        let event = if is_lost { self.lost(event) } else { event };
        let later = match event {
            Event::Saved { .. } => 1,
            _ => self.chaos.below(3_000),
        };
        if self.chaos.happens(2) {
            // The same again, when nobody waits for it any more.
            let again = self.now + later + self.chaos.below(20_000);
            self.schedule(again, Happening::Tell(process, event.clone()));
        }
        self.schedule(self.now + later, Happening::Tell(process, event));
    }

    fn answer(&mut self, process: u32, lives: bool, effect: Effect) -> Option<Event> {
        let (now, chaos) = (self.now, &mut self.chaos);
        Some(match effect {
            Effect::Take { id, runner, .. } => {
                let answer = self.server.poll(&runner, now, chaos);
                Event::Polled { id, runner, answer, was_retried: self.chaos.happens(5) }
            }
            Effect::Verify { id, runner } => Event::Verified { id, runner, is_served: !chaos.happens(50) },
            Effect::Save { id, record } => {
                let job = record.job.clone();
                self.store.insert(job.clone(), *record);
                Event::Saved { id, job, outcome: Ok(()) }
            }
            Effect::Forget { job } => {
                self.store.remove(&job);
                return None;
            }
            Effect::Heartbeat { id, job } => Event::Beaten { answer: self.server.pending(&job, now), id, job },
            Effect::Accept { id, job } => {
                let answer = self.server.running(&job, now);
                if !lives {
                    // Its process and all that it knew is gone.
                    self.excuse(&job);
                }
                Event::Accepted { id, job, answer }
            }
            Effect::Report { id, job, report } => Event::Reported { answer: self.server.finish(&job, &report, now), id, job },
            Effect::Increase { id, runner, ask: Ask::Count(count) } => {
                Event::Increased { outcome: self.cloud.increase(&runner, count, now, chaos), id, runner }
            }
            Effect::Increase { id, runner, ask: Ask::ForJob { requirements, .. } } => {
                assert!(requirements.0.contains_key("image"), "a provider hears what the job needs");
                Event::Increased { outcome: self.cloud.provide(&runner, now, chaos), id, runner }
            }
            Effect::Decrease { id, runner, instances } => {
                Event::Decreased { outcome: self.cloud.decrease(&runner, &instances, now, chaos), id, runner }
            }
            Effect::Update { id, runner } => Event::Updated { outcome: Ok(self.cloud.list(&runner, now)), id, runner },
            Effect::Inspect { id, instance } => Event::Inspected { health: self.cloud.health(&instance, now, chaos), id, instance },
            Effect::Connect { id, instance, generation } if lives => {
                Event::Connected { outcome: self.cloud.connect(&instance, generation, now), id, instance }
            }
            Effect::Dispatch { id, job, instance, generation, .. } => {
                // What travels with it comes from the store of the process that asks.
                let record = self.store.get(&job).cloned()?;
                let outcome = self.cloud.dispatch(&instance, record, generation, now, chaos);
                assert!(self.cloud.runs.get(&job).is_none_or(|runs| *runs <= 1), "{job} runs twice");
                Event::Dispatched { id, job, outcome }
            }
            Effect::Follow { id, job, instance, generation } => {
                let end = self.cloud.follow(&instance, &job, (process, id), generation, now)?;
                Event::Followed { id, job, end }
            }
            Effect::Cancel { id, job, instance, how, .. } => {
                Event::CancelSent { outcome: self.cloud.cancel(&instance, &job, how == CancelHow::AtOnce, now, chaos), id, job }
            }
            Effect::Close { id, job, instance, .. } => Event::Closed { outcome: self.cloud.close(&instance, &job, now), id, job },
            Effect::Connect { .. } | Effect::Withdraw { .. } | Effect::Disconnect { .. } | Effect::Disown { .. } | Effect::Exit { .. } => {
                return None;
            }
        })
    }

    /// What the process hears of a request that never arrived.
    fn refused(&mut self, effect: &Effect) -> Option<Event> {
        let reason = || "no route to host".to_owned();
        Some(match effect.clone() {
            Effect::Take { id, runner, .. } => {
                Event::Polled { id, runner, answer: PollAnswer::Failed { reason: reason() }, was_retried: false }
            }
            Effect::Verify { id, runner } => Event::Verified { id, runner, is_served: false },
            Effect::Save { id, record } => Event::Saved { id, job: record.job, outcome: Err("disk full".into()) },
            Effect::Heartbeat { id, job } => Event::Beaten { id, job, answer: Acknowledgement::Failed { reason: reason() } },
            Effect::Accept { id, job } => Event::Accepted { id, job, answer: Acknowledgement::Failed { reason: reason() } },
            Effect::Report { id, job, .. } => Event::Reported { id, job, answer: ReportAnswer::Failed { reason: reason() } },
            Effect::Increase { id, runner, .. } => Event::Increased { id, runner, outcome: Err(refusal()) },
            Effect::Decrease { id, runner, .. } => Event::Decreased { id, runner, outcome: Err(refusal()) },
            Effect::Update { id, runner } => Event::Updated { id, runner, outcome: Err(reason()) },
            Effect::Inspect { id, instance } => Event::Inspected { id, instance, health: Health::Unknown { reason: reason() } },
            Effect::Connect { id, instance, .. } => Event::Connected { id, instance, outcome: Err(refusal()) },
            Effect::Dispatch { id, job, .. } => {
                Event::Dispatched { id, job, outcome: Err(DispatchFault::Unreachable { reason: reason() }) }
            }
            Effect::Follow { id, job, .. } => Event::Followed { id, job, end: FollowEnd::Broken { reason: reason() } },
            Effect::Cancel { id, job, .. } => Event::CancelSent { id, job, outcome: Err(reason()) },
            Effect::Close { id, job, .. } => Event::Closed { id, job, outcome: Err(reason()) },
            // A record that is not removed is found again, and reported again to a server that wants nothing of it.
            Effect::Forget { .. } | Effect::Withdraw { .. } | Effect::Disconnect { .. } | Effect::Disown { .. } | Effect::Exit { .. } => {
                return self.answer(self.process, true, effect.clone());
            }
        })
    }

    /// It was done, and the process hears that it failed.
    fn lost(&mut self, event: Event) -> Event {
        let reason = || "timeout".to_owned();
        match event {
            Event::Polled { id, runner, answer, was_retried } => {
                if let PollAnswer::Job(offer) = answer {
                    self.excuse(&JobId::new(&runner, offer.number));
                }
                Event::Polled { id, runner, answer: PollAnswer::Failed { reason: reason() }, was_retried }
            }
            Event::Beaten { id, job, .. } => Event::Beaten { id, job, answer: Acknowledgement::Failed { reason: reason() } },
            Event::Accepted { id, job, .. } => Event::Accepted { id, job, answer: Acknowledgement::Failed { reason: reason() } },
            Event::Reported { id, job, .. } => Event::Reported { id, job, answer: ReportAnswer::Failed { reason: reason() } },
            Event::Increased { id, runner, .. } => Event::Increased { id, runner, outcome: Err(refusal()) },
            Event::Decreased { id, runner, .. } => Event::Decreased { id, runner, outcome: Err(refusal()) },
            Event::Connected { id, instance, .. } => Event::Connected { id, instance, outcome: Err(refusal()) },
            Event::Dispatched { id, job, .. } => {
                Event::Dispatched { id, job, outcome: Err(DispatchFault::Unreachable { reason: reason() }) }
            }
            Event::CancelSent { id, job, .. } => Event::CancelSent { id, job, outcome: Err(reason()) },
            Event::Closed { id, job, .. } => Event::Closed { id, job, outcome: Err(reason()) },
            Event::Saved { id, job, .. } => Event::Saved { id, job, outcome: Err("interrupted".into()) },
            other => other,
        }
    }

    /// Before the second phase, a job whose offer is lost is lost for the server too, unless somebody has it already.
    pub(super) fn excuse(&mut self, id: &JobId) {
        let is_known = self.store.contains_key(id) || self.manager.as_ref().is_some_and(|manager| manager.job(id).is_some());
        if !is_known {
            self.server.given.remove(id);
        }
        if let Some(job) = self.server.jobs.get_mut(id)
            && !is_known
        {
            job.is_excused = true;
        }
    }
}

fn refusal() -> Refusal {
    Refusal { reason: "no route to host".into(), is_final: false }
}
