//! A configuration file becomes what the controller decides by.

use runner_config::schedule::{NamedZone, Schedule};
use runner_config::settings::machine::MachinePeriod;
use runner_config::settings::{Autoscaler, Executor, Machine, Policy, Runner};
use runner_control::id::RunnerId;
use runner_control::settings::{Environments, RunnerSettings, Settings, Shape};
use runner_control::taskscaler::policy::{MachineScaling, Scaling, SlotScaling};
use std::collections::BTreeMap;
use std::time::Duration;

/// The jobs at once of an entry without a limit and without instances of its own.
const UNLIMITED: u32 = u32::MAX;

/// The settings of all entries that can be served. `environment` is that of the process: feature flags may stand there. `host`: where periods without a zone
/// count.
pub fn controller(config: &runner_config::Settings, environment: &BTreeMap<String, String>, host: &NamedZone) -> Settings {
    let concurrent = count(config.global.concurrent);
    Settings {
        concurrent,
        check_interval: config.global.check_interval,
        shutdown_timeout: config.global.shutdown_timeout,
        runners: config.runners.iter().map(|runner| (id(runner), entry(runner, concurrent, environment, host))).collect(),
    }
}

/// Stays the same over restarts and new tokens.
pub fn id(runner: &Runner) -> RunnerId {
    RunnerId::new(&runner.identity())
}

/// Of one entry, served or not.
pub fn entry(runner: &Runner, concurrent: u32, environment: &BTreeMap<String, String>, host: &NamedZone) -> RunnerSettings {
    let environments = match (&runner.autoscaler, &runner.machine, runner.executor) {
        (Some(autoscaler), _, Some(Executor::Instance | Executor::DockerAutoscaler)) => of_plugin(autoscaler, host),
        (_, Some(machine), Some(Executor::DockerMachine) | None) => of_machines(machine, runner.limit, host),
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

fn of_plugin(autoscaler: &Autoscaler, host: &NamedZone) -> Environments {
    let settled = |policy: &Policy| Policy { schedule: policy.schedule.clone().settled(host), ..policy.clone() };
    Environments {
        scaling: Scaling::Slots(SlotScaling {
            policies: autoscaler.policies.iter().map(settled).collect(),
            throttle: autoscaler.scale_throttle,
            reservation_throttling: autoscaler.reservation_throttling,
        }),
        capacity_per_instance: count(autoscaler.capacity_per_instance).max(1),
        max_use_count: autoscaler.max_use_count.map_or(0, count),
        acquire_timeout: autoscaler.instance_acquire_timeout,
        update_interval: autoscaler.update_interval,
        update_interval_when_expecting: autoscaler.update_interval_when_expecting,
        deletion_retry_interval: autoscaler.deletion_retry_interval,
        delete_on_shutdown: autoscaler.delete_instances_on_shutdown,
        keeps_found: autoscaler.state_storage.enabled || autoscaler.vm_isolation.is_some(),
        ..Environments::new(Shape::Group, autoscaler.max_instances.map_or(u32::MAX, count))
    }
}

/// Machines of `docker+machine`: `limit` counts them too.
fn of_machines(machine: &Machine, limit: Option<u64>, host: &NamedZone) -> Environments {
    let settled = |schedule: &Schedule| schedule.clone().settled(host);
    let period = |period: &MachinePeriod| MachinePeriod { schedule: settled(&period.schedule), ..period.clone() };
    Environments {
        scaling: Scaling::Machines(MachineScaling {
            idle: machine.idle,
            periods: machine.periods.iter().map(period).collect(),
            max_growth_rate: machine.max_growth_rate.map(count),
        }),
        max_use_count: machine.max_builds.map_or(0, count),
        ..Environments::new(Shape::Group, limit.map_or(u32::MAX, count))
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
        controller(&parsed.settings.unwrap_or_else(|| panic!("{:?}", parsed.problems)), &BTreeMap::new(), &NamedZone::utc())
    }

    #[test]
    fn a_group_follows_its_policies_up_to_its_most() {
        let settings = read(
            "concurrent = 10\n[[runners]]\nname = \"a\"\nid = 7\nurl = \"https://gitlab.example/\"\ntoken = \"glrt-x\"\nexecutor = \"instance\"\nlimit = 8\n\
             [runners.autoscaler]\nplugin = \"local\"\ncapacity_per_instance = 4\nmax_instances = 20\n[[runners.autoscaler.policy]]\nidle_count = 3\n",
        );
        let (id, entry) = settings.runners.first_key_value().expect("an entry");
        assert_eq!(id.as_str(), "https://gitlab.example#7");
        assert_eq!((entry.limit, entry.environments.max_instances, entry.environments.capacity_per_instance), (8, 20, 4));
        let Scaling::Slots(slots) = &entry.environments.scaling else { panic!("{entry:?}") };
        assert_eq!((slots.policies.len(), slots.policies[0].idle_count, slots.policies[0].preemptive_mode), (1, 3, true));
        assert!(entry.is_adaptive && !entry.is_strict && !entry.environments.keeps_found);
    }

    #[test]
    fn jobs_of_a_shell_are_taken_by_one_agent() {
        let settings = read("concurrent = 10\n[[runners]]\nurl = \"https://gitlab.example/\"\ntoken = \"glrt-x\"\nexecutor = \"shell\"\n");
        let entry = settings.runners.values().next().expect("an entry");
        assert_eq!((entry.environments.max_instances, entry.environments.capacity_per_instance), (1, 10));
    }
}
