//! Where the jobs of an entry run, and what the runner adds to them.

use super::caches::Caches;
use super::{DEFAULT_TIMEOUT, added};
use crate::source::slots::Slot;
use runner_config::settings::{Docker, Executor, Runner as Entry};
use runner_control::report::{FailureReason, Report};
use runner_gitlab::{ReceivedJob, ServerUrl};
use std::collections::BTreeMap;
use std::path::Path;
use step_model::diagnostic::Problem;
use step_model::time::Timestamp;
use step_payload::{ArtifactPlace, Here, Translation, steps_of};

/// What an entry says about every job.
#[derive(Debug, Clone)]
pub struct Place {
    /// Absolute, on the instance.
    pub builds_dir: String,
    /// Of the entry, for people.
    pub name: String,
    /// What directories and variables call the runner.
    pub short_token: String,
    /// The same for all jobs: the steps that agents have and those in their place, what is added to every job.
    pub here: Here,
    pub caches: Caches,
    /// Of an entry whose jobs run in containers.
    pub docker: Option<Docker>,
    /// Jobs without an image are refused: the executor has nothing else to run them in.
    pub needs_image: bool,
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
    /// `current`: the directory of this process, for an entry that names none. `authority`: certificates that jobs may trust besides.
    pub fn of(entry: &Entry, short_token: &str, current: &Path, authority: Option<String>) -> Self {
        let below = |given: &Option<String>, usual: &str| match given {
            Some(dir) => dir.clone(),
            None => current.join(usual).to_string_lossy().into_owned(),
        };
        let has_containers = entry.executor.is_some_and(Executor::has_containers);
        let containers = ["docker", "service"].into_iter().filter(|_| has_containers);
        let added = added::of(entry, authority);
        let (caches, why) = Caches::of(entry.cache.as_ref(), below(&entry.cache_dir, "cache"), short_token);
        if let Some(why) = why {
            tracing::warn!(runner = entry.shown_name(), "{why}");
        }
        Self {
            name: entry.shown_name(),
            builds_dir: below(&entry.builds_dir, "builds"),
            short_token: short_token.to_owned(),
            docker: entry.docker.clone().filter(|_| has_containers),
            needs_image: has_containers && added.containers.image.is_empty(),
            here: Here {
                builtins: ["checkout", "cache", "artifact"].into_iter().chain(containers).map(str::to_owned).collect(),
                references: entry.steps.clone(),
                largest_cache: entry.cache.as_ref().and_then(|cache| cache.max_uploaded_archive_size).unwrap_or_default(),
                ignore_image: !has_containers,
                added,
                live: true,
                ..Here::default()
            },
            caches,
            environment: entry.environment.iter().map(|variable| (variable.name.clone(), variable.value.expose().to_owned())).collect(),
        }
    }

    /// `server`: where the job came from, which takes its artifacts.
    pub fn put(&self, received: &ReceivedJob, slot: Slot, server: &ServerUrl, now: Timestamp) -> Placed {
        let project = safe(received.facts.project.as_deref().unwrap_or("project"));
        let build_dir = format!("{}/{}/{}/{project}", self.builds_dir.trim_end_matches('/'), self.short_token, slot.of_project);
        let limit = received.facts.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let mut here = Here {
            caches: self.caches.place(received, &project, limit, now),
            artifacts: ArtifactPlace::Server { url: Some(server.to_string()) },
            predefined: self.predefined(received, slot, &build_dir),
            ..self.here.clone()
        };
        if let Some(docker) = &self.docker {
            let project = received.facts.project_id.unwrap_or_default();
            let mounts = added::mounts(docker, &self.short_token, project, slot.of_project);
            here.added.containers.inputs.insert("mounts".to_owned(), mounts.into());
        }
        let steps = if self.needs_image && !received.facts.has_image {
            Err(refused("the job names no image, and `image` of `[runners.docker]` is not set either".to_owned()))
        } else {
            steps(received, &here)
        };
        Placed { steps, build_dir }
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

fn refused(message: String) -> Report {
    Report { exit_code: UNSUPPORTED, ..Report::failed(FailureReason::RunnerSystemFailure).because(message) }
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

    fn place(entry: &str) -> Place {
        let text = format!("[[runners]]\nname = \"mine\"\nurl = \"https://x\"\ntoken = \"glrt-abc\"\nbuilds_dir = \"/builds/\"\n{entry}");
        let parsed = runner_config::parse(&text, &BTreeMap::new());
        let entry = parsed.settings.unwrap_or_else(|| panic!("{:?}", parsed.problems)).runners.remove(0);
        Place::of(&entry, "abc", Path::new("/here"), None)
    }

    fn put(more: &Value) -> Placed {
        put_in(&place("executor = \"shell\"\nenvironment = [\"FROM_ENTRY=1\"]\n"), more)
    }

    fn put_in(place: &Place, more: &Value) -> Placed {
        let mut payload = json!({
            "id": 7, "token": "t", "job_info": {"name": "x", "project_full_path": "group/project"},
            "variables": [{"key": "CI_SERVER", "value": "mine"}],
            "steps": [{"name": "script", "script": ["true"]}],
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let received = ReceivedJob::read(&payload, Bytes::from(payload.to_string())).expect("a job");
        let server = ServerUrl::parse("https://gitlab.example/").expect("an address");
        place.put(&received, Slot { of_runner: 2, of_project: 1 }, &server, Timestamp::from_nanoseconds(0))
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

    #[test]
    fn a_job_that_must_run_in_a_container_never_runs_on_the_machine() {
        let without = place("executor = \"docker\"\n");
        let report = put_in(&without, &json!({})).steps.expect_err("refused");
        assert!(report.message.expect("why").starts_with("the job names no image"));
        assert!(put_in(&without, &json!({"image": {"name": "ruby"}})).steps.is_ok());
        assert!(put_in(&place("executor = \"docker\"\n[runners.docker]\nimage = \"alpine\"\n"), &json!({})).steps.is_ok());
    }
}
