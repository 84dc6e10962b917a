//! `git_info` and the variables that GitLab's runner looks at become the inputs of the checkout step.
//!
//! Limits and defaults: GitLab Runner v19.4, `functions/concrete/builder`.

use super::builtin::{secret_input, text_input, value_input};
use super::settings::Settings;
use crate::Here;
use crate::added::at_other_host;
use crate::job::{Git, Job};
use serde_json::{Value as Json, json};
use step_model::diagnostic::Problem;
use step_model::document::{Dialect, ValueTemplate};
use step_model::expression::Template;

const MOST_ATTEMPTS: u64 = 10;
const DEEPEST_SUBMODULE: u64 = 10_000;

/// What git sends as the name of the user, with a job's token as the password.
const TOKEN_USER: &str = "gitlab-ci-token";

/// The inputs of the step; `settings` reads variables, and collects what is wrong with them.
pub(super) fn inputs(job: &Job, here: &Here, git: &Git, problems: &mut Vec<Problem>) -> Vec<(Template, ValueTemplate)> {
    let mut settings = Settings::new(job, problems);
    let strategy = settings.one_of("GIT_STRATEGY", &["fetch", "clone", "empty", "none"], if git.allow_fetch { "fetch" } else { "clone" });
    let submodules = settings.one_of("GIT_SUBMODULE_STRATEGY", &["none", "normal", "recursive"], "none");
    let submodule_depth = settings.whole("GIT_SUBMODULE_DEPTH", 0, DEEPEST_SUBMODULE, git.depth.min(DEEPEST_SUBMODULE));
    let attempts = settings.whole("GET_SOURCES_ATTEMPTS", 1, MOST_ATTEMPTS, 1);
    let (address, token) = address_and_token(job, here, git);
    let mut inputs = vec![
        secret_input("repo_url", &address),
        secret_input("token", &token),
        text_input("username", TOKEN_USER),
        text_input("sha", &git.sha),
        text_input("ref", &git.reference),
        value_input("refspecs", &json!(git.refspecs)),
        value_input("depth", &json!(git.depth)),
        text_input("object_format", &git.repo_object_format),
        text_input("strategy", &strategy),
        value_input("checkout", &Json::Bool(settings.flag("GIT_CHECKOUT", true))),
        value_input("clean_flags", &settings.flags("GIT_CLEAN_FLAGS", &["-ffdx"])),
        value_input("fetch_flags", &settings.flags("GIT_FETCH_EXTRA_FLAGS", &["--prune", "--quiet"])),
        value_input("lfs", &Json::Bool(!settings.flag("GIT_LFS_SKIP_SMUDGE", false))),
        value_input("attempts", &json!(attempts)),
        // Where GitLab waits for the job, the directory is the job's.
        value_input("take_over", &Json::Bool(here.live)),
    ];
    if submodules != "none" {
        inputs.extend([
            text_input("submodules", &submodules),
            value_input("submodule_depth", &json!(submodule_depth)),
            value_input("submodule_paths", &settings.flags("GIT_SUBMODULE_PATHS", &[])),
            value_input("submodule_update_flags", &settings.flags("GIT_SUBMODULE_UPDATE_FLAGS", &[])),
            value_input("submodule_force_https", &Json::Bool(settings.flag("GIT_SUBMODULE_FORCE_HTTPS", false))),
        ]);
    }
    if job.variable("CI_SERVER_TLS_CA_FILE").is_some_and(|variable| variable.file)
        && let Ok(path) = Template::parse("${{ vars.CI_SERVER_TLS_CA_FILE }}", Dialect::Functions)
    {
        inputs.push((Template::literal("tls_ca_file"), ValueTemplate::Text(path)));
    }
    inputs
}

/// The address without a login, and the token beside it. A job that has ended has no token any more, so there git's own logins are asked, unless
/// somebody gave a token.
fn address_and_token(job: &Job, here: &Here, git: &Git) -> (String, String) {
    let (address, written) = without_login(&git.repo_url);
    let address = at_other_host(&address, &here.added.clone_url);
    let given = job.variable("CI_JOB_TOKEN").map(|variable| variable.value.as_str()).unwrap_or_default();
    let token = if here.live {
        if job.token.is_empty() { written } else { &job.token }
    } else if given == job.token {
        ""
    } else {
        given
    };
    (address, token.to_owned())
}

/// `https://user:password@host/path`: the address, and the password.
fn without_login(address: &str) -> (String, &str) {
    let Some((scheme, rest)) = address.split_once("://") else { return (address.to_owned(), "") };
    let is_http = matches!(scheme, "http" | "https");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@').filter(|_| is_http) {
        Some((login, host)) => (format!("{scheme}://{host}{path}"), login.split_once(':').map_or("", |(_, password)| password)),
        None => (address.to_owned(), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobVariable;

    fn job(variables: &[(&str, &str)]) -> Job {
        let variables =
            variables.iter().map(|(key, value)| JobVariable { key: (*key).into(), value: (*value).into(), ..JobVariable::default() });
        Job { variables: variables.collect(), token: "job-token".into(), ..Job::default() }
    }

    fn git() -> Git {
        Git {
            repo_url: "https://gitlab-ci-token:job-token@git.example:8443/g/app.git".into(),
            sha: "0123".into(),
            depth: 20,
            allow_fetch: true,
            ..Git::default()
        }
    }

    /// The input as JSON, or its problems.
    fn input(name: &str, variables: &[(&str, &str)]) -> String {
        input_here(name, variables, &Here { live: true, ..Here::default() })
    }

    fn input_here(name: &str, variables: &[(&str, &str)], here: &Here) -> String {
        let mut problems = Vec::new();
        let job = job(variables);
        let inputs = inputs(&job, here, &git(), &mut problems);
        let found = inputs.iter().find(|(key, _)| key.source() == name).map(|(_, value)| shown(value)).unwrap_or_default();
        let problems: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        [found].into_iter().chain(problems).collect::<Vec<_>>().join("; ")
    }

    fn shown(value: &ValueTemplate) -> String {
        match value {
            ValueTemplate::Scalar(value) => value.to_json().to_string(),
            ValueTemplate::Text(text) => text.source().to_owned(),
            ValueTemplate::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
            ValueTemplate::Object(_) => "an object".into(),
        }
    }

    #[test]
    fn the_defaults_are_those_of_gitlab() {
        assert_eq!(input("strategy", &[]), "fetch");
        assert_eq!(input("clean_flags", &[]), "-ffdx");
        assert_eq!(input("fetch_flags", &[]), "--prune --quiet");
        assert_eq!(input("attempts", &[]), "1");
        assert_eq!(input("checkout", &[]), "true");
        assert_eq!(input("lfs", &[]), "true");
        assert_eq!(input("submodules", &[]), "");
    }

    #[test]
    fn variables_change_them() {
        assert_eq!(input("strategy", &[("GIT_STRATEGY", "empty")]), "empty");
        assert_eq!(input("strategy", &[("GIT_STRATEGY", "$S"), ("S", "none")]), "none");
        assert_eq!(input("clean_flags", &[("GIT_CLEAN_FLAGS", "-ffdx -e cache/")]), "-ffdx -e cache/");
        assert_eq!(input("clean_flags", &[("GIT_CLEAN_FLAGS", "none")]), "");
        assert_eq!(input("fetch_flags", &[("GIT_FETCH_EXTRA_FLAGS", "none")]), "");
        assert_eq!(input("checkout", &[("GIT_CHECKOUT", "False")]), "false");
        assert_eq!(input("lfs", &[("GIT_LFS_SKIP_SMUDGE", "1")]), "false");
        let recursive = ("GIT_SUBMODULE_STRATEGY", "recursive");
        assert_eq!(input("submodule_depth", &[recursive]), "20");
        assert_eq!(input("submodule_depth", &[recursive, ("GIT_SUBMODULE_DEPTH", "3")]), "3");
        assert_eq!(input("submodule_paths", &[recursive, ("GIT_SUBMODULE_PATHS", "a :(exclude)b")]), "a :(exclude)b");
    }

    #[test]
    fn a_value_that_makes_no_sense_is_said() {
        insta::assert_snapshot!(input("strategy", &[("GIT_STRATEGY", "Fetch")]), @"fetch; `GIT_STRATEGY` is `Fetch`, expected one of `fetch`, `clone`, `empty`, `none`");
        insta::assert_snapshot!(input("attempts", &[("GET_SOURCES_ATTEMPTS", "11")]), @"1; `GET_SOURCES_ATTEMPTS` is `11`, expected a whole number from 1 to 10: it is taken as 1");
        insta::assert_snapshot!(input("attempts", &[("GET_SOURCES_ATTEMPTS", "-1")]), @"1; `GET_SOURCES_ATTEMPTS` is `-1`, expected a whole number from 1 to 10: it is taken as 1");
    }

    #[test]
    fn the_address_has_no_login_and_the_token_is_apart() {
        assert_eq!(input("repo_url", &[]), "\"https://git.example:8443/g/app.git\"");
        assert_eq!(input("token", &[]), "\"job-token\"");
    }

    #[test]
    fn the_token_of_a_job_that_has_ended_is_not_used() {
        let laptop = Here::default();
        assert_eq!(input_here("token", &[("CI_JOB_TOKEN", "job-token")], &laptop), "\"\"");
        assert_eq!(input_here("token", &[("CI_JOB_TOKEN", "mine")], &laptop), "\"mine\"");
        assert_eq!(input_here("take_over", &[], &laptop), "false");
    }

    #[test]
    fn what_has_no_login_stays_as_it_is() {
        for address in ["git@git.example:g/app.git", "ssh://git@git.example/app.git", "https://git.example/a@b.git", "/srv/app.git"] {
            assert_eq!(without_login(address), (address.to_owned(), ""));
        }
    }
}
