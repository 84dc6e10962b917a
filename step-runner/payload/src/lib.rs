//! A GitLab job payload, or a job of `.gitlab-ci.yml`, becomes steps. One pure function; a laptop and the runner core call the same.

use std::collections::BTreeMap;
use step_model::diagnostic::Problem;
use step_model::request::RunRequest;

/// What the place where the job runs can do: the names of the `builtin://` steps that exist there, and what the caller gave up on purpose.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// `checkout`, `cache`, `artifact`, `docker`, `service`.
    pub builtins: Vec<String>,
    /// Run on the host although the payload names an image.
    pub ignore_image: bool,
}

/// A payload as steps, and what of it is not carried out here.
#[derive(Debug, Clone)]
pub struct Translation {
    pub request: RunRequest,
    pub not_done: Vec<NotDone>,
    /// Names of variables whose values were replaced by their names (`[MASKED NAME]`); they must be supplied before the run.
    pub missing: Vec<String>,
    /// The commit that the payload wants checked out.
    pub commit: Option<String>,
    pub problems: Vec<Problem>,
}

/// A part of the payload that is not carried out where it runs. Said once, before the first step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDone {
    /// `cache`, `image`, ...
    pub part: &'static str,
    /// What, in one line.
    pub what: String,
    /// The way out.
    pub way_out: String,
    /// The job cannot run at all without it, unless the way out is taken.
    pub refused: bool,
}

/// Turns the 201 body of `jobs/request` into steps. `supplied` holds values for variables that the payload only names.
/// # Errors
/// Every problem of the payload, with line and column where the JSON has one.
pub fn steps_of(_payload: &str, _here: &Here, _supplied: &BTreeMap<String, String>) -> Result<Translation, Vec<Problem>> {
    todo!()
}
