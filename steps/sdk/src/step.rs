//! The step as its program sees it: where its inputs lie, and where its outputs go.

mod files;

use crate::Failure;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the host said in the environment of the program. docs/reference/step-programs.md has the same list in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// `STEP_RUNNER_INPUTS`: one JSON object.
    inputs: Option<PathBuf>,
    /// `STEP_RUNNER_HANDOVER`: the plan of the inner steps, when the step takes some.
    handover: Option<PathBuf>,
    /// `STEP_RUNNER_OUTPUT_FILE`: JSON lines, or one result when the step's outputs are delegated.
    outputs: Option<PathBuf>,
    /// `STEP_RUNNER_EXPORT_FILE`: JSON lines.
    exports: Option<PathBuf>,
    /// `STEP_RUNNER_CLEANUP`: JSON lines.
    clean_up: Option<PathBuf>,
    /// `STEP_RUNNER_JOB`: says which processes belong to this job.
    job: Option<String>,
    /// `TRACEPARENT`: the span of this step.
    traceparent: Option<String>,
}

impl Step {
    /// The step that this program was started for.
    pub fn from_environment() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// A step whose environment is given.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let text = |name| variable(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
        Self {
            inputs: path("STEP_RUNNER_INPUTS"),
            handover: path("STEP_RUNNER_HANDOVER"),
            outputs: path("STEP_RUNNER_OUTPUT_FILE"),
            exports: path("STEP_RUNNER_EXPORT_FILE"),
            clean_up: path("STEP_RUNNER_CLEANUP"),
            job: text("STEP_RUNNER_JOB"),
            traceparent: text("TRACEPARENT"),
        }
    }

    /// The inputs, as the type says. Values that a caller computed are in it; inputs that are templates are not.
    /// # Errors
    /// The program was not started as a step, or an input is not what the type says; the message names it, and no value.
    pub fn inputs<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let text = files::read(asked(self.inputs.as_deref(), "STEP_RUNNER_INPUTS")?)?;
        let inputs: Json = serde_json::from_slice(&text)
            .map_err(|error| Failure::internal(format!("the inputs that `STEP_RUNNER_INPUTS` names are no JSON: {error}")))?;
        serde_json::from_value(inputs).map_err(|error| Failure::bad_input(format!("an input is not as it should be: {error}")))
    }

    /// The plan of the inner steps, to be forwarded as it is. `None`: the step was given none.
    /// # Errors
    /// The file that holds it cannot be read.
    pub fn plan(&self) -> Result<Option<Vec<u8>>, Failure> {
        self.handover.as_deref().map(files::read).transpose()
    }

    /// Sets an output that the step declares.
    /// # Errors
    /// The host gave no file for it, or it cannot be written.
    pub fn output(&self, name: &str, value: impl Into<Json>) -> Result<(), Failure> {
        files::append(asked(self.outputs.as_deref(), "STEP_RUNNER_OUTPUT_FILE")?, &json!({"name": name, "value": value.into()}))
    }

    /// Sets an environment variable for all later steps of the job.
    /// # Errors
    /// The host gave no file for it, or it cannot be written.
    pub fn export(&self, name: &str, value: &str) -> Result<(), Failure> {
        files::append(asked(self.exports.as_deref(), "STEP_RUNNER_EXPORT_FILE")?, &json!({"name": name, "value": value}))
    }

    /// Has a command run when the job ends, whoever ends it and however. To be called *before* that thing is made which the command removes;
    /// the command therefore succeeds when there is nothing to remove.
    /// # Errors
    /// The file cannot be written. A host that takes no such commands is no error: what is left is then found by a later sweep.
    pub fn clean_up_later<A: Into<String>>(&self, argv: impl IntoIterator<Item = A>) -> Result<(), Failure> {
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        match &self.clean_up {
            Some(path) => files::append(path, &json!({"argv": argv})),
            None => Ok(()),
        }
    }

    /// Writes the result that the host grafts under the step, when the step's outputs are delegated.
    /// # Errors
    /// The host gave no file for it, or it cannot be written.
    pub fn delegated_result(&self, result: &Json) -> Result<(), Failure> {
        files::replace(asked(self.outputs.as_deref(), "STEP_RUNNER_OUTPUT_FILE")?, result.to_string().as_bytes())
    }

    /// A name that all processes of this job have in common, and no other job has. `None`: the host gave none.
    pub fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    /// The span of this step (W3C Trace Context), for whatever it calls.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }
}

fn asked<'a>(path: Option<&'a Path>, variable: &str) -> Result<&'a Path, Failure> {
    path.ok_or_else(|| {
        Failure::bad_input(format!("`{variable}` is not set: this program is a step, and was not started by a host of steps"))
            .with_hint("write it as a step, `func: builtin://NAME`, and run that with `step-runner run`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// A step with every file in a directory of its own.
    fn step(dir: &Path, inputs: &str) -> Step {
        std::fs::write(dir.join("inputs"), inputs).unwrap();
        let dir = dir.to_owned();
        Step::of(move |name| {
            let file = match name {
                "STEP_RUNNER_INPUTS" => "inputs",
                "STEP_RUNNER_OUTPUT_FILE" => "outputs",
                "STEP_RUNNER_EXPORT_FILE" => "exports",
                "STEP_RUNNER_CLEANUP" => "clean-up",
                "STEP_RUNNER_JOB" => return Some("job-1".into()),
                _ => return None,
            };
            Some(dir.join(file).into())
        })
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inputs {
        image: String,
        memory: Option<u64>,
    }

    #[test]
    fn inputs_are_read_as_their_type_says() {
        let dir = tempfile::tempdir().unwrap();
        let inputs: Inputs = step(dir.path(), r#"{"image": "a:1"}"#).inputs().unwrap();
        assert_eq!(inputs, Inputs { image: "a:1".into(), memory: None });
    }

    #[test]
    fn an_input_of_another_type_is_named_as_bad_input() {
        let dir = tempfile::tempdir().unwrap();
        let failure = step(dir.path(), r#"{"image": "a", "memroy": 1}"#).inputs::<Inputs>().unwrap_err();
        assert_eq!(failure.message, "an input is not as it should be: unknown field `memroy`, expected `image` or `memory`");
        assert_eq!(failure.exit_code(), 3);
    }

    #[test]
    fn outputs_exports_and_clean_up_commands_are_lines_of_json() {
        let dir = tempfile::tempdir().unwrap();
        let step = step(dir.path(), "{}");
        step.output("count", 3).unwrap();
        step.output("text", "two\nlines").unwrap();
        step.export("A", "1").unwrap();
        step.clean_up_later(["/bin/remove", "a b"]).unwrap();
        let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("outputs"), "{\"name\":\"count\",\"value\":3}\n{\"name\":\"text\",\"value\":\"two\\nlines\"}\n");
        assert_eq!(read("exports"), "{\"name\":\"A\",\"value\":\"1\"}\n");
        assert_eq!(read("clean-up"), "{\"argv\":[\"/bin/remove\",\"a b\"]}\n");
        assert_eq!(step.job(), Some("job-1"));
    }

    #[test]
    fn a_program_that_was_not_started_as_a_step_says_so() {
        let failure = Step::of(|_| None).inputs::<Inputs>().unwrap_err();
        assert_eq!(
            failure.to_string(),
            "error: `STEP_RUNNER_INPUTS` is not set: this program is a step, and was not started by a host of steps\n hint: write it as a step, \
             `func: builtin://NAME`, and run that with `step-runner run`"
        );
        assert_eq!(Step::of(|_| None).clean_up_later(["x"]), Ok(()));
        assert_eq!(Step::of(|_| Some(OsString::new())), Step::default());
    }
}
