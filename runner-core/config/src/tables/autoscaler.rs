//! The keys of `[runners.autoscaler]`.

use super::{Kind, Standing, Table, key};
use crate::schedule::Form;

pub(super) static AUTOSCALER: Table = Table {
    name: "runners.autoscaler",
    is_list: false,
    about: "Instances of a fleeting plugin, for `instance` and `docker-autoscaler`.",
    standing: Standing::Honoured,
    keys: &[
        key("plugin", Kind::Text, "a path, a name in PATH, or an OCI reference `name:version`"),
        key("plugin_config", Kind::Free, "given to the plugin as it stands, as JSON"),
        key("capacity_per_instance", Kind::Whole, "jobs on an instance at once; at least 1").default("1"),
        key("max_use_count", Kind::Whole, "jobs of an instance before it is removed; 0 for any number").default("0"),
        key("max_instances", Kind::Whole, "instances at once, in whatever state; 0 for any number").default("0"),
        key("instance_ready_command", Kind::Script, "run on each new instance; if it fails, the instance is removed"),
        key("instance_acquire_timeout", Kind::Duration, "how long a job waits for its instance").default("15m"),
        key("update_interval", Kind::Duration, "how often the plugin is asked").default("1m"),
        key("update_interval_when_expecting", Kind::Duration, "the same while a change is expected").default("2s"),
        key("deletion_retry_interval", Kind::Duration, "pause before an instance is removed again").default("1m"),
        key("shutdown_deletion_interval", Kind::Duration, "the same at shutdown").default("10s"),
        key("shutdown_deletion_retries", Kind::Whole, "attempts at shutdown").default("3"),
        key("failure_threshold", Kind::Whole, "failed heartbeats in a row before an instance is replaced").default("3"),
        key("reservation_throttling", Kind::Flag, "requests for jobs do not hold on to the last idle instance").default("true"),
        key("delete_instances_on_shutdown", Kind::Flag, "removes all instances when the manager stops").default("false"),
        key("log_internal_ip", Kind::Flag, "a job's log names the instance's internal address").default("false"),
        key("log_external_ip", Kind::Flag, "a job's log names the instance's external address").default("false"),
        key("instance_operation_time_buckets", Kind::Numbers, "buckets of the four metrics below that have none"),
        key("instance_creation_time_buckets", Kind::Numbers, "buckets of a metric"),
        key("instance_is_running_time_buckets", Kind::Numbers, "buckets of a metric"),
        key("instance_deletion_time_buckets", Kind::Numbers, "buckets of a metric"),
        key("instance_readiness_time_buckets", Kind::Numbers, "buckets of a metric"),
        key("instance_life_duration_buckets", Kind::Numbers, "buckets of a metric"),
        key("scale_throttle", Kind::Table(&SCALE_THROTTLE), "how fast instances are asked for"),
        key("connector_config", Kind::Table(&CONNECTOR), "how instances are reached"),
        key("policy", Kind::Tables(&POLICY), "how many idle slots there are, and when"),
        key("vm_isolation", Kind::Table(&VM_ISOLATION), "nested machines"),
        key("state_storage", Kind::Table(&STATE_STORAGE), "what is remembered about instances"),
    ],
};

static SCALE_THROTTLE: Table = Table {
    name: "runners.autoscaler.scale_throttle",
    is_list: false,
    about: "How fast instances are asked for: a bucket of tokens, full at the start.",
    standing: Standing::Honoured,
    keys: &[
        key("limit", Kind::Whole, "instances a second; 0 counts as 100, -1 for any number").default("0"),
        key("burst", Kind::Whole, "instances at once").unset("`max_instances`, else `limit`"),
    ],
};

static CONNECTOR: Table = Table {
    name: "runners.autoscaler.connector_config",
    is_list: false,
    about: CONNECTOR_ABOUT,
    standing: Standing::Honoured,
    keys: CONNECTOR_KEYS,
};

static NESTED_CONNECTOR: Table = Table {
    name: "runners.autoscaler.vm_isolation.connector_config",
    is_list: false,
    about: CONNECTOR_ABOUT,
    standing: NESTING,
    keys: CONNECTOR_KEYS,
};

const CONNECTOR_ABOUT: &str = "How instances are reached; replaces or fills what the plugin says.";

const CONNECTOR_KEYS: &[super::Key] = &[
    key("os", Kind::Text, "operating system"),
    key("arch", Kind::Text, "architecture"),
    key("protocol", Kind::OneOf(&["ssh", "winrm", "winrm+https"]), "how commands get there").unset("`ssh`, on Windows `winrm`"),
    key("protocol_port", Kind::Whole, "port").unset("22, 5985, 5986"),
    key("username", Kind::Text, "account"),
    key("password", Kind::Secret, "its password"),
    key("key_path", Kind::Text, "file of a private key"),
    key("use_static_credentials", Kind::Flag, "these credentials instead of the plugin's").default("false"),
    key("keepalive", Kind::Duration, "pause between signs of life"),
    key("timeout", Kind::Duration, "limit of connecting"),
    key("use_external_addr", Kind::Flag, "the external address, if there is one").default("false"),
];

pub(super) static POLICY: Table = Table {
    name: "runners.autoscaler.policy",
    is_list: true,
    about: "How many idle slots there are while one of the periods matches. The last table that matches counts.",
    standing: Standing::Honoured,
    keys: POLICY_KEYS,
};

pub(super) const POLICY_KEYS: &[super::Key] = &[
    key("periods", Kind::Periods(Form::Five), "when it counts").unset("always"),
    key("timezone", Kind::Zone, "of the periods").unset("the host's"),
    key("idle_count", Kind::Whole, "jobs that find a free slot at once").default("0"),
    key("idle_time", Kind::Duration, "how long an instance stays without a job").default("0"),
    key("scale_factor", Kind::Number, "idle slots for each busy one, when more than `idle_count`").default("0.0"),
    key("scale_factor_limit", Kind::Whole, "most idle slots by the factor; 0 for any number").default("0"),
    key("preemptive_mode", Kind::Flag, "jobs are asked for only when a slot is free now").unset("true if `idle_count` is not 0"),
];

const NESTING: Standing = Standing::NotYet("there are no nested machines yet");

static VM_ISOLATION: Table = Table {
    name: "runners.autoscaler.vm_isolation",
    is_list: false,
    about: "Each job in a machine inside the instance.",
    standing: NESTING,
    keys: &[
        key("enabled", Kind::Flag, "whether").default("false"),
        key("nesting_host", Kind::Address, "address of the daemon that makes them"),
        key("nesting_config", Kind::Free, "given to that daemon as it stands, as JSON"),
        key("image", Kind::Text, "image of the machine when the job names none"),
        key("connector_config", Kind::Table(&NESTED_CONNECTOR), "how nested machines are reached"),
    ],
};

static STATE_STORAGE: Table = Table {
    name: "runners.autoscaler.state_storage",
    is_list: false,
    about: "What is remembered about instances.",
    standing: Standing::Honoured,
    keys: &[
        key("enabled", Kind::Flag, "whether instances without a record are kept; jobs and instances are remembered in any case")
            .default("false")
            .mapped("the state database is always there; false removes instances that it does not know"),
        key("dir", Kind::Text, "where it lies").unset("beside the configuration file"),
        key("keep_instance_with_acquisitions", Kind::Flag, "keeps an instance whose job cannot be found again").default("false"),
    ],
};
