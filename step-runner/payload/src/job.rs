//! A job as GitLab describes it: what a payload and a job of `.gitlab-ci.yml` have in common.
//!
//! Source: GitLab Runner, `common/spec/spec.go`, v19.4.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::document::When;
use step_model::value::Value;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Job {
    pub id: Option<u64>,
    pub name: String,
    pub token: String,
    /// `None`: the payload has no limit that means anything.
    pub timeout: Option<Duration>,
    pub variables: Vec<JobVariable>,
    pub inputs: Vec<JobInput>,
    pub steps: Vec<JobStep>,
    /// The text of the list; empty when the job has none.
    pub run: String,
    pub image: Option<Image>,
    pub services: Vec<Image>,
    pub artifacts: Vec<Artifact>,
    pub cache: Vec<Cache>,
    pub dependencies: Vec<Dependency>,
    /// Where to log in to a registry.
    pub registries: Vec<Login>,
    pub secrets: Vec<Secret>,
    pub hooks: Vec<Hook>,
    pub git: Option<Git>,
    /// The name of the policy that put the job into the pipeline.
    pub policy: Option<String>,
    /// The environment is to be kept for a later job.
    pub suspend: bool,
}

/// A name and a password at a registry.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Login {
    pub registry: String,
    pub username: String,
    pub password: String,
}

/// Nothing of it but where is for a log.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.registry)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct JobVariable {
    pub key: String,
    pub value: String,
    pub file: bool,
    pub masked: bool,
    /// Nothing in the value is expanded.
    pub raw: bool,
    /// Services see it too.
    pub public: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobInput {
    pub key: String,
    /// Marked when it is sensitive.
    pub value: Value,
}

/// One script: `script`, `after_script`, `release`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JobStep {
    pub name: String,
    pub script: Vec<String>,
    pub timeout: Option<Duration>,
    pub when: When,
    pub allow_failure: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Image {
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pull_policy: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub platform: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Artifact {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub untracked: bool,
    pub paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    #[serde(skip)]
    pub when: When,
    /// `archive`, `junit`, ...
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expire_in: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Cache {
    pub key: String,
    pub untracked: bool,
    pub paths: Vec<String>,
    /// As written: it may hold variables.
    #[serde(skip)]
    pub policy: String,
    #[serde(skip)]
    pub when: When,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_keys: Vec<String>,
}

/// An earlier job whose artifacts are downloaded.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Dependency {
    pub id: u64,
    pub name: String,
    /// Empty: the job had no artifacts.
    pub filename: String,
    #[serde(skip)]
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Secret {
    pub name: String,
    /// Where it is kept: `vault`, `aws_secrets_manager`, ...
    pub provider: String,
    pub file: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hook {
    pub name: String,
    pub script: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Git {
    pub repo_url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub repo_object_format: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub sha: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before_sha: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ref_type: String,
    pub refspecs: Vec<String>,
    pub depth: u64,
    pub allow_fetch: bool,
}

impl Job {
    /// The last variable of a name wins, and stands where it was written last.
    pub(crate) fn keep_last_of_each_name(&mut self) {
        let mut seen = std::collections::BTreeSet::new();
        let mut kept: Vec<JobVariable> =
            std::mem::take(&mut self.variables).into_iter().rev().filter(|variable| seen.insert(variable.key.clone())).collect();
        kept.reverse();
        self.variables = kept;
    }

    pub(crate) fn variable(&self, key: &str) -> Option<&JobVariable> {
        self.variables.iter().rev().find(|variable| variable.key == key)
    }
}
