//! The keys of `[[runners]]`, but for the tables that have files of their own.

use super::autoscaler::AUTOSCALER;
use super::cache::CACHE;
use super::custom::CUSTOM;
use super::docker::DOCKER;
use super::kubernetes::KUBERNETES;
use super::machine::MACHINE;
use super::remote::{INSTANCE, PARALLELS, SSH, VIRTUALBOX};
use super::{Kind, Standing, Table, key};
use crate::schedule::Form;

const CHECKOUT: &str = "an input of the checkout step";
const SCRIPT: &str = "part of the script step, in the same shell";

pub(super) static RUNNERS: Table = Table {
    name: "runners",
    is_list: true,
    about: "A runner, as it is registered with a server.",
    standing: Standing::Honoured,
    keys: &[
        key("name", Kind::Text, "how logs and metrics call it"),
        key("url", Kind::Address, "address of the server; `$NAME` and `${NAME}` are replaced from the environment"),
        key("id", Kind::Whole, "number of the runner on its server; identity of its fleet"),
        key("token", Kind::Secret, "the runner's authentication token; `$NAME` and `${NAME}` are replaced from the environment"),
        key("token_obtained_at", Kind::Time, "since when the token counts; written when it is rotated"),
        key("token_expires_at", Kind::Time, "until when the token counts; written when it is rotated").unset("never"),
        key("tls-ca-file", Kind::Text, "certificates that may sign the server's"),
        key("tls-cert-file", Kind::Text, "certificate that is shown to the server"),
        key("tls-key-file", Kind::Text, "key of that certificate"),
        key("limit", Kind::Whole, "jobs of this runner at once; with `docker+machine` also its machines; 0 for any number").default("0"),
        key("output_limit", Kind::Whole, "size of a job's log, in KiB").default("4096"),
        key("request_concurrency", Kind::Whole, "requests for a job at once; less than 1 counts as 1").default("1"),
        key("strict_check_interval", Kind::Flag, "no second request at once after a job").default("false"),
        key("unhealthy_requests_limit", Kind::Whole, "failed requests after which the runner pauses").default("3"),
        key("unhealthy_interval", Kind::Duration, "the longest such pause").default("60m"),
        key("job_status_final_update_retry_limit", Kind::Whole, "attempts to report the end of a job").default("10"),
        key("executor", Kind::Text, "what jobs run in; see the table of executors"),
        key("labels", Kind::Map, "replaces global labels of the same name"),
        key("builds_dir", Kind::Text, "where sources lie, in the environment")
            .mapped("the work directory of the agent; an input of the checkout step"),
        key("cache_dir", Kind::Text, "where local caches lie, in the environment").mapped("an input of the cache step"),
        key("clone_url", Kind::Address, "replaces scheme, host and port of the address that is cloned").mapped(CHECKOUT),
        key("environment", Kind::SecretTexts, "`KEY=VALUE`, added to the job's variables"),
        key("proxy_exec", Kind::Flag, "scripts run through GitLab's helper program").without_effect("every script runs under the agent"),
        key("pre_get_sources_script", Kind::Script, "before checkout").mapped("a script step before the checkout step"),
        key("post_get_sources_script", Kind::Script, "after checkout").mapped("a script step after the checkout step"),
        key("pre_clone_script", Kind::Script, "before checkout").old_name_of("pre_get_sources_script"),
        key("post_clone_script", Kind::Script, "after checkout").old_name_of("post_get_sources_script"),
        key("pre_build_script", Kind::Script, "before the user's script, in its shell").mapped(SCRIPT),
        key("post_build_script", Kind::Script, "after the user's script, in its shell").mapped(SCRIPT),
        key("prepare_timeout", Kind::Duration, "limit of preparing the environment").unset("the job's limit"),
        key("get_sources_timeout", Kind::Duration, "limit of checkout").unset("the job's limit").mapped(CHECKOUT),
        key("debug_trace_disabled", Kind::Flag, "`CI_DEBUG_TRACE` has no effect").default("false"),
        key("safe_directory_checkout", Kind::Flag, "Git trusts the work directory whoever owns it").mapped(CHECKOUT),
        key("clean_git_config", Kind::Flag, "Git's configuration is cleaned before and after")
            .unset("true, but for `shell`")
            .mapped(CHECKOUT),
        key("shell", Kind::OneOf(&["bash", "sh", "cmd", "pwsh", "powershell"]), "shell of scripts")
            .unset("the platform's")
            .mapped("an input of the script step"),
        key("feature_flags", Kind::Flags, "see the table of feature flags"),
        key("use_slot_cgroups", Kind::Flag, "a cgroup for each slot of an instance").default("false").not_yet("slots have no cgroups yet"),
        key("slot_cgroup_template", Kind::Text, "its name; holds `${slot}`")
            .default("gitlab-runner/slot-${slot}")
            .not_yet("slots have no cgroups yet"),
        key("step_runner_image", Kind::Text, "the image that brings GitLab's step-runner")
            .without_effect("the agent comes from the runner itself, by its digest"),
        key("custom_build_dir", Kind::Table(&CUSTOM_BUILD_DIR), "whether jobs choose their directory"),
        key("artifact", Kind::Table(&ARTIFACT), "limits of uploads"),
        key("referees", Kind::Table(&REFEREES), "figures about a job from elsewhere"),
        key("monitoring", Kind::Table(&MONITORING), "figures about waiting jobs"),
        key("experimental", Kind::Table(&EXPERIMENTAL), "what GitLab may still change"),
        key("steps", Kind::Table(&STEPS), "steps in place of ours"),
        key("cache", Kind::Table(&CACHE), "where caches are shared"),
        key("docker", Kind::Table(&DOCKER), "containers of jobs"),
        key("machine", Kind::Table(&MACHINE), "machines of `docker+machine`"),
        key("autoscaler", Kind::Table(&AUTOSCALER), "instances of `instance` and `docker-autoscaler`"),
        key("instance", Kind::Table(&INSTANCE), "jobs of `instance`"),
        key("ssh", Kind::Table(&SSH), "the machine of `ssh`"),
        key("parallels", Kind::Table(&PARALLELS), "machines of `parallels`"),
        key("virtualbox", Kind::Table(&VIRTUALBOX), "machines of `virtualbox`"),
        key("custom", Kind::Table(&CUSTOM), "programs of `custom`"),
        key("kubernetes", Kind::Table(&KUBERNETES), "pods of `kubernetes`"),
    ],
};

static STEPS: Table = Table {
    name: "runners.steps",
    is_list: false,
    about: "Steps that take the place of ours in every job, as references: `host/project@v1`, `registry/repository:tag`, or an absolute path on the \
            instance. They are given the same inputs. GitLab's runner does not know this table.",
    standing: Standing::Honoured,
    keys: &[
        key("checkout", Kind::Text, "brings the sources").unset("`builtin://checkout`"),
        key("cache", Kind::Text, "restores and saves caches").unset("`builtin://cache`"),
        key("artifact", Kind::Text, "uploads artifacts, and downloads those of earlier jobs").unset("`builtin://artifact`"),
    ],
};

static CUSTOM_BUILD_DIR: Table = Table {
    name: "runners.custom_build_dir",
    is_list: false,
    about: "Whether a job may choose its directory by `GIT_CLONE_PATH`.",
    standing: Standing::Mapped(CHECKOUT),
    keys: &[key("enabled", Kind::Flag, "whether it may, inside `builds_dir`").unset("true, but for `shell`, `ssh` and `custom`")],
};

static ARTIFACT: Table = Table {
    name: "runners.artifact",
    is_list: false,
    about: "Limits of uploads.",
    standing: Standing::Mapped("an input of the artifact step"),
    keys: &[
        key("upload_timeout", Kind::Duration, "limit of a whole upload").default("1h"),
        key("response_header_timeout", Kind::Duration, "how long the server may think about it").default("10m"),
    ],
};

static REFEREES: Table = Table {
    name: "runners.referees",
    is_list: false,
    about: "Figures about a job from elsewhere.",
    standing: REFEREE,
    keys: &[key("metrics", Kind::Table(&REFEREES_METRICS), "from a Prometheus server")],
};

const REFEREE: Standing = Standing::WithoutEffect("the result of a job says what each step used");

static REFEREES_METRICS: Table = Table {
    name: "runners.referees.metrics",
    is_list: false,
    about: "What a Prometheus server recorded during a job becomes one of its artifacts.",
    standing: REFEREE,
    keys: &[
        key("prometheus_address", Kind::Address, "address of the server"),
        key("query_interval", Kind::Seconds, "distance of the points"),
        key("queries", Kind::Texts, "what is asked, `name:query`"),
        key("metric_queries", Kind::Texts, "the same, as the documentation's example spells it"),
    ],
};

static MONITORING: Table = Table {
    name: "runners.monitoring",
    is_list: false,
    about: "Figures about waiting jobs.",
    standing: Standing::Honoured,
    keys: &[key("job_queuing_durations", Kind::Tables(&JOB_QUEUING_DURATIONS), "counts jobs that waited too long")],
};

static JOB_QUEUING_DURATIONS: Table = Table {
    name: "runners.monitoring.job_queuing_durations",
    is_list: true,
    about: "Counts jobs that waited longer than a threshold.",
    standing: Standing::NotYet("the metric does not exist yet"),
    keys: &[
        key("periods", Kind::Periods(Form::Five), "when it counts"),
        key("timezone", Kind::Zone, "of the periods").unset("the host's"),
        key("threshold", Kind::Duration, "what is too long"),
        key("jobs_running_for_project", Kind::Text, "regular expression over the number of the project's running jobs"),
    ],
};

static EXPERIMENTAL: Table = Table {
    name: "runners.experimental",
    is_list: false,
    about: "What GitLab may still change.",
    standing: Standing::Honoured,
    keys: &[key("boot_verify", Kind::Table(&BOOT_VERIFY), "a trial job at the start")],
};

static BOOT_VERIFY: Table = Table {
    name: "runners.experimental.boot_verify",
    is_list: false,
    about: "A trial job at the start decides whether the manager is ready.",
    standing: Standing::NotYet("`doctor` runs a trial job when it is asked to"),
    keys: &[
        key("enabled", Kind::Flag, "whether it runs").default("false"),
        key("timeout", Kind::Duration, "its limit").default("5m"),
        key("acquire_min_backoff", Kind::Duration, "shortest pause between attempts").default("1s"),
        key("acquire_max_backoff", Kind::Duration, "longest pause between attempts").default("10s"),
    ],
};
