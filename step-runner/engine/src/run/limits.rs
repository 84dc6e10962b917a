//! What a step may use, and what is told when it came to that.

use crate::effect::Program;
use crate::run::Run;
use crate::run::frame::Phase;
use crate::run::node::Exec;
use step_model::limits::{AppliedLimit, LimitName, Limits};
use step_model::result::StepId;

impl Run {
    /// The limits of the process that the innermost step becomes. One that hands steps over only waits for them: they are what is limited, where
    /// they run. What is compiled in belongs to us, as the helper of GitLab's runner does: a checkout needs the network that a step may not have.
    pub(super) fn limits_of(&self, program: Option<&Program>) -> Limits {
        let frame = self.innermost();
        let is_ours = frame.planned.as_ref().is_some_and(|planned| planned.builtin);
        if is_ours || program.is_some_and(|program| program.handover.is_some()) { Limits::default() } else { frame.limits }
    }

    pub(super) fn on_limited(&mut self, step: StepId, limits: Vec<AppliedLimit>) {
        let Some(exec) = self.running(step) else { return };
        let unheld: Vec<_> = limits.iter().filter_map(|limit| Some((limit.name, limit.means.strip_prefix("none: ")?.to_owned()))).collect();
        exec.limits = Some(limits.into());
        for (name, why) in unheld {
            self.warn(step, format!("the limit `{name}` is not held: {why}"));
        }
    }

    pub(super) fn on_limit_reached(&mut self, step: StepId, limit: LimitName) {
        let limits = self.running(step).and_then(|exec| exec.limits.as_mut());
        for applied in limits.into_iter().flatten().filter(|applied| applied.name == limit) {
            applied.reached = true;
        }
    }

    /// The process that the run waits for.
    fn running(&mut self, step: StepId) -> Option<&mut Exec> {
        let is_running = matches!(self.phase, Phase::Process(_)) && self.innermost().id == step;
        self.nodes.get_mut(step.0 as usize).filter(|_| is_running)?.exec.as_deref_mut()
    }
}

/// Which limit a process came to, in words. `None`: none.
pub(super) fn reached(exec: &Exec) -> Option<String> {
    let reached = exec.limits.iter().flatten().find(|limit| limit.reached)?;
    let what = match reached.name {
        LimitName::Memory => "out of memory",
        LimitName::Pids => "too many processes",
        LimitName::Disk => "too much written to disk",
        LimitName::Cpu => "too much processor time",
        LimitName::Network => "no network",
    };
    Some(format!("{what} (the limit is {})", reached.value))
}
