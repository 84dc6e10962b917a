//! What an operator chose, as plain values: already read, checked and given defaults by others.

use crate::id::RunnerId;
use crate::taskscaler::policy::Scaling;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// For the whole process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Jobs at once, over all runners.
    pub concurrent: u32,
    /// How long until an idle runner is asked for again. Zero is 3 s. While there is work it holds nothing back, unless a runner is `strict`.
    pub check_interval: Duration,
    /// How long a forced stop may take.
    pub shutdown_timeout: Duration,
    pub runners: BTreeMap<RunnerId, RunnerSettings>,
}

/// For one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunnerSettings {
    /// For people.
    pub name: String,
    /// Why this entry takes no jobs at all (an empty token, an executor that does not exist). Its running jobs are finished.
    pub refused: Option<String>,
    /// Jobs at once. Zero is no limit.
    pub limit: u32,
    /// Polls at once. Zero is one.
    pub request_concurrency: u32,
    /// The number of polls follows what they bring (`FF_USE_ADAPTIVE_REQUEST_CONCURRENCY`).
    pub is_adaptive: bool,
    /// No second poll before `check_interval` has passed, also after a job.
    pub is_strict: bool,
    /// So many refused polls in a row turn the runner off.
    pub unhealthy_requests_limit: u32,
    /// The longest time that it stays off.
    pub unhealthy_interval: Duration,
    /// Tell the server every 30 s that a job is being prepared. Off for servers that do not know it; one that refuses is noticed.
    pub beats: bool,
    pub environments: Environments,
}

/// Where a runner's jobs run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environments {
    pub shape: Shape,
    /// Environments at once, those being removed included. [`u32::MAX`] is no limit.
    pub max_instances: u32,
    /// How many of a group there are at a moment.
    #[serde(default = "fixed")]
    pub scaling: Scaling,
    /// Jobs at once in one environment. Zero is one.
    pub capacity_per_instance: u32,
    /// Jobs that an environment may run before it is removed. Zero is no limit.
    pub max_use_count: u32,
    /// A job is only taken when an environment that is ready has a place for it. Else it is enough that one is coming or can be asked for. Where the number
    /// of instances follows policies, they say it.
    pub only_when_ready: bool,
    /// How long a job waits for its environment.
    pub acquire_timeout: Duration,
    /// How long an environment may take from being asked for until it is listed as running.
    pub creation_timeout: Duration,
    /// How long a running one may take until its agent answers.
    pub ready_timeout: Duration,
    /// How often the provider is asked what there is, and how often while something is expected to change.
    pub update_interval: Duration,
    pub update_interval_when_expecting: Duration,
    /// After a removal that failed.
    pub deletion_retry_interval: Duration,
    pub delete_on_shutdown: bool,
    /// Whether instances that are there at the start are used again. Else those that hold no job are removed, since nobody knows what happened on them.
    #[serde(default = "yes")]
    pub keeps_found: bool,
}

/// The two shapes of what gives environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Equal instances: as many as `scaling` says.
    Group,
    /// One for each job, asked for with what the job needs, and removed after it.
    PerJob,
}

/// Of histories that were written before groups were scaled.
fn fixed() -> Scaling {
    Scaling::Fixed
}

fn yes() -> bool {
    true
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrent: 1, check_interval: Duration::from_secs(3), shutdown_timeout: Duration::from_secs(30), runners: BTreeMap::new() }
    }
}

impl Settings {
    /// The pause between two polls of an idle runner.
    pub fn pause(&self) -> Duration {
        if self.check_interval.is_zero() { Duration::from_secs(3) } else { self.check_interval }
    }
}

impl RunnerSettings {
    /// GitLab's defaults.
    pub fn new(name: &str, environments: Environments) -> Self {
        Self {
            name: name.into(),
            refused: None,
            limit: 0,
            request_concurrency: 1,
            is_adaptive: true,
            is_strict: false,
            unhealthy_requests_limit: 3,
            unhealthy_interval: Duration::from_secs(60 * 60),
            beats: true,
            environments,
        }
    }

    pub fn request_concurrency(&self) -> u32 {
        self.request_concurrency.max(1)
    }
}

impl Environments {
    /// GitLab's defaults, for so many environments.
    pub fn new(shape: Shape, max_instances: u32) -> Self {
        Self {
            shape,
            max_instances,
            scaling: Scaling::Fixed,
            capacity_per_instance: 1,
            max_use_count: 0,
            only_when_ready: false,
            acquire_timeout: Duration::from_secs(15 * 60),
            creation_timeout: Duration::from_secs(15 * 60),
            ready_timeout: Duration::from_secs(5 * 60),
            update_interval: Duration::from_secs(60),
            update_interval_when_expecting: Duration::from_secs(2),
            deletion_retry_interval: Duration::from_secs(60),
            delete_on_shutdown: false,
            keeps_found: true,
        }
    }

    /// Jobs at once in one environment. One that is made for a job holds that job alone.
    pub fn capacity(&self) -> u32 {
        match self.shape {
            Shape::Group => self.capacity_per_instance.max(1),
            Shape::PerJob => 1,
        }
    }

    /// Jobs that an environment may run in its life.
    pub fn uses(&self) -> u32 {
        match (self.shape, self.max_use_count) {
            (Shape::PerJob, _) => 1,
            (Shape::Group, 0) => u32::MAX,
            (Shape::Group, uses) => uses,
        }
    }
}
