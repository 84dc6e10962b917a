//! A job as it was received: the payload byte for byte, and what the runner core itself needs to know of it.
//!
//! The steps of a job are none of our business here; `step-payload` reads them. What is read here is read leniently: only `id` and `token` must be
//! there, so that a job with anything else wrong can still be reported as failed instead of hanging on the server.

use crate::Token;
use crate::answer::NotJson;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// One job from a server.
#[derive(Clone, PartialEq)]
pub struct ReceivedJob {
    /// Unique on its cell only: two cells may both have a job 1.
    pub id: u64,
    pub token: Token,
    /// The body of the answer, for whoever makes steps of it.
    pub payload: Bytes,
    pub facts: JobFacts,
}

/// What the runner core itself needs to know of a job.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// `None`: the server set none.
    pub timeout: Option<Duration>,
    /// Failure reasons that the server knows beyond those that all know.
    pub failure_reasons: Vec<String>,
    /// Beginnings of tokens beyond those that all know.
    pub token_mask_prefixes: Vec<String>,
    pub trace_sections: bool,
    /// Values that must not stand in a log: masked variables, sensitive inputs, the job's token, passwords of registries.
    pub secrets: Vec<String>,
    /// Where the code is, without its password.
    pub repository: Option<String>,
    pub project: Option<String>,
    pub project_id: Option<u64>,
    /// The job names one to run in.
    pub has_image: bool,
    pub pipeline: Option<u64>,
    /// `CI_DEBUG_TRACE` is on: the server shows the log to fewer people.
    pub debug_trace: bool,
    /// Options of images and services that no executor knows: such a job is failed before it starts.
    pub unsupported_options: Vec<String>,
}

/// Why an answer is no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAJob {
    #[error(transparent)]
    NotJson(#[from] NotJson),
    #[error("the job has no {field}")]
    Missing { field: &'static str },
}

impl ReceivedJob {
    /// # Errors
    /// It has no id or no token, so nothing could be said about it to the server.
    pub fn read(payload: &Value, bytes: Bytes) -> Result<Self, NotAJob> {
        let id = payload.get("id").and_then(Value::as_u64).ok_or(NotAJob::Missing { field: "id" })?;
        let token = text(payload, &["token"]).filter(|token| !token.is_empty()).ok_or(NotAJob::Missing { field: "token" })?;
        Ok(Self { id, token: Token::new(token), payload: bytes, facts: JobFacts::read(payload) })
    }
}

impl JobFacts {
    fn read(payload: &Value) -> Self {
        Self {
            timeout: at(payload, &["runner_info", "timeout"])
                .and_then(Value::as_u64)
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            failure_reasons: texts(at(payload, &["features", "failure_reasons"])),
            token_mask_prefixes: texts(at(payload, &["features", "token_mask_prefixes"])),
            trace_sections: at(payload, &["features", "trace_sections"]).and_then(Value::as_bool).unwrap_or(false),
            secrets: secrets(payload),
            repository: text(payload, &["git_info", "repo_url"])
                .and_then(|url| url.parse().ok())
                .map(|url| crate::address::without_credentials(&url)),
            project: text(payload, &["job_info", "project_full_path"])
                .or_else(|| text(payload, &["job_info", "project_name"]))
                .map(str::to_owned),
            project_id: at(payload, &["job_info", "project_id"]).and_then(Value::as_u64),
            has_image: text(payload, &["image", "name"]).is_some_and(|name| !name.is_empty()),
            pipeline: at(payload, &["job_info", "pipeline_id"]).and_then(Value::as_u64),
            debug_trace: items(payload.get("variables"))
                .any(|variable| text(variable, &["key"]) == Some("CI_DEBUG_TRACE") && text(variable, &["value"]).is_some_and(is_true)),
            unsupported_options: unsupported_options(payload),
        }
    }
}

/// What Go's `strconv.ParseBool` calls true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn secrets(payload: &Value) -> Vec<String> {
    let masked =
        items(payload.get("variables")).filter(|variable| is_on(variable, "masked")).filter_map(|variable| text(variable, &["value"]));
    let sensitive = items(payload.get("inputs"))
        .filter(|input| at(input, &["value", "sensitive"]).and_then(Value::as_bool).unwrap_or(false))
        .filter_map(|input| text(input, &["value", "content"]));
    let passwords = items(payload.get("credentials")).filter_map(|credential| text(credential, &["password"]));
    let dependencies = items(payload.get("dependencies")).filter_map(|dependency| text(dependency, &["token"]));
    let own = text(payload, &["token"]).into_iter();
    let all: BTreeSet<&str> = own
        .chain(masked)
        .chain(sensitive)
        .chain(passwords)
        .chain(dependencies)
        .map(str::trim)
        .filter(|secret| !secret.is_empty())
        .collect();
    all.into_iter().map(str::to_owned).collect()
}

/// What images and services may set for an executor (GitLab's runner: common/spec, `UnsupportedOptions`).
const EXECUTOR_OPTIONS: [(&str, &[&str]); 2] = [("docker", &["platform", "user"]), ("kubernetes", &["user"])];

fn unsupported_options(payload: &Value) -> Vec<String> {
    let images = payload.get("image").into_iter().chain(items(payload.get("services")));
    let mut unknown = BTreeSet::new();
    for options in images.filter_map(|image| image.get("executor_opts")?.as_object()) {
        for (executor, value) in options {
            match EXECUTOR_OPTIONS.iter().find(|(name, _)| name == executor) {
                None => drop(unknown.insert(executor.clone())),
                Some((_, known)) => {
                    let names = value.as_object().into_iter().flat_map(|options| options.keys());
                    unknown.extend(names.filter(|name| !known.contains(&name.as_str())).map(|name| format!("{executor}.{name}")));
                }
            }
        }
    }
    unknown.into_iter().collect()
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    at(value, path).and_then(Value::as_str)
}

fn is_on(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    items(value).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Without token, payload and secrets.
impl fmt::Debug for ReceivedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedJob")
            .field("id", &self.id)
            .field("payload", &format_args!("{} bytes", self.payload.len()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for JobFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobFacts").field("timeout", &self.timeout).field("repository", &self.repository).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(payload: &Value) -> ReceivedJob {
        ReceivedJob::read(payload, Bytes::from(payload.to_string())).expect("a job")
    }

    #[test]
    fn runner_22_options_that_no_executor_knows_are_named() {
        let job = read(
            &json!({"id": 10, "token": "t", "image": {"name": "ruby", "executor_opts": {"docker": {"platform": "amd64", "blammo": 1}, "powpow": {}}}}),
        );
        assert_eq!(job.facts.unsupported_options, ["docker.blammo", "powpow"]);
        let fine = read(&json!({"id": 10, "token": "t", "services": [{"executor_opts": {"kubernetes": {"user": "1"}}}]}));
        assert!(fine.facts.unsupported_options.is_empty());
    }

    #[test]
    fn everything_that_must_not_be_logged_is_known() {
        let job = read(&json!({
            "id": 10, "token": "job-token",
            "variables": [{"key": "A", "value": "masked-one", "masked": true}, {"key": "B", "value": "open"}, {"key": "CI_DEBUG_TRACE", "value": "true"}],
            "inputs": [{"key": "i", "value": {"content": "sensitive-one", "sensitive": true}}, {"key": "j", "value": {"content": 5, "sensitive": true}}],
            "credentials": [{"type": "registry", "password": "registry-one"}],
            "dependencies": [{"id": 1, "token": "dependency-one"}],
        }));
        assert_eq!(job.facts.secrets, ["dependency-one", "job-token", "masked-one", "registry-one", "sensitive-one"]);
        assert!(job.facts.debug_trace);
        let printed = format!("{job:?} {:?}", job.facts);
        assert!(!printed.contains("-one") && !printed.contains("job-token"), "{printed}");
    }

    #[test]
    fn a_repository_is_named_without_its_password() {
        let job = read(
            &json!({"id": 10, "token": "t", "git_info": {"repo_url": "https://gitlab-ci-token:secret@gitlab.example/group/project.git"}}),
        );
        assert_eq!(job.facts.repository.as_deref(), Some("https://gitlab.example/group/project.git"));
    }

    #[test]
    fn wrong_types_harm_nothing_but_themselves() {
        let job = read(
            &json!({"id": 10, "token": "t", "variables": {"a": 1}, "runner_info": {"timeout": "soon"}, "features": [], "image": "ruby", "services": 5, "git_info": null}),
        );
        assert_eq!(job.facts, JobFacts { secrets: vec!["t".to_owned()], ..JobFacts::default() });
        let job = read(
            &json!({"id": 10, "token": "t", "runner_info": {"timeout": 3600}, "features": {"failure_reasons": ["a", 5], "trace_sections": true}}),
        );
        assert_eq!(
            (job.facts.timeout, job.facts.failure_reasons, job.facts.trace_sections),
            (Some(Duration::from_secs(3600)), vec!["a".to_owned()], true)
        );
    }

    #[test]
    fn a_job_without_id_or_token_is_none() {
        for (payload, field) in [
            (json!({"token": "t"}), "id"),
            (json!({"id": -1, "token": "t"}), "id"),
            (json!({"id": 1}), "token"),
            (json!({"id": 1, "token": ""}), "token"),
        ] {
            assert_eq!(ReceivedJob::read(&payload, Bytes::new()), Err(NotAJob::Missing { field }));
        }
    }
}
