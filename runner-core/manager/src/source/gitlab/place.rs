//! Where the jobs of an entry run, and what the runner adds to them.

use crate::source::slots::Slot;
use runner_control::report::{FailureReason, Report};
use runner_gitlab::ReceivedJob;
use std::collections::BTreeMap;
use step_model::diagnostic::Problem;
use step_payload::{Here, Translation, steps_of};

/// What an entry says about every job.
#[derive(Debug, Clone)]
pub struct Place {
    /// Absolute, on the instance.
    pub builds_dir: String,
    /// Of the entry, for people.
    pub name: String,
    /// What directories and variables call the runner.
    pub short_token: String,
    /// The steps that the agents have.
    pub builtins: Vec<String>,
    /// Images of jobs are left aside: the executor has no containers.
    pub ignore_image: bool,
    /// `environment` of the entry.
    pub environment: BTreeMap<String, String>,
}

/// A job as it will be dispatched.
#[derive(Debug)]
pub struct Placed {
    pub build_dir: String,
    /// The steps, or what the server is told in their place.
    pub steps: Result<Translation, Report>,
}

/// GitLab's runner ends like this when a job asks for what it cannot do.
const UNSUPPORTED: i32 = 3;

impl Place {
    pub fn put(&self, received: &ReceivedJob, slot: Slot) -> Placed {
        let project = received.facts.project.as_deref().unwrap_or("project");
        let build_dir = format!("{}/{}/{}/{}", self.builds_dir.trim_end_matches('/'), self.short_token, slot.of_project, safe(project));
        let here = Here {
            builtins: self.builtins.clone(),
            no_containers: String::new(),
            ignore_image: self.ignore_image,
            predefined: self.predefined(received, slot, &build_dir),
            live: true,
            ..Here::default()
        };
        Placed { steps: steps(received, &here), build_dir }
    }

    /// What GitLab's runner adds to the variables of every job (common/build.go).
    fn predefined(&self, received: &ReceivedJob, slot: Slot, build_dir: &str) -> BTreeMap<String, String> {
        let timeout = received.facts.timeout.map(|timeout| timeout.as_secs().to_string()).unwrap_or_default();
        let own = [
            ("CI_BUILDS_DIR", self.builds_dir.clone()),
            ("CI_PROJECT_DIR", build_dir.to_owned()),
            ("CI_CONCURRENT_ID", slot.of_runner.to_string()),
            ("CI_CONCURRENT_PROJECT_ID", slot.of_project.to_string()),
            ("CI_SERVER", "yes".to_owned()),
            ("CI_JOB_STATUS", "running".to_owned()),
            ("CI_JOB_TIMEOUT", timeout),
            ("CI_RUNNER_SHORT_TOKEN", self.short_token.clone()),
            ("CI_RUNNER_VERSION", env!("CARGO_PKG_VERSION").to_owned()),
            ("CI_SHARED_ENVIRONMENT", "true".to_owned()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.environment.clone()).collect()
    }
}

fn steps(received: &ReceivedJob, here: &Here) -> Result<Translation, Report> {
    let refused =
        |message: String| Report { exit_code: UNSUPPORTED, ..Report::failed(FailureReason::RunnerSystemFailure).because(message) };
    if !received.facts.unsupported_options.is_empty() {
        let names = received.facts.unsupported_options.join("`, `");
        return Err(refused(format!("the job asks for options that no executor knows: `{names}`")));
    }
    let payload = std::str::from_utf8(&received.payload).map_err(|_| refused("the payload of the job is not UTF-8".to_owned()))?;
    let translation = steps_of(payload, here, &BTreeMap::new()).map_err(|problems| refused(listed(&problems)))?;
    match translation.not_done.iter().find(|part| part.refused) {
        Some(part) => Err(refused(format!("{}; {}", part.what, part.way_out))),
        None => Ok(translation),
    }
}

fn listed(problems: &[Problem]) -> String {
    let errors = problems.iter().filter(|problem| problem.is_error()).map(|problem| problem.message.as_str());
    format!("the job cannot be read: {}", errors.collect::<Vec<_>>().join("; "))
}

/// A path below the directory of builds, whatever a server calls its projects.
fn safe(project: &str) -> String {
    let parts = project.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.map(|part| part.replace(['\\', '\0'], "_")).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::{Value, json};

    fn place() -> Place {
        Place {
            builds_dir: "/builds/".to_owned(),
            name: "mine".to_owned(),
            short_token: "abc".to_owned(),
            builtins: Vec::new(),
            ignore_image: true,
            environment: [("FROM_ENTRY".to_owned(), "1".to_owned())].into(),
        }
    }

    fn put(more: &Value) -> Placed {
        let mut payload = json!({
            "id": 7, "token": "t", "job_info": {"name": "x", "project_full_path": "group/project"},
            "variables": [{"key": "CI_SERVER", "value": "mine"}],
            "steps": [{"name": "script", "script": ["true"]}],
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let received = ReceivedJob::read(&payload, Bytes::from(payload.to_string())).expect("a job");
        place().put(&received, Slot { of_runner: 2, of_project: 1 })
    }

    #[test]
    fn a_job_runs_in_a_directory_of_its_own_and_knows_it() {
        let placed = put(&json!({}));
        assert_eq!(placed.build_dir, "/builds/abc/1/group/project");
        let translation = placed.steps.expect("steps");
        let value = |name: &str| translation.request.variables.iter().find(|one| *one.key == *name).map(|one| one.value.to_string());
        assert_eq!(value("CI_PROJECT_DIR").as_deref(), Some("/builds/abc/1/group/project"));
        assert_eq!((value("CI_CONCURRENT_ID"), value("FROM_ENTRY")), (Some("2".into()), Some("1".into())));
        assert_eq!(value("CI_SERVER").as_deref(), Some("mine"), "the job's own variables win");
    }

    #[test]
    fn case_30_what_nobody_can_do_is_refused_before_anything_runs() {
        let placed = put(&json!({"image": {"name": "ruby", "executor_opts": {"powpow": {}}}}));
        let report = placed.steps.expect_err("refused");
        assert_eq!((report.failure, report.exit_code), (Some(FailureReason::RunnerSystemFailure), 3));
        assert!(report.message.expect("why").contains("`powpow`"));
        let placed = put(&json!({"run": "[{\"name\": 1}]", "steps": []}));
        assert_eq!(placed.steps.expect_err("refused").exit_code, 3);
    }

    #[test]
    fn no_name_of_a_project_leaves_the_directory_of_builds() {
        let placed = put(&json!({"job_info": {"project_full_path": "../../etc//x\\y"}}));
        assert_eq!(placed.build_dir, "/builds/abc/1/etc/x_y");
    }
}
