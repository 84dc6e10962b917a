//! Which call goes wrong, and how.

use crate::message::{Delivery, Reply};
use crate::scenario::{CallKind, Fault, Wrong};
use serde_json::json;

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Each with how many calls it has seen and how many went wrong.
    rules: Vec<(Fault, u64, u64)>,
    /// Of requests that are held: each goes wrong when it is answered.
    kept: Vec<Wrong>,
}

impl Faults {
    pub fn new(faults: &[Fault]) -> Self {
        Self { rules: faults.iter().map(|fault| (fault.clone(), 0, 0)).collect(), kept: Vec::new() }
    }

    pub fn add(&mut self, fault: Fault) {
        self.rules.push((fault, 0, 0));
    }

    /// What goes wrong with this call. A call that was held counts when it is answered.
    pub fn hit(&mut self, call: CallKind, job: Option<u64>, is_new: bool) -> Option<Wrong> {
        if !is_new {
            return self.kept.pop();
        }
        for (fault, seen, gone_wrong) in &mut self.rules {
            let is_meant = (fault.call == CallKind::Any || fault.call == call) && (fault.job.is_none() || fault.job == job);
            if !is_meant {
                continue;
            }
            *seen += 1;
            let is_turn = *seen > fault.skip && (*seen - fault.skip - 1).is_multiple_of(fault.every.max(1));
            if is_turn && (fault.times == 0 || *gone_wrong < fault.times) {
                *gone_wrong += 1;
                return Some(fault.what.clone());
            }
        }
        None
    }

    pub fn give_back(&mut self, fault: Option<Wrong>) {
        self.kept.extend(fault);
    }
}

/// The answer of a call that is not carried out.
pub(super) fn instead(fault: &Wrong) -> Option<Reply> {
    match fault {
        Wrong::Status { status, headers, body } => {
            let mut reply = Reply { body: body.clone().into_bytes().into(), ..Reply::status(*status) };
            reply.headers.extend(headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
            Some(reply)
        }
        Wrong::Html => {
            let page = "<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>";
            Some(Reply { body: page.into(), ..Reply::status(201).with("content-type", "text/html; charset=utf-8") })
        }
        Wrong::Large { bytes } => Some(Reply::json(201, &json!({"id": 1, "token": "large", "padding": "x".repeat(*bytes)}))),
        Wrong::WrongTypes => Some(Reply::json(201, &json!({"id": "one", "token": 5, "variables": "none", "steps": 7, "features": []}))),
        Wrong::Close => Some(Reply { delivery: Delivery::Lost, ..Reply::status(500) }),
        Wrong::Hang => Some(Reply { delivery: Delivery::Never, ..Reply::status(500) }),
        Wrong::Half | Wrong::Lost | Wrong::Slow { .. } => None,
    }
}
