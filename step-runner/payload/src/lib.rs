//! A GitLab job payload, or a job of `.gitlab-ci.yml`, becomes steps. One pure function; a laptop and the runner core call the same.
//!
//! ```text
//! 201 body of jobs/request --- steps_of ---.
//!                                          +--> Translation { request, not_done, missing, commit, problems }
//! .gitlab-ci.yml --- ci::Configuration ----'
//! ```

mod added;
pub mod ci;
mod duration;
mod inputs;
mod job;
mod payload;
pub mod recognise;
pub mod replaced;
mod steps_text;
mod translate;
mod variables;

pub use added::{Added, AddedContainers, AddedService};
pub use steps_text::steps_text;

use std::collections::BTreeMap;
use step_model::diagnostic::Problem;
use step_model::document::Dialect;
use step_model::reference::StepReference;
use step_model::request::RunRequest;

/// What the place where the job runs can do, and what the caller gave up on purpose.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// The names of the `builtin://` steps that exist there: `checkout`, `cache`, `artifact`, `docker`, `service`.
    pub builtins: Vec<String>,
    /// Steps in place of the builtin ones, by the same names. They get the same inputs.
    pub references: BTreeMap<String, StepReference>,
    /// Where caches are kept. [`CachePlace::Nowhere`]: they are named as not done.
    pub caches: CachePlace,
    /// The largest archive of a cache, in bytes. Zero: no limit.
    pub largest_cache: u64,
    /// Where artifacts are kept.
    pub artifacts: ArtifactPlace,
    /// Why there are no containers there, where their steps are not among the builtin ones. Empty: it cannot be said.
    pub no_containers: String,
    /// Run on the host although the job names an image.
    pub ignore_image: bool,
    /// Variables that the place adds, such as `CI_PROJECT_DIR`; those of the job win.
    pub predefined: BTreeMap<String, String>,
    /// Variables that whoever runs the job gives (`--job`); they win over those of the job and are taken as they are.
    pub given: BTreeMap<String, String>,
    /// The dialect of a job's `run:` list. `None`: functions.
    pub dialect: Option<Dialect>,
    /// What the runner says of every job.
    pub added: Added,
    /// GitLab waits for this job now, so its token is valid. Not so for a payload that was saved and is run again.
    pub live: bool,
}

/// Where the caches of a job are kept, as `builtin://cache` takes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum CachePlace {
    #[default]
    Nowhere,
    /// On the machine where the job runs.
    Directory(String),
    /// The inputs `bucket`, `prefix`, `region`, `endpoint`, `path_style`; and the credentials apart.
    Bucket { settings: BTreeMap<String, serde_json::Value>, credentials: serde_json::Value },
    /// By key: `{download: {url, headers, env}, upload: {...}}`. [`cache_uses`] tells the keys.
    Signed(BTreeMap<String, serde_json::Value>),
}

/// A key of a cache, and what a job does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheUse {
    pub key: String,
    pub restored: bool,
    pub saved: bool,
}

/// Where artifacts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactPlace {
    /// A GitLab server. `None`: the one that the variable `CI_SERVER_URL` of the job names.
    Server { url: Option<String> },
    /// On the machine where the job runs: those of earlier jobs, and those of this one.
    Directory { earlier: String, own: String },
}

impl Default for ArtifactPlace {
    fn default() -> Self {
        Self::Server { url: None }
    }
}

/// A job as steps, and what of it is not carried out here.
#[derive(Debug, Clone)]
pub struct Translation {
    /// `work_dir` and `build_dir` are left to the caller.
    pub request: RunRequest,
    pub not_done: Vec<NotDone>,
    /// Names of values that were replaced by their names (`[MASKED NAME]`), and of secrets that nobody fetches here. Sorted, without duplicates. They must
    /// be supplied before the run.
    pub missing: Vec<String>,
    /// The commit that the job wants checked out.
    pub commit: Option<String>,
    /// Warnings; errors are the other side of the result.
    pub problems: Vec<Problem>,
}

/// A part of the job that is not carried out where it runs. Said once, before the first step.
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

/// The keys of the caches of a payload, as the steps will use them: for whoever signs addresses before the job is turned into steps.
/// # Errors
/// As [`steps_of`].
pub fn cache_uses(payload: &str) -> Result<Vec<CacheUse>, Vec<Problem>> {
    let job = payload::read(payload.trim_start_matches('\u{feff}'))?;
    translate::cache_uses(job)
}

/// Turns the 201 body of `jobs/request` into steps. `supplied` holds values for names that the payload only mentions; it wins over the payload's own variables.
/// # Errors
/// Every problem of the payload, with line and column where the JSON has one.
pub fn steps_of(payload: &str, here: &Here, supplied: &BTreeMap<String, String>) -> Result<Translation, Vec<Problem>> {
    let payload = payload.trim_start_matches('\u{feff}');
    let job = payload::read(payload)?;
    translate::translate(job, here, supplied, &|path| payload::place_of(payload, path))
}
