//! The body of an offered job, as the presenter of Rails makes it.

use crate::scenario::Burst;
use serde_json::{Value, json};

/// The payload of one job.
pub fn of(burst: &Burst, id: u64, token: &str, url: &str) -> Value {
    let variable = |key: &String, value: &String, masked: bool| json!({"key": key, "value": value, "public": !masked, "file": false, "masked": masked, "raw": false});
    let mut variables: Vec<Value> = [("CI", "true"), ("GITLAB_CI", "true"), ("CI_JOB_STATUS", "running")]
        .map(|(key, value)| json!({"key": key, "value": value, "public": true, "file": false, "masked": false, "raw": false}))
        .to_vec();
    variables.push(json!({"key": "CI_JOB_ID", "value": id.to_string(), "public": true, "file": false, "masked": false, "raw": false}));
    variables.push(json!({"key": "CI_JOB_TOKEN", "value": token, "public": false, "file": false, "masked": true, "raw": false}));
    variables.extend(burst.variables.iter().map(|(key, value)| variable(key, value, false)));
    variables.extend(burst.masked.iter().map(|(key, value)| variable(key, value, true)));
    let mut payload = json!({
        "id": id,
        "token": token,
        "allow_git_fetch": true,
        "job_info": {"name": burst.name, "stage": "test", "pipeline_id": 1, "project_id": 1, "project_name": "project", "project_full_path": "group/project",
                     "namespace_id": 1, "root_namespace_id": 1, "organization_id": 1, "instance_id": "mock", "user_id": 1, "time_in_queue_seconds": 0.1,
                     "project_jobs_running_on_instance_runners_count": "0", "queue_size": 0, "queue_depth": 0},
        "git_info": {"repo_url": repository(url, token), "repo_object_format": "sha1", "ref": "main", "sha": "0".repeat(40), "before_sha": "0".repeat(40),
                     "ref_type": "branch", "refspecs": ["+refs/pipelines/1:refs/pipelines/1", "+refs/heads/main:refs/remotes/origin/main"], "depth": 20, "protected": true},
        "runner_info": {"timeout": burst.timeout.duration().as_secs(), "uuid": "mock"},
        "inputs": [],
        "variables": variables,
        "steps": [{"name": "script", "script": burst.script, "timeout": burst.timeout.duration().as_secs(), "when": "on_success", "allow_failure": false}],
        "image": null,
        "services": [],
        "artifacts": [],
        "cache": [],
        "credentials": [],
        "dependencies": [],
        "hooks": [],
        "secrets": {},
        "features": {"trace_sections": true, "token_mask_prefixes": ["glpat-"],
                     "failure_reasons": ["unknown_failure", "script_failure", "runner_system_failure", "job_execution_timeout", "image_pull_failure",
                                         "runner_configuration_error", "runner_external_dependency_failure", "runner_interrupted", "job_canceled"]},
    });
    if let Some(object) = payload.as_object_mut() {
        for (key, value) in &burst.payload {
            object.insert(key.clone(), serde_json::to_value(value).unwrap_or(Value::Null));
        }
    }
    payload
}

fn repository(url: &str, token: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    format!("{scheme}://gitlab-ci-token:{token}@{}/group/project.git", rest.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_may_set_any_part_of_a_payload() {
        let burst = Burst { payload: [("image".to_owned(), toml::Value::String("ruby".to_owned()))].into(), ..Burst::default() };
        let payload = of(&burst, 7, "glcbt-7", "http://localhost:1");
        assert_eq!((&payload["id"], &payload["image"]), (&json!(7), &json!("ruby")));
        assert_eq!(payload["git_info"]["repo_url"], "http://gitlab-ci-token:glcbt-7@localhost:1/group/project.git");
        assert_eq!(payload["steps"][0]["script"], json!(["echo hello"]));
    }
}
