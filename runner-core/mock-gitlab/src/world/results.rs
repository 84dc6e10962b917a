//! The results of jobs, as the results service takes them.

use super::{JobKey, World};
use crate::checker::{Fault, Violation};
use crate::message::Delivery;
use crate::scenario::{CallKind, Wrong};
use ci_proto::results::Head;
use serde_json::{Value, json};
use std::time::Duration;

/// A result that came.
#[derive(Debug, Clone)]
pub struct TakenResult {
    pub job: Option<JobKey>,
    pub head: Head,
    /// A serialized `proto.StepResult`.
    pub tree: Vec<u8>,
    /// How often it was sent.
    pub times: u64,
    /// An answer has arrived: the runner knows that it is kept.
    pub was_answered: bool,
}

impl TakenResult {
    pub(crate) fn as_json(&self) -> Value {
        json!({
            "id": self.head.id, "job": self.job, "state": self.head.state, "failure_reason": self.head.failure_reason, "exit_code": self.head.exit_code,
            "message": self.head.message, "tree_bytes": self.tree.len(), "times": self.times,
        })
    }
}

/// What a runner that sent a result hears.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultAnswer {
    Kept {
        known: bool,
    },
    Late {
        known: bool,
        wait: Duration,
    },
    /// A status of HTTP, as the fault of the scenario has it.
    Status(u16),
    /// The connection breaks.
    Broken,
    Never,
}

impl World {
    /// Takes a result, unless the scenario has a fault for it.
    pub fn take_result(&mut self, head: Head, tree: Vec<u8>, now: Duration) -> ResultAnswer {
        let number = head.job.as_ref().map_or(0, |job| job.number);
        let delivery = match self.faults.hit(CallKind::Result, Some(number), true) {
            Some(Wrong::Status { status, .. }) => return ResultAnswer::Status(status),
            Some(Wrong::Close) => return ResultAnswer::Broken,
            Some(Wrong::Hang) => return ResultAnswer::Never,
            // A proxy that does not know the service: a client of gRPC sees that as 404.
            Some(Wrong::Html | Wrong::Large { .. } | Wrong::WrongTypes | Wrong::Half) => return ResultAnswer::Status(404),
            Some(Wrong::Lost) => Delivery::Lost,
            Some(Wrong::Slow { seconds }) => Delivery::Late(seconds.duration()),
            None => Delivery::Whole,
        };
        let known = self.keep_result(head, tree, number, delivery, now);
        match delivery {
            Delivery::Lost => ResultAnswer::Broken,
            Delivery::Late(wait) => ResultAnswer::Late { known, wait },
            _ => ResultAnswer::Kept { known },
        }
    }

    /// Whether it was there already.
    fn keep_result(&mut self, head: Head, tree: Vec<u8>, number: u64, delivery: Delivery, now: Duration) -> bool {
        if let Some(kept) = self.results.iter_mut().find(|kept| kept.head.id == head.id) {
            if kept.was_answered {
                self.violations.push(Violation { job: kept.job, at: now, what: Fault::ResultTwice });
            }
            kept.times += 1;
            kept.was_answered |= delivery.arrives();
            return true;
        }
        let job = self.jobs.values().find(|job| job.key.id == number && !job.offered_to.is_empty()).map(|job| job.key);
        let (said, is) = (head.tree_bytes, tree.len() as u64);
        let faults = [
            job.is_none().then_some(Fault::ResultOfNoJob { number }),
            (said != is).then_some(Fault::ResultLength { said, is }),
            job.is_some_and(|key| self.has_secret(key, &tree)).then_some(Fault::SecretInResult),
        ];
        self.violations.extend(faults.into_iter().flatten().map(|what| Violation { job, at: now, what }));
        self.results.push(TakenResult { job, head, tree, times: 1, was_answered: delivery.arrives() });
        false
    }

    fn has_secret(&self, key: JobKey, tree: &[u8]) -> bool {
        let Some(job) = self.jobs.get(&key) else { return false };
        let mut secrets = job.burst.masked.values().chain([&job.token]).filter(|secret| !secret.is_empty());
        secrets.any(|secret| tree.windows(secret.len()).any(|window| window == secret.as_bytes()))
    }

    pub fn results(&self) -> &[TakenResult] {
        &self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use ci_proto::results::head::Job;

    fn world(faults: &str) -> World {
        World::new(Scenario::parse(&format!("[[jobs]]\n{faults}")).expect("a scenario"), "http://mock")
    }

    fn head(id: &str) -> Head {
        Head { id: id.to_owned(), job: Some(Job { number: 1, ..Job::default() }), tree_bytes: 3, ..Head::default() }
    }

    fn faults(world: &World) -> Vec<&Fault> {
        world.violations().iter().map(|violation| &violation.what).collect()
    }

    #[test]
    fn a_result_that_is_sent_again_after_its_answer_is_a_violation_and_one_whose_answer_was_lost_is_none() {
        let mut world = world("[[fault]]\ncall = \"result\"\nkind = \"lost\"\n");
        let send = |world: &mut World| world.take_result(head("a"), b"abc".to_vec(), Duration::ZERO);
        assert_eq!([send(&mut world), send(&mut world)], [ResultAnswer::Broken, ResultAnswer::Kept { known: true }]);
        assert_eq!(faults(&world), [&Fault::ResultOfNoJob { number: 1 }], "it was never handed out");
        send(&mut world);
        assert_eq!(faults(&world)[1..], [&Fault::ResultTwice]);
        assert_eq!((world.results().len(), world.results()[0].times), (1, 3));
    }

    #[test]
    fn a_tree_of_another_length_is_a_violation_and_a_refused_result_is_not_kept() {
        let mut world = world("[[fault]]\ncall = \"result\"\nkind = \"status\"\nstatus = 503\n");
        assert_eq!(world.take_result(head("a"), Vec::new(), Duration::ZERO), ResultAnswer::Status(503));
        assert!(world.results().is_empty());
        world.take_result(head("a"), b"ab".to_vec(), Duration::ZERO);
        assert!(faults(&world).contains(&&Fault::ResultLength { said: 3, is: 2 }));
    }
}
