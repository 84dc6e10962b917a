//! The limits of the job's steps, held by the container that they run in: `STEP_RUNNER_LIMITS` (docs/reference/limits.md).

use crate::quantity;
use crate::settings::{Limits, Settings};

/// What the variable holds.
pub const VARIABLE: &str = "STEP_RUNNER_LIMITS";

impl Settings {
    /// Of what the inputs and the job ask for, the lower holds. The host has checked the text, so what is not known is of a later one and is held inside.
    pub fn hold(&mut self, limits: &str) {
        for (name, value) in limits.split(',').filter_map(|part| part.split_once('=')) {
            let Limits { nano_cpus, memory, pids, .. } = &mut self.limits;
            match name {
                "cpu" => lower(nano_cpus, value.parse::<f64>().ok().map(billionths)),
                "memory" => lower(memory, quantity::bytes(value)),
                "pids" => lower(pids, value.parse().ok()),
                "network" if value == "none" => self.network = Some("none".to_owned()),
                _ => continue,
            }
            self.held.push(name.to_owned());
        }
    }
}

fn billionths(cores: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the host has at most some thousand cores")]
    let billionths = (cores * 1e9).round() as i64;
    billionths
}

fn lower(limit: &mut Option<i64>, other: Option<i64>) {
    *limit = match (*limit, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Permissions;
    use serde_json::json;

    #[test]
    fn the_container_is_held_to_the_lower_of_both() {
        let inputs = json!({"image": "a", "memory": "64m", "cpus": 2.0});
        let mut settings = Settings::check(serde_json::from_value(inputs).unwrap(), &Permissions::default()).unwrap();
        settings.hold("cpu=0.5,memory=1GiB,pids=100,disk=1GiB,network=none,later=1");
        let expected = Limits { nano_cpus: Some(500_000_000), memory: Some(64 << 20), pids: Some(100), shm_size: None };
        assert_eq!((settings.limits, settings.network.as_deref()), (expected, Some("none")));
        assert_eq!(settings.held.join(","), "cpu,memory,pids,network", "what is left is held inside");
    }
}
