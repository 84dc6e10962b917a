//! Metrics as Prometheus reads them. Names and labels are those of GitLab's runner and of fleeting where they have them; what is ours begins with
//! `runner_core_`.

use super::status::Status;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The text form, version 0.0.4.
pub fn text(status: &Status) -> String {
    let mut text = String::new();
    let version = escaped(&status.version);
    metric(&mut text, "gitlab_runner_version_info", "What this program is.", &[(format!("name=\"runner-core\",version=\"{version}\""), 1)]);
    let mut jobs: BTreeMap<String, u64> = BTreeMap::new();
    for runner in &status.runners {
        // A series that is missing looks like one that was forgotten.
        jobs.insert(format!("runner=\"{}\",state=\"running\"", escaped(&runner.name)), 0);
    }
    for job in &status.jobs {
        let name = status.runners.iter().find(|runner| runner.id == job.runner).map_or(job.runner.as_str(), |runner| runner.name.as_str());
        let state = serde_json::to_value(job.phase).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        *jobs.entry(format!("runner=\"{}\",state=\"{state}\"", escaped(name))).or_default() += 1;
    }
    metric(&mut text, "gitlab_runner_jobs", "Jobs in flight.", &jobs.into_iter().collect::<Vec<_>>());
    let of_runners = |value: fn(&super::status::Runner) -> u64| {
        status.runners.iter().map(|runner| (format!("runner=\"{}\"", escaped(&runner.name)), value(runner))).collect::<Vec<_>>()
    };
    metric(&mut text, "gitlab_runner_request_concurrency", "Requests for a job that are open.", &of_runners(|runner| runner.polls.into()));
    metric(&mut text, "runner_core_places_free", "Places for jobs that are free now.", &of_runners(|runner| runner.free.into()));
    metric(&mut text, "runner_core_jobs_waiting", "Jobs that wait for an instance.", &of_runners(|runner| runner.waiting.into()));
    metric(
        &mut text,
        "runner_core_held_back",
        "1 while no job is asked for.",
        &of_runners(|runner| u64::from(!runner.held_back.is_empty())),
    );
    let mut instances: BTreeMap<String, u64> = BTreeMap::new();
    for instance in &status.instances {
        *instances.entry(format!("state=\"{}\"", escaped(&instance.state))).or_default() += 1;
    }
    metric(&mut text, "fleeting_provisioner_instances", "Instances by their state.", &instances.into_iter().collect::<Vec<_>>());
    text
}

fn metric(text: &mut String, name: &str, what: &str, samples: &[(String, u64)]) {
    let _ = writeln!(text, "# HELP {name} {what}\n# TYPE {name} gauge");
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{{{labels}}} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_runner_has_its_series_and_names_cannot_break_out() {
        let runner = super::super::status::Runner {
            id: "u#1".to_owned(),
            name: "a\"b".to_owned(),
            jobs: 0,
            waiting: 0,
            polls: 1,
            instances: 0,
            free: 2,
            held_back: String::new(),
            trouble: None,
        };
        let status = Status { version: "1".to_owned(), runners: vec![runner], instances: Vec::new(), jobs: Vec::new() };
        let text = text(&status);
        assert!(text.contains("gitlab_runner_jobs{runner=\"a\\\"b\",state=\"running\"} 0\n"), "{text}");
        assert!(text.contains("runner_core_places_free{runner=\"a\\\"b\"} 2\n"), "{text}");
    }
}
