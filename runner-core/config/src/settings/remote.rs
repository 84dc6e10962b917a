//! Settings of `[runners.instance]`, `[runners.ssh]` and `[runners.custom]`.

use super::Autoscaler;
use crate::checked::Checked;
use crate::gather::Gather;
use crate::secret::Secret;
use std::time::Duration;

/// Jobs that run on an instance itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Instance {
    /// Patterns; empty: only the configured image.
    pub allowed_images: Vec<String>,
    /// All jobs share one directory.
    pub use_common_build_dir: bool,
}

/// One machine that is reached over SSH.
#[derive(Debug, Clone, PartialEq)]
pub struct Ssh {
    /// Empty in an entry that is refused for it.
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub identity_file: Option<String>,
    pub disable_strict_host_key_checking: bool,
    pub known_hosts_file: String,
}

/// Programs that make an environment, run scripts in it and remove it.
#[derive(Debug, Clone, PartialEq)]
pub struct Custom {
    pub config_exec: Option<Hook>,
    pub prepare_exec: Option<Hook>,
    /// `None` in an entry that is refused for it. It has the job's limit.
    pub run_exec: Option<Hook>,
    pub cleanup_exec: Option<Hook>,
    pub graceful_kill_timeout: Duration,
    pub force_kill_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub program: String,
    pub arguments: Vec<String>,
    /// `None`: the job's.
    pub timeout: Option<Duration>,
}

pub(super) fn instance(table: &Checked, autoscaler: Option<&Autoscaler>, gather: &mut Gather<'_>) -> Instance {
    let use_common_build_dir = table.flag("use_common_build_dir");
    let is_alone = autoscaler.is_some_and(|autoscaler| autoscaler.vm_isolation.is_some() || autoscaler.max_use_count == Some(1));
    if use_common_build_dir && !is_alone {
        let message = "`use_common_build_dir` would let jobs see each other's files";
        let hint = "set `max_use_count = 1` or use VM isolation in `[runners.autoscaler]`";
        gather.refuse("shared-directory", message, Some(table.place("use_common_build_dir")), hint);
    }
    Instance { allowed_images: table.texts("allowed_images"), use_common_build_dir }
}

/// What an entry whose machine this is cannot do without.
pub(super) fn check_ssh(table: &Checked, gather: &mut Gather<'_>) {
    if table.text("host").is_none() {
        gather.absent("no-host", "`[runners.ssh]` has no `host`", table.span.clone(), "write the name or address of the machine");
    }
    if port(table).is_none() {
        gather.refuse("no-port", "`port` of `[runners.ssh]` is no port", Some(table.place("port")), "ports are between 1 and 65535");
    }
}

fn port(table: &Checked) -> Option<u16> {
    table.text("port")?.parse().ok().filter(|port| *port > 0)
}

pub(super) fn ssh(table: &Checked) -> Ssh {
    Ssh {
        host: table.text("host").unwrap_or_default(),
        port: port(table).unwrap_or(22),
        user: table.text("user"),
        password: table.secret("password"),
        identity_file: table.text("identity_file"),
        disable_strict_host_key_checking: table.flag("disable_strict_host_key_checking"),
        known_hosts_file: table.text("known_hosts_file").unwrap_or_default(),
    }
}

/// What an entry whose environments these programs make cannot do without.
pub(super) fn check_custom(table: &Checked, gather: &mut Gather<'_>) {
    if table.text("run_exec").is_none() {
        gather.absent("no-program", "`[runners.custom]` has no `run_exec`", table.span.clone(), "name the program that runs scripts");
    }
}

pub(super) fn custom(table: &Checked) -> Custom {
    let hook = |name: &str| {
        let program = table.text(&format!("{name}_exec"))?;
        let timeout = (name != "run").then(|| table.seconds(&format!("{name}_exec_timeout")));
        Some(Hook { program, arguments: table.texts(&format!("{name}_args")), timeout })
    };
    Custom {
        config_exec: hook("config"),
        prepare_exec: hook("prepare"),
        run_exec: hook("run"),
        cleanup_exec: hook("cleanup"),
        graceful_kill_timeout: table.seconds("graceful_kill_timeout"),
        force_kill_timeout: table.seconds("force_kill_timeout"),
    }
}
