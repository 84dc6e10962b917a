//! The bytes that each step has sent and received, where the network is that of the job alone: steps run one after the other, so what was counted since
//! the last one is the next one's.

use crate::around;
use step_model::result::Traffic;

/// `None`: the network is shared, and nobody can tell whose bytes they are.
#[derive(Debug)]
pub struct Network(Option<Traffic>);

impl Network {
    pub fn new() -> Self {
        Self(around::has_own_network().then(counters).flatten())
    }

    /// What was counted since it was asked last.
    pub fn since(&mut self) -> Option<Traffic> {
        let before = self.0?;
        let now = counters()?;
        self.0 = Some(now);
        Some(Traffic { incoming: now.incoming.saturating_sub(before.incoming), outgoing: now.outgoing.saturating_sub(before.outgoing) })
    }
}

#[cfg(target_os = "linux")]
fn counters() -> Option<Traffic> {
    crate::system::network::counters()
}

#[cfg(not(target_os = "linux"))]
fn counters() -> Option<Traffic> {
    None
}
