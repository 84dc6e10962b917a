//! What a configuration file says, in types that cannot be wrong: what the manager works with.

pub mod autoscaler;
pub mod cache;
pub mod docker;
pub mod executor;
pub mod machine;
pub mod remote;
pub mod runner;

mod address;
mod concurrency;
mod global;
mod results;

pub use autoscaler::{Autoscaler, Connector, Policy, ScaleThrottle, StateStorage, TimeBuckets, VmIsolation};
pub use cache::{Cache, CacheStore};
pub use docker::{Docker, DockerService, PullPolicy};
pub use executor::Executor;
pub use global::{Global, LogFormat, LogLevel, SessionServer, ShutdownDrain};
pub use machine::{IdleFigures, Machine, MachinePeriod, PeriodKind};
pub use remote::{Custom, Instance, Ssh};
pub use results::Results;
pub use runner::{BootVerify, Runner, Shell, Tls, Variable};

use crate::checked::Checked;
use crate::gather::Gather;
use crate::problem::{Problem, Severity};
use std::collections::BTreeMap;

/// A file that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub global: Global,
    /// The entries of `[[runners]]` that can be served, in the order of the file.
    pub runners: Vec<Runner>,
    /// Those that cannot, with what is known of them and why.
    pub refused: Vec<Refused>,
}

impl Settings {
    /// All entries, served or not, in the order of the file.
    pub fn entries(&self) -> Vec<&Runner> {
        let mut all: Vec<&Runner> = self.runners.iter().chain(self.refused.iter().map(|refused| &refused.runner)).collect();
        all.sort_by_key(|runner| runner.index);
        all
    }
}

/// An entry of `[[runners]]` that cannot work.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// As far as it could be read; what was wrong has its default.
    pub runner: Runner,
    /// Messages of the problems that make it so; the problems themselves have places and hints.
    pub reasons: Vec<String>,
}

/// Takes the settings out of a checked file. What is wrong by more than its type is reported here.
pub(crate) fn of(file: &Checked, variables: &BTreeMap<String, String>, gather: &mut Gather<'_>) -> Settings {
    let global = global::of(file, gather);
    let mut runners = Vec::new();
    for (index, entry) in file.tables("runners").iter().enumerate() {
        runners.push(gather.about_entry(index, |gather| runner::of(entry, index, &global, variables, gather)));
    }
    concurrency::check(&global, &runners, gather);
    runner::check_identities(&runners, file.tables("runners"), gather);
    let (mut served, mut refused) = (Vec::new(), Vec::new());
    for runner in runners {
        let reasons = reasons(&gather.problems, runner.index);
        if reasons.is_empty() { served.push(runner) } else { refused.push(Refused { runner, reasons }) }
    }
    Settings { global, runners: served, refused }
}

fn reasons(problems: &[Problem], index: usize) -> Vec<String> {
    let refusals = problems.iter().filter(|problem| problem.entry == Some(index) && problem.severity >= Severity::Refused);
    refusals.map(|problem| problem.message.clone()).collect()
}
