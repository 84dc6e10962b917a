//! What whoever made the environment of an agent tells it of that: a container has a network of its own, and holds its steps to limits.
//!
//! It stands in variables of the agent's own environment, which no step sees.

#[cfg(target_os = "linux")]
use step_model::limits::LimitName;

/// `1`: the network that we see is ours alone, so its counters are those of our steps.
pub const OWN_NETWORK: &str = "STEP_RUNNER_OWN_NETWORK";
/// Names of limits that all of us are held to, with commas.
pub const HELD: &str = "STEP_RUNNER_HELD";

pub fn has_own_network() -> bool {
    std::env::var_os(OWN_NETWORK).is_some_and(|value| value == "1")
}

#[cfg(target_os = "linux")]
pub fn held() -> Vec<LimitName> {
    let names = std::env::var(HELD).unwrap_or_default();
    names.split(',').filter_map(LimitName::named).collect()
}
