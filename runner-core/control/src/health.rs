//! Whether a server serves a runner: one that refuses again and again is left alone for a while.

use crate::attempt::Attempt;
use crate::settings::RunnerSettings;
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// After so long a small request asks whether the server is back, and again after as long: operators found runners asleep for an hour after an outage of
/// minutes.
const PROBE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub(crate) struct ServerHealth {
    /// Polls in a row that were refused.
    refused: u32,
    /// Until then no poll, unless a probe says otherwise.
    off_until: Option<Deadline>,
    last_reason: Option<String>,
    pub probe: Attempt,
}

impl ServerHealth {
    pub fn on_healthy(&mut self) {
        self.refused = 0;
        self.off_until = None;
        self.last_reason = None;
    }

    pub fn on_refused(&mut self, reason: String, settings: &RunnerSettings, now: Now) {
        self.refused = self.refused.saturating_add(1);
        self.last_reason = Some(reason);
        if self.refused >= settings.unhealthy_requests_limit.max(1) && self.off_until.is_none() {
            self.off_until = Some(Deadline::after(now, settings.unhealthy_interval));
            self.probe.not_before(Deadline::after(now, PROBE));
        }
    }

    /// The probe was answered.
    pub fn on_probed(&mut self, is_served: bool, now: Now) {
        if is_served {
            self.on_healthy();
        } else {
            self.probe.not_before(Deadline::after(now, PROBE));
        }
    }

    /// True when the runner may be polled. When the longest pause has passed it is given as many polls as before.
    pub fn allows(&mut self, now: Now) -> bool {
        if self.off_until.is_some_and(|deadline| deadline.has_passed(now)) {
            self.on_healthy();
        }
        self.off_until.is_none()
    }

    pub fn is_off(&self) -> bool {
        self.off_until.is_some()
    }

    pub fn reason(&self) -> Option<&str> {
        self.last_reason.as_deref()
    }

    pub fn due(&self) -> Option<Deadline> {
        let off_until = self.off_until?;
        Some(self.probe.due().map_or(off_until, |probe| probe.min(off_until)))
    }
}
