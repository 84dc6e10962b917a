//! The keys of `[runners.machine]`.

use super::{Kind, Standing, Table, key};
use crate::schedule::Form;

const PLUGIN: &str = "the plugin `docker-machine`";

pub(super) static MACHINE: Table = Table {
    name: "runners.machine",
    is_list: false,
    about: "Machines of `docker+machine`.",
    standing: Standing::Honoured,
    keys: &[
        key("MaxGrowthRate", Kind::Whole, "machines that are being made at once; 0 for any number").default("0"),
        key("IdleCount", Kind::Whole, "idle machines; 0 makes a machine when a job needs one").default("0"),
        key("IdleScaleFactor", Kind::Number, "idle machines for each busy one, at most `IdleCount`").default("0.0"),
        key("IdleCountMin", Kind::Whole, "least idle machines with a factor").unset("1 with a factor"),
        key("IdleTime", Kind::Seconds, "how long a machine stays idle before it is removed").default("0"),
        key("MaxBuilds", Kind::Whole, "jobs of a machine before it is removed; 0 for any number").default("0"),
        key("MachineDriver", Kind::Text, "driver that makes machines").mapped(PLUGIN),
        key("MachineName", Kind::Text, "name of a machine; holds `%s`").mapped(PLUGIN),
        key("MachineOptions", Kind::SecretTexts, "options of the driver and of the engine, such as `engine-registry-mirror=...`")
            .mapped(PLUGIN),
        key("MachineOptionsWithName", Kind::SecretTexts, "the same with the machine's name for `%s`").mapped(PLUGIN),
        key("MaxRemovalAttempts", Kind::Whole, "attempts before a machine is removed by force").default("30").mapped(PLUGIN),
        key("OffPeakPeriods", Kind::Periods(Form::Seven), "when the next two keys take the place of `IdleCount` and `IdleTime`")
            .mapped("honoured while there is no `[[runners.machine.autoscaling]]`, as one more period"),
        key("OffPeakTimezone", Kind::Zone, "of those periods").unset("the host's").mapped(OFF_PEAK),
        key("OffPeakIdleCount", Kind::Whole, "idle machines off peak").default("0").mapped(OFF_PEAK),
        key("OffPeakIdleTime", Kind::Seconds, "idle time off peak").default("0").mapped(OFF_PEAK),
        key("autoscaling", Kind::Tables(&AUTOSCALING), "other figures for a time"),
    ],
};

const OFF_PEAK: &str = "see `OffPeakPeriods`";

static AUTOSCALING: Table = Table {
    name: "runners.machine.autoscaling",
    is_list: true,
    about: "Other figures while one of the periods matches. The last table that matches counts, else those of `[runners.machine]`.",
    standing: Standing::Honoured,
    keys: &[
        key("Periods", Kind::Periods(Form::Seven), "when it counts"),
        key("Timezone", Kind::Zone, "of the periods").unset("the host's"),
        key("IdleCount", Kind::Whole, "idle machines").default("0"),
        key("IdleScaleFactor", Kind::Number, "idle machines for each busy one, at most `IdleCount`").default("0.0"),
        key("IdleCountMin", Kind::Whole, "least idle machines with a factor").unset("1 with a factor"),
        key("IdleTime", Kind::Seconds, "how long a machine stays idle before it is removed").default("0"),
    ],
};
