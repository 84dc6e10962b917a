//! Settings of `[runners.machine]`.

use super::autoscaler::schedule;
use crate::checked::Checked;
use crate::gather::Gather;
use crate::schedule::Form;
use crate::secret::Secret;
pub use runner_control::taskscaler::policy::{IdleFigures, MachinePeriod, PeriodKind};
use std::ops::Range;
use std::time::Duration;

/// Machines of `docker+machine`.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Machines that are being made at once. `None`: any number.
    pub max_growth_rate: Option<u64>,
    /// What counts while no period matches.
    pub idle: IdleFigures,
    /// In the order of the file: the last that matches counts. Off Peak settings are one period where there is no other.
    pub periods: Vec<MachinePeriod>,
    /// Jobs of a machine before it is removed. `None`: any number.
    pub max_builds: Option<u64>,
    /// Empty in an entry that is refused for it. The same for the next one.
    pub driver: String,
    /// Holds `%s`.
    pub name: String,
    pub options: Vec<Secret>,
    /// Each holds `%s`.
    pub options_with_name: Vec<Secret>,
    pub max_removal_attempts: u64,
}

pub(super) fn of(table: &Checked, gather: &mut Gather<'_>) -> Machine {
    let idle = figures(table);
    let mut periods: Vec<MachinePeriod> = table.tables("autoscaling").iter().map(period).collect();
    periods.extend(off_peak(table, idle, gather));
    Machine {
        max_growth_rate: table.limit("MaxGrowthRate"),
        idle,
        periods,
        max_builds: table.limit("MaxBuilds"),
        driver: table.text("MachineDriver").unwrap_or_default(),
        name: table.text("MachineName").unwrap_or_default(),
        options: secrets(table, "MachineOptions"),
        options_with_name: secrets(table, "MachineOptionsWithName"),
        max_removal_attempts: table.count("MaxRemovalAttempts"),
    }
}

fn figures(table: &Checked) -> IdleFigures {
    let scale_factor = table.number("IdleScaleFactor");
    let count_min = table.count("IdleCountMin");
    IdleFigures {
        count: table.count("IdleCount"),
        scale_factor,
        count_min: if scale_factor > 0.0 { count_min.max(1) } else { count_min },
        time: table.seconds("IdleTime"),
    }
}

fn period(table: &Checked) -> MachinePeriod {
    let schedule = schedule(table.texts("Periods"), table.text("Timezone"), Form::Seven, "");
    MachinePeriod { schedule, kind: PeriodKind::Autoscaling, idle: figures(table) }
}

fn off_peak(table: &Checked, idle: IdleFigures, gather: &mut Gather<'_>) -> Option<MachinePeriod> {
    let periods = table.texts("OffPeakPeriods");
    if periods.is_empty() {
        return None;
    }
    let place: Option<Range<usize>> = Some(table.place("OffPeakPeriods"));
    if !table.tables("autoscaling").is_empty() {
        let message = "the Off Peak settings have no effect beside `[[runners.machine.autoscaling]]`";
        gather.warn("off-peak", message, place, "remove them, or make them one more `[[runners.machine.autoscaling]]`");
        return None;
    }
    let (count, seconds) = (table.count("OffPeakIdleCount"), table.count("OffPeakIdleTime"));
    let zone = table.text("OffPeakTimezone");
    let hint = format!(
        "the same as `[[runners.machine.autoscaling]]` with Periods = {}, Timezone = {}, IdleCount = {count}, IdleTime = {seconds}",
        serde_json::json!(periods),
        serde_json::json!(zone.clone().unwrap_or_default()),
    );
    gather.note("off-peak", "the Off Peak settings are deprecated, and honoured", place, hint);
    let schedule = schedule(periods, zone, Form::Seven, "");
    Some(MachinePeriod { schedule, kind: PeriodKind::OffPeak, idle: IdleFigures { count, time: Duration::from_secs(seconds), ..idle } })
}

/// What an entry whose machines come from here cannot do without.
pub(super) fn check(table: &Checked, gather: &mut Gather<'_>) {
    if table.text("MachineDriver").is_none() {
        let hint = "name the driver that makes machines";
        gather.absent("no-driver", "`[runners.machine]` has no `MachineDriver`", table.span.clone(), hint);
    }
    match table.text("MachineName") {
        None => {
            let hint = "write `MachineName = \"auto-scale-%s\"`";
            gather.absent("no-name", "`[runners.machine]` has no `MachineName`", table.span.clone(), hint);
        }
        Some(name) if !name.contains("%s") => {
            let message = format!("`MachineName` = `{name}` has no `%s`, so all machines would have one name");
            gather.refuse("no-name", message, Some(table.place("MachineName")), format!("write `MachineName = \"{name}-%s\"`"));
        }
        Some(_) => {}
    }
    if table.texts("MachineOptionsWithName").iter().any(|option| !option.contains("%s")) {
        let place = table.place("MachineOptionsWithName");
        let hint = "an option without the machine's name belongs into `MachineOptions`";
        gather.refuse("no-name", "an item of `MachineOptionsWithName` has no `%s`", Some(place), hint);
    }
}

fn secrets(table: &Checked, key: &str) -> Vec<Secret> {
    table.texts(key).into_iter().map(Secret::new).collect()
}
