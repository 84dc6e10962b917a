//! What a runner adds to every one of its jobs: GitLab's `config.toml` says it, not the job.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Nothing is added by default.
#[derive(Clone, Default, PartialEq)]
pub struct Added {
    /// File variables by name, with their contents, such as `CI_SERVER_TLS_CA_FILE`; those of the job win.
    pub files: BTreeMap<String, String>,
    /// Before the sources are fetched and after, each in a shell of its own; run before the hook of the same name that a job brings. Empty: nothing.
    pub pre_get_sources: String,
    pub post_get_sources: String,
    /// Before and after each script of a job, in its shell; not around `after_script`. Empty: nothing.
    pub pre_build: String,
    pub post_build: String,
    /// Replaces scheme, host and port of the address that is checked out. Empty: the job's own.
    pub clone_url: String,
    /// Of checkout. `None`: only the job's limit holds.
    pub get_sources_timeout: Option<Duration>,
    /// Of one transfer of artifacts. `None`: as the step has it.
    pub artifact_timeout: Option<Duration>,
    pub containers: AddedContainers,
}

/// What it adds to containers.
#[derive(Clone, Default, PartialEq)]
pub struct AddedContainers {
    /// Of a job that names none. Empty: such a job runs in no container.
    pub image: String,
    /// Started for every job, before its own.
    pub services: Vec<AddedService>,
    /// Inputs of the container of a job, where the job does not say the same.
    pub inputs: BTreeMap<String, Json>,
    /// The same for services.
    pub service_inputs: BTreeMap<String, Json>,
}

#[derive(Clone, Default, PartialEq)]
pub struct AddedService {
    pub image: String,
    pub aliases: Vec<String>,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub variables: BTreeMap<String, String>,
}

/// Scripts and addresses may hold anything.
impl fmt::Debug for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Added").field("files", &self.files.keys()).field("image", &self.containers.image).finish_non_exhaustive()
    }
}

/// `url` with scheme, host and port of `other`. The path of `other` comes first, as in GitLab's runner (`common/build.go`, `getURLForRepo`).
pub(crate) fn at_other_host(url: &str, other: &str) -> String {
    let path = url.split_once("://").and_then(|(_, rest)| Some(&rest[rest.find('/')?..]));
    match path {
        Some(path) if !other.is_empty() => format!("{}{path}", other.trim_end_matches('/')),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_a_repository_is_changes_not_which() {
        let moved = |other| at_other_host("https://gitlab.example:8443/group/app.git", other);
        assert_eq!(moved("http://inside:8080/"), "http://inside:8080/group/app.git");
        assert_eq!(moved("http://inside/gitlab"), "http://inside/gitlab/group/app.git");
        assert_eq!(moved(""), "https://gitlab.example:8443/group/app.git");
        assert_eq!(at_other_host("git@host:app.git", "http://inside"), "git@host:app.git");
    }
}
