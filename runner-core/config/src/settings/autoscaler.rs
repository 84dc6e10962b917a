//! Settings of `[runners.autoscaler]`.

use crate::checked::Checked;
use crate::gather::Gather;
use crate::schedule::{Form, Period, Schedule, Zone};
use crate::secret::{Opaque, Secret};
pub use runner_control::taskscaler::policy::{Policy, ScaleThrottle};
use std::time::Duration;

/// Instances of a fleeting plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Autoscaler {
    /// A path, a name in PATH, or an OCI reference `name:version`. Empty in an entry that is refused for it.
    pub plugin: String,
    /// A JSON object, as the plugin gets it.
    pub plugin_config: Opaque,
    pub connector: Connector,
    /// Jobs on an instance at once; at least 1.
    pub capacity_per_instance: u64,
    /// Jobs of an instance before it is removed. `None`: any number.
    pub max_use_count: Option<u64>,
    /// Instances at once, in whatever state. `None`: any number.
    pub max_instances: Option<u64>,
    pub instance_ready_command: Option<Secret>,
    pub instance_acquire_timeout: Duration,
    pub update_interval: Duration,
    pub update_interval_when_expecting: Duration,
    pub deletion_retry_interval: Duration,
    pub shutdown_deletion_interval: Duration,
    pub shutdown_deletion_retries: u64,
    pub failure_threshold: u64,
    pub scale_throttle: ScaleThrottle,
    pub reservation_throttling: bool,
    pub delete_instances_on_shutdown: bool,
    pub log_internal_ip: bool,
    pub log_external_ip: bool,
    pub time_buckets: TimeBuckets,
    /// In the order of the file: the last that matches counts.
    pub policies: Vec<Policy>,
    pub vm_isolation: Option<VmIsolation>,
    pub state_storage: StateStorage,
}

/// How instances are reached; replaces or fills what the plugin says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Connector {
    pub os: Option<String>,
    pub arch: Option<String>,
    /// `ssh`, `winrm`, `winrm+https`. `None`: by the operating system.
    pub protocol: Option<String>,
    /// `None`: the protocol's.
    pub protocol_port: Option<u16>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub key_path: Option<String>,
    pub use_static_credentials: bool,
    /// `None`: the connector's own. The same for the next one.
    pub keepalive: Option<Duration>,
    pub timeout: Option<Duration>,
    pub use_external_addr: bool,
}

/// Bounds of histograms; empty ones are the metric's own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeBuckets {
    pub creation: Vec<f64>,
    pub is_running: Vec<f64>,
    pub deletion: Vec<f64>,
    pub readiness: Vec<f64>,
    pub life_duration: Vec<f64>,
}

/// Each job in a machine inside the instance.
#[derive(Debug, Clone, PartialEq)]
pub struct VmIsolation {
    pub nesting_host: Option<String>,
    pub nesting_config: Opaque,
    pub image: Option<String>,
    pub connector: Connector,
}

/// What is remembered about instances.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StateStorage {
    /// Whether instances that are there at the start and have no record are kept.
    pub enabled: bool,
    /// `None`: beside the configuration file.
    pub dir: Option<String>,
    pub keep_instance_with_acquisitions: bool,
}

pub(super) fn of(table: &Checked, gather: &mut Gather<'_>) -> Autoscaler {
    let plugin = table.text("plugin");
    let policies: Vec<Policy> = table.tables("policy").iter().map(policy).collect();
    let max_instances = table.limit("max_instances");
    let vm_isolation = table.table("vm_isolation");
    Autoscaler {
        plugin: plugin.unwrap_or_default(),
        plugin_config: table.free("plugin_config").unwrap_or_else(empty),
        connector: connector(&table.table("connector_config"), gather),
        capacity_per_instance: table.count("capacity_per_instance").max(1),
        max_use_count: table.limit("max_use_count"),
        max_instances,
        instance_ready_command: table.text("instance_ready_command").map(Secret::new),
        instance_acquire_timeout: table.duration("instance_acquire_timeout"),
        update_interval: table.duration("update_interval"),
        update_interval_when_expecting: table.duration("update_interval_when_expecting"),
        deletion_retry_interval: table.duration("deletion_retry_interval"),
        shutdown_deletion_interval: table.duration("shutdown_deletion_interval"),
        shutdown_deletion_retries: table.count("shutdown_deletion_retries"),
        failure_threshold: table.count("failure_threshold").max(1),
        scale_throttle: scale_throttle(&table.table("scale_throttle"), max_instances),
        reservation_throttling: table.flag("reservation_throttling"),
        delete_instances_on_shutdown: table.flag("delete_instances_on_shutdown"),
        log_internal_ip: table.flag("log_internal_ip"),
        log_external_ip: table.flag("log_external_ip"),
        time_buckets: time_buckets(table),
        policies,
        vm_isolation: vm_isolation.flag("enabled").then(|| nested(&vm_isolation, gather)),
        state_storage: state_storage(&table.table("state_storage")),
    }
}

/// What an entry whose instances come from here cannot do without.
pub(super) fn check(table: &Checked, gather: &mut Gather<'_>) {
    if table.text("plugin").is_none() {
        let hint = "name a fleeting plugin, such as `plugin = \"aws\"`";
        gather.absent("no-plugin", "`[runners.autoscaler]` has no `plugin`", table.span.clone(), hint);
    }
    if table.whole("capacity_per_instance") < 1 {
        let message = format!("`capacity_per_instance` is {}, so no instance could take a job", table.whole("capacity_per_instance"));
        let hint = "write how many jobs an instance takes at once, at least 1";
        gather.refuse("no-capacity", message, Some(table.place("capacity_per_instance")), hint);
    }
    if table.tables("policy").is_empty() {
        let message = "`[runners.autoscaler]` has no `[[runners.autoscaler.policy]]`: no instance is kept idle";
        gather.note("no-policy", message, Some(table.span.clone()), "");
    }
}

fn empty() -> Opaque {
    Opaque::new(serde_json::json!({}))
}

fn connector(table: &Checked, gather: &mut Gather<'_>) -> Connector {
    let port = table.whole_given("protocol_port");
    let protocol_port = port.and_then(|port| u16::try_from(port).ok());
    if port.is_some() && protocol_port.is_none() {
        gather.refuse("no-port", "`protocol_port` is no port", Some(table.place("protocol_port")), "ports are between 1 and 65535");
    }
    Connector {
        os: table.text("os"),
        arch: table.text("arch"),
        protocol: table.text("protocol"),
        protocol_port: protocol_port.filter(|port| *port > 0),
        username: table.text("username"),
        password: table.secret("password"),
        key_path: table.text("key_path"),
        use_static_credentials: table.flag("use_static_credentials"),
        keepalive: table.duration_above_zero("keepalive"),
        timeout: table.duration_above_zero("timeout"),
        use_external_addr: table.flag("use_external_addr"),
    }
}

/// What a limit of 0 counts as.
const INSTANCES_A_SECOND: u64 = 100;

fn scale_throttle(table: &Checked, max_instances: Option<u64>) -> ScaleThrottle {
    if table.whole("limit") < 0 {
        return ScaleThrottle::Unlimited;
    }
    let limit = table.limit("limit").unwrap_or(INSTANCES_A_SECOND);
    ScaleThrottle::Limited { limit, burst: table.limit("burst").or(max_instances).unwrap_or(limit) }
}

fn policy(table: &Checked) -> Policy {
    let idle_count = table.count("idle_count");
    Policy {
        schedule: schedule(table.texts("periods"), table.text("timezone"), Form::Five, "* * * * *"),
        idle_count,
        idle_time: table.duration("idle_time"),
        scale_factor: table.number("scale_factor"),
        scale_factor_limit: table.limit("scale_factor_limit"),
        preemptive_mode: table.flag_given("preemptive_mode").unwrap_or(idle_count > 0),
    }
}

/// Of periods and a zone that were checked before. No period at all is taken for `always`, where there is such a pattern.
pub(super) fn schedule(mut periods: Vec<String>, zone: Option<String>, form: Form, always: &str) -> Schedule {
    if periods.is_empty() && !always.is_empty() {
        periods.push(always.to_owned());
    }
    let periods = periods.iter().filter_map(|text| Period::parse(text, form).ok()).collect();
    Schedule::new(periods, Zone::parse(&zone.unwrap_or_default()).unwrap_or(Zone::Host))
}

fn time_buckets(table: &Checked) -> TimeBuckets {
    let fallback = table.numbers("instance_operation_time_buckets");
    let buckets = |name: &str| Some(table.numbers(name)).filter(|buckets| !buckets.is_empty()).unwrap_or_else(|| fallback.clone());
    TimeBuckets {
        creation: buckets("instance_creation_time_buckets"),
        is_running: buckets("instance_is_running_time_buckets"),
        deletion: buckets("instance_deletion_time_buckets"),
        readiness: buckets("instance_readiness_time_buckets"),
        life_duration: table.numbers("instance_life_duration_buckets"),
    }
}

fn nested(table: &Checked, gather: &mut Gather<'_>) -> VmIsolation {
    VmIsolation {
        nesting_host: table.text("nesting_host"),
        nesting_config: table.free("nesting_config").unwrap_or_else(empty),
        image: table.text("image"),
        connector: connector(&table.table("connector_config"), gather),
    }
}

fn state_storage(table: &Checked) -> StateStorage {
    StateStorage {
        enabled: table.flag("enabled"),
        dir: table.text("dir"),
        keep_instance_with_acquisitions: table.flag("keep_instance_with_acquisitions"),
    }
}
