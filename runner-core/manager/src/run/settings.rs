//! A configuration file becomes what the controller decides by.

use runner_config::settings::{Autoscaler, Executor, Runner};
use runner_control::id::RunnerId;
use runner_control::settings::{Environments, RunnerSettings, Settings, Shape};
use std::collections::BTreeMap;
use std::time::Duration;

/// The jobs at once of an entry without a limit and without instances of its own.
const UNLIMITED: u32 = u32::MAX;

/// The settings of all entries that can be served. `environment` is that of the process: feature flags may stand there.
pub fn controller(config: &runner_config::Settings, environment: &BTreeMap<String, String>) -> Settings {
    let concurrent = count(config.global.concurrent);
    Settings {
        concurrent,
        check_interval: config.global.check_interval,
        shutdown_timeout: config.global.shutdown_timeout,
        runners: config.runners.iter().map(|runner| (id(runner), entry(runner, concurrent, environment))).collect(),
    }
}

/// Stays the same over restarts and new tokens.
pub fn id(runner: &Runner) -> RunnerId {
    RunnerId::new(&runner.identity())
}

fn entry(runner: &Runner, concurrent: u32, environment: &BTreeMap<String, String>) -> RunnerSettings {
    let environments = match (&runner.autoscaler, runner.executor) {
        (Some(autoscaler), Some(Executor::Instance | Executor::DockerAutoscaler)) => of_plugin(autoscaler, concurrent),
        _ => of_this_machine(runner, concurrent),
    };
    RunnerSettings {
        limit: runner.limit.map_or(0, count),
        request_concurrency: count(runner.request_concurrency),
        is_adaptive: runner.has_feature("FF_USE_ADAPTIVE_REQUEST_CONCURRENCY", environment),
        is_strict: runner.strict_check_interval,
        unhealthy_requests_limit: count(runner.unhealthy_requests_limit),
        unhealthy_interval: runner.unhealthy_interval,
        ..RunnerSettings::new(&runner.shown_name(), environments)
    }
}

fn of_plugin(autoscaler: &Autoscaler, concurrent: u32) -> Environments {
    let capacity = count(autoscaler.capacity_per_instance).max(1);
    // More instances than all jobs of the process need are never ready for anything.
    let needed = concurrent.div_ceil(capacity);
    let max_instances = autoscaler.max_instances.map_or(needed, |most| count(most).min(needed));
    Environments {
        capacity_per_instance: capacity,
        max_use_count: autoscaler.max_use_count.map_or(0, count),
        only_when_ready: autoscaler.policies.iter().any(|policy| policy.preemptive_mode),
        acquire_timeout: autoscaler.instance_acquire_timeout,
        update_interval: autoscaler.update_interval,
        update_interval_when_expecting: autoscaler.update_interval_when_expecting,
        deletion_retry_interval: autoscaler.deletion_retry_interval,
        delete_on_shutdown: autoscaler.delete_instances_on_shutdown,
        ..Environments::new(Shape::Group, max_instances)
    }
}

/// One agent takes all jobs of the entry.
fn of_this_machine(runner: &Runner, concurrent: u32) -> Environments {
    Environments {
        capacity_per_instance: runner.limit.map_or(UNLIMITED, count).min(concurrent),
        update_interval_when_expecting: Duration::from_millis(50),
        creation_timeout: Duration::from_secs(60),
        // It has nothing to do when there is no runner. Jobs that are left on purpose keep it.
        delete_on_shutdown: true,
        ready_timeout: Duration::from_secs(60),
        ..Environments::new(Shape::Group, 1)
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Settings {
        let parsed = runner_config::parse(text, &BTreeMap::new());
        controller(&parsed.settings.unwrap_or_else(|| panic!("{:?}", parsed.problems)), &BTreeMap::new())
    }

    #[test]
    fn a_group_has_no_more_instances_than_all_jobs_need() {
        let settings = read(
            "concurrent = 10\n[[runners]]\nname = \"a\"\nid = 7\nurl = \"https://gitlab.example/\"\ntoken = \"glrt-x\"\nexecutor = \"instance\"\nlimit = 8\n\
             [runners.autoscaler]\nplugin = \"local\"\ncapacity_per_instance = 4\nmax_instances = 20\n[[runners.autoscaler.policy]]\nidle_count = 0\n",
        );
        let (id, entry) = settings.runners.first_key_value().expect("an entry");
        assert_eq!(id.as_str(), "https://gitlab.example#7");
        assert_eq!((entry.limit, entry.environments.max_instances, entry.environments.capacity_per_instance), (8, 3, 4));
        assert!(entry.is_adaptive && !entry.is_strict);
    }

    #[test]
    fn jobs_of_a_shell_are_taken_by_one_agent() {
        let settings = read("concurrent = 10\n[[runners]]\nurl = \"https://gitlab.example/\"\ntoken = \"glrt-x\"\nexecutor = \"shell\"\n");
        let entry = settings.runners.values().next().expect("an entry");
        assert_eq!((entry.environments.max_instances, entry.environments.capacity_per_instance), (1, 10));
    }
}
