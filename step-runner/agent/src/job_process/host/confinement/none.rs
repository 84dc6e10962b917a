//! Where nothing holds a limit: that is said.

use crate::job_process::command::Command;
use crate::limits::{self, Offer};
use crate::system::{Running, Spawner};
use std::path::Path;
use step_engine::event::{Exit, SpawnFault};
use step_model::limits::{AppliedLimit, LimitName, Limits};
use step_model::result::{StepId, Usage};

/// As on systems that have something.
#[derive(Debug)]
pub struct Confiner;

impl Confiner {
    pub fn new(_journal: Option<&Path>, _marker: &str) -> Self {
        Self
    }

    /// # Errors
    /// As [`Command::start`].
    pub fn start(
        &mut self,
        _step: StepId,
        limits: &Limits,
        command: &Command<'_>,
        spawner: &Spawner,
        streams: crate::job_process::Streams,
    ) -> Result<(Running, Vec<AppliedLimit>), SpawnFault> {
        let told = limits::plan(limits, &Offer::nothing("not on this system")).iter().map(limits::Planned::told).collect();
        command.start(spawner, streams).map(|running| (running, told))
    }

    #[expect(clippy::unused_self, reason = "the same face on every system")]
    pub fn ended(&mut self, _step: StepId, _exit: Exit, _usage: &mut Usage) -> Vec<LimitName> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the same face on every system")]
    pub fn sweep(&mut self) -> Option<String> {
        None
    }
}

pub fn remove_recorded(_inner: &Path, _marker: &str) {}
