//! The result of the inner steps, on its way to the host.

use crate::{Failure, FailureKind, Step};
use ci_proto::step_runner::StepResult;
use prost::Message as _;
use serde_json::{Value as Json, json};
use step_client::wire::result::clear_json;

/// The tree of what ran inside. Its values are in clear: it is for the host alone.
#[derive(Clone, PartialEq)]
pub struct DelegatedResult {
    /// A `StepResult` as protobuf JSON.
    json: Json,
}

impl DelegatedResult {
    /// Reads a serialized `StepResult`.
    /// # Errors
    /// The bytes are none, or nest deeper than 100 levels.
    pub fn read(message: &[u8]) -> Result<Self, Failure> {
        let message = StepResult::decode(message);
        let message = message.map_err(|error| Failure::internal(format!("the agent sent a result that cannot be read: {error}")))?;
        Ok(Self { json: clear_json(message) })
    }

    /// A result that says that the step has failed before anything ran inside.
    pub fn failed(failure: &Failure) -> Self {
        let status = if failure.kind == FailureKind::Cancelled { "cancelled" } else { "failure" };
        let message = match &failure.hint {
            Some(hint) => format!("{} ({hint})", failure.message),
            None => failure.message.clone(),
        };
        Self { json: json!({"status": status, "failureKind": failure.kind.as_str_name(), "failureMessage": message}) }
    }

    /// Every inner step has succeeded, or may fail.
    pub fn has_succeeded(&self) -> bool {
        self.text("status") == "success"
    }

    pub fn was_cancelled(&self) -> bool {
        self.text("status") == "cancelled"
    }

    /// Why it failed, in the words of the inner agent. Empty: it did not.
    pub fn failure_message(&self) -> &str {
        self.text("failureMessage")
    }

    /// Adds to the reason what only the maker of the environment knows.
    pub fn explain_failure(&mut self, more: &str) {
        let message = match self.failure_message() {
            "" => more.to_owned(),
            message => format!("{message} ({more})"),
        };
        self.json["failureMessage"] = message.into();
    }

    /// Leaves out sub-results for which `keep`, asked with the names from the outermost inner step down, says no. The tree then says that
    /// something was left out, and why: `sentence`, for people.
    pub fn filter(&mut self, sentence: &str, keep: impl Fn(&[&str]) -> bool) {
        let mut path = Vec::new();
        if filter_below(&mut self.json, &mut path, &keep) {
            self.json["filtered"] = sentence.into();
        }
    }

    fn text(&self, field: &str) -> &str {
        self.json.get(field).and_then(Json::as_str).unwrap_or_default()
    }
}

/// No value of it is for a log.
impl std::fmt::Debug for DelegatedResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DelegatedResult({})", self.text("status"))
    }
}

impl Step {
    /// Gives the result to the host, which grafts it under the step.
    /// # Errors
    /// The host gave no file for it, or it cannot be written.
    pub fn give_back(&self, result: &DelegatedResult) -> Result<(), Failure> {
        self.delegated_result(&result.json)
    }
}

/// Whether something was left out.
fn filter_below(json: &mut Json, path: &mut Vec<String>, keep: &impl Fn(&[&str]) -> bool) -> bool {
    let Some(Json::Array(children)) = json.get_mut("subStepResults") else { return false };
    let before = children.len();
    let mut was_filtered = false;
    children.retain_mut(|child| {
        path.push(child["step"]["name"].as_str().unwrap_or_default().to_owned());
        let is_kept = keep(&path.iter().map(String::as_str).collect::<Vec<_>>());
        if is_kept {
            was_filtered |= filter_below(child, path, keep);
        }
        path.pop();
        is_kept
    });
    was_filtered || children.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::Step as StepMessage;
    use ci_proto::step_runner::step_result::Status;

    fn named(name: &str, sub_step_results: Vec<StepResult>) -> StepResult {
        let step = Some(StepMessage { name: name.into(), ..StepMessage::default() });
        StepResult { step, status: Status::Success.into(), sub_step_results, ..StepResult::default() }
    }

    fn result() -> DelegatedResult {
        let tree = named("", vec![named("build", vec![named("secret", vec![])]), named("secret", vec![])]);
        DelegatedResult::read(&tree.encode_to_vec()).unwrap()
    }

    #[test]
    fn what_is_left_out_is_told() {
        let mut filtered = result();
        filtered.filter("internal steps are not shown", |path| path != ["build", "secret"]);
        assert_eq!(filtered.json["filtered"], "internal steps are not shown");
        assert_eq!(filtered.json["subStepResults"].as_array().unwrap().len(), 2);
        assert_eq!(filtered.json["subStepResults"][0]["subStepResults"], json!([]));

        let mut whole = result();
        whole.filter("nothing", |_| true);
        assert_eq!(whole, result());
    }

    #[test]
    fn a_failure_before_anything_ran_is_a_result_too() {
        let failed = DelegatedResult::failed(&Failure::refused("no").with_hint("ask"));
        assert_eq!(failed.json, json!({"status": "failure", "failureKind": "refused", "failureMessage": "no (ask)"}));
        assert!(DelegatedResult::failed(&Failure::cancelled()).was_cancelled());
    }

    #[test]
    fn a_failure_can_be_explained_by_whoever_made_the_environment() {
        let mut failed = DelegatedResult::failed(&Failure::step("step \"a\": exec: signal: killed"));
        failed.explain_failure("the container ran out of memory");
        assert_eq!(failed.failure_message(), "step \"a\": exec: signal: killed (the container ran out of memory)");
        assert!(!failed.has_succeeded());
    }

    #[test]
    fn bytes_that_are_no_result_are_a_fault_of_the_agent() {
        assert_eq!(DelegatedResult::read(b"\xff\xff").unwrap_err().kind, FailureKind::Internal);
    }
}
