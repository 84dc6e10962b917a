//! Where the clocks of this machine stand.

use runner_config::schedule::NamedZone;
use std::collections::BTreeMap;

/// The zone of this machine: by `TZ`, else as `/etc/localtime` has it, else UTC.
pub fn host_zone(variables: &BTreeMap<String, String>) -> NamedZone {
    let by_name = variables.get("TZ").and_then(|name| NamedZone::parse(name.trim_start_matches(':')));
    let by_file = || NamedZone::of_data("local time", &std::fs::read("/etc/localtime").ok()?);
    by_name.or_else(by_file).unwrap_or_else(NamedZone::utc)
}
