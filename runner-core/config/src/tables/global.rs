//! The keys of the file itself, and of the tables beside `[[runners]]`.

use super::{Kind, Standing, Table, key, runner::RUNNERS};

pub static GLOBAL: Table = Table {
    name: "",
    is_list: false,
    about: "Counts for all runners of the file.",
    standing: Standing::Honoured,
    keys: &[
        key("concurrent", Kind::Whole, "jobs over all runners at once; at least 1").default("1"),
        key("check_interval", Kind::Seconds, "one full cycle over all runners; 0 and less count as 3").default("3"),
        key("shutdown_timeout", Kind::Seconds, "how long a forceful stop waits for jobs to end; 0 and less count as 30").default("30"),
        key("listen_address", Kind::Text, "where metrics and health are served, `host:port`; the port is 9252 when missing").unset("off"),
        key("log_level", Kind::OneOf(&["panic", "fatal", "error", "warning", "info", "debug"]), "the command line wins").unset("info"),
        key("log_format", Kind::OneOf(&["runner", "text", "json"]), "the command line wins").unset("runner"),
        key("sentry_dsn", Kind::Secret, "where GitLab's runner reports its own errors")
            .without_effect("spans and the metrics of errors take its place"),
        key("user", Kind::Text, "the account that runs the jobs of a manager that is root").mapped("the plugin `local` runs jobs under it"),
        key("connection_max_age", Kind::Duration, "idle connections are closed after it; 0 and less keep them").default("15m"),
        key("labels", Kind::Map, "sent with every request for a job"),
        key("session_server", Kind::Table(&SESSION_SERVER), "terminals of running jobs"),
        key("machine", Kind::Table(&MACHINE), "all runners with `docker+machine`"),
        key("experimental", Kind::Table(&EXPERIMENTAL), "what GitLab may still change"),
        key("runner_core", Kind::Table(&RUNNER_CORE), "settings that GitLab's runner does not have"),
        key("runners", Kind::Tables(&RUNNERS), "a runner, as it is registered with a server"),
    ],
};

static SESSION_SERVER: Table = Table {
    name: "session_server",
    is_list: false,
    about: "Lets a person reach the terminal of a running job. Without `listen_address` there is none.",
    standing: Standing::NotYet("there is no session server yet"),
    keys: &[
        key("listen_address", Kind::Text, "where sessions are served"),
        key("advertise_address", Kind::Text, "what the server is told, without a scheme").unset("`listen_address`"),
        key("session_timeout", Kind::Seconds, "how long a terminal may hold a finished job open").default("1800"),
    ],
};

static MACHINE: Table = Table {
    name: "machine",
    is_list: false,
    about: "Settings of all runners with `docker+machine`.",
    standing: Standing::Honoured,
    keys: &[key("shutdown_drain", Kind::Table(&SHUTDOWN_DRAIN), "removal of machines when the manager stops")],
};

static SHUTDOWN_DRAIN: Table = Table {
    name: "machine.shutdown_drain",
    is_list: false,
    about: "Removes idle machines when the manager stops, within `shutdown_timeout`.",
    standing: Standing::Mapped("the plugin `docker-machine` deletes at shutdown"),
    keys: &[
        key("enabled", Kind::Flag, "whether idle machines are removed").default("false"),
        key("concurrency", Kind::Whole, "machines that are removed at once").default("3"),
        key("max_retries", Kind::Whole, "attempts for each machine").default("3"),
        key("retry_backoff", Kind::Duration, "pause between attempts, times the number of the attempt").default("5s"),
    ],
};

static EXPERIMENTAL: Table = Table {
    name: "experimental",
    is_list: false,
    about: "What GitLab may still change.",
    standing: Standing::Honoured,
    keys: &[key("usage_logger", Kind::Table(&USAGE_LOGGER), "records of what jobs used")],
};

const USAGE: Standing = Standing::NotYet("usage records are not written yet; the result of a job holds what it used");

static USAGE_LOGGER: Table = Table {
    name: "experimental.usage_logger",
    is_list: false,
    about: "Records of what jobs used.",
    standing: USAGE,
    keys: &[
        key("enabled", Kind::Flag, "whether records are written").default("false"),
        key("writers", Kind::SomeOf(&["logrotate", "snowplow_billing"]), "where they go").default("logrotate"),
        key("logrotate", Kind::Table(&LOGROTATE), "files that are rotated"),
        key("snowplow_billing", Kind::Table(&SNOWPLOW), "GitLab's own billing"),
        key("log_dir", Kind::Text, "earlier place of the key").old_name_of("logrotate"),
        key("max_backup_files", Kind::Whole, "earlier place of the key").old_name_of("logrotate"),
        key("max_rotation_age", Kind::Duration, "earlier place of the key").old_name_of("logrotate"),
        key("labels", Kind::Map, "earlier place of the key").old_name_of("logrotate"),
    ],
};

static LOGROTATE: Table = Table {
    name: "experimental.usage_logger.logrotate",
    is_list: false,
    about: "Usage records in files.",
    standing: USAGE,
    keys: &[
        key("log_dir", Kind::Text, "directory of the files"),
        key("max_backup_files", Kind::Whole, "old files that are kept"),
        key("max_rotation_age", Kind::Duration, "age at which a file is closed"),
        key("labels", Kind::Map, "added to every record"),
    ],
};

static SNOWPLOW: Table = Table {
    name: "experimental.usage_logger.snowplow_billing",
    is_list: false,
    about: "GitLab's own collector of usage.",
    standing: Standing::WithoutEffect("it is GitLab's own billing; `logrotate` keeps records on this machine"),
    keys: &[
        key("collector_uri", Kind::Address, "address of the collector"),
        key("app_id", Kind::Text, "who sends"),
        key("category", Kind::Text, "kind of event"),
        key("realm", Kind::OneOf(&["SaaS", "Dedicated", "SM"]), "kind of installation"),
        key("deployment_type", Kind::OneOf(&["dedicated", ".com", "self-managed"]), "kind of deployment"),
        key("metadata", Kind::Map, "added to every event"),
        key("enable_oidc", Kind::Flag, "authenticates with an identity of the cloud"),
        key("skip_oidc_if_unsupported_cloud", Kind::Flag, "goes on without one elsewhere"),
        key("skip_runner_system_failure", Kind::Flag, "does not bill faults of the runner").default("true"),
        key("batch_delivery_duration_buckets", Kind::Numbers, "buckets of a metric"),
    ],
};

static RUNNER_CORE: Table = Table {
    name: "runner_core",
    is_list: false,
    about: "Settings that GitLab's runner does not have, and ignores.",
    standing: Standing::Honoured,
    keys: &[
        key("detach_on_term", Kind::Flag, "SIGTERM leaves the jobs running and ends the manager only").default("false"),
        key("results", Kind::Table(&RESULTS), "where the results of jobs go"),
    ],
};

static RESULTS: Table = Table {
    name: "runner_core.results",
    is_list: false,
    about: "Where the results of jobs go: what ran, with which parameters, and how it ended. `docs/reference/results.md` has the service.",
    standing: Standing::Honoured,
    keys: &[
        key("address", Kind::Address, "the results service, `http://` or `https://`").unset("none: results stay here"),
        key("token", Kind::Secret, "sent to it as `authorization: Bearer`").unset("none"),
        key("tls_ca_file", Kind::Text, "its authority, beside those of the system").unset("none"),
        key("artifact", Kind::Flag, "without a service, a result becomes an artifact of its job").default("false"),
        key("keep_for", Kind::Duration, "for how long results are kept here").default("168h"),
        key("keep_count", Kind::Whole, "how many at most; 0 keeps none but those that the service has not taken").default("1000"),
        key("keep_bytes", Kind::Whole, "how many bytes at most, also of those that the service has not taken").default("1073741824"),
    ],
};
