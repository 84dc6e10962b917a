//! Settings of all runners.

use super::{Results, address, results};
use crate::checked::Checked;
use crate::gather::Gather;
use crate::given::{self, Given};
use crate::go_text;
use std::collections::BTreeMap;
use std::time::Duration;

/// What counts for all runners of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Global {
    /// Jobs over all runners at once; at least 1.
    pub concurrent: u64,
    /// One full cycle over all runners.
    pub check_interval: Duration,
    /// How long a forceful stop waits for jobs to end.
    pub shutdown_timeout: Duration,
    /// Where metrics and health are served, with a port. `None`: nowhere.
    pub listen_address: Option<String>,
    /// `None`: not said here.
    pub log_level: Option<LogLevel>,
    pub log_format: Option<LogFormat>,
    /// The account that runs the jobs of a manager that is root.
    pub user: Option<String>,
    /// Idle connections are closed after it. `None`: never.
    pub connection_max_age: Option<Duration>,
    pub labels: BTreeMap<String, String>,
    pub session_server: Option<SessionServer>,
    pub shutdown_drain: Option<ShutdownDrain>,
    /// SIGTERM leaves the jobs running and ends the manager only.
    pub detach_on_term: bool,
    pub results: Results,
    /// What stands in the file, key by key, but for `[[runners]]`.
    pub given: Given,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Panic,
    Fatal,
    Error,
    Warning,
    Info,
    Debug,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people, coloured.
    Runner,
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SessionServer {
    pub listen_address: String,
    /// What the server is told: `https://host`.
    pub advertise_address: String,
    /// How long a terminal may hold a finished job open.
    pub session_timeout: Duration,
}

/// Idle machines of `docker+machine` are removed when the manager stops.
#[derive(Debug, Clone, PartialEq)]
pub struct ShutdownDrain {
    pub concurrency: u64,
    pub max_retries: u64,
    /// Times the number of the attempt.
    pub retry_backoff: Duration,
}

pub(super) fn of(file: &Checked, gather: &mut Gather<'_>) -> Global {
    if file.whole("concurrent") < 1 {
        let message = format!("`concurrent` is {}, so no job would ever run", file.whole("concurrent"));
        gather.refuse("no-jobs", message, Some(file.place("concurrent")), "write how many jobs may run at once, at least 1");
    }
    let shutdown_timeout = file.seconds_above_zero("shutdown_timeout");
    Global {
        concurrent: file.count("concurrent").max(1),
        check_interval: file.seconds_above_zero("check_interval"),
        shutdown_timeout,
        listen_address: listen_address(file, gather),
        log_level: file.text("log_level").and_then(|level| log_level(&level)),
        log_format: file.text("log_format").map(|format| log_format(&format)),
        user: file.text("user"),
        connection_max_age: file.duration_above_zero("connection_max_age"),
        labels: file.map("labels"),
        session_server: session_server(&file.table("session_server"), gather),
        shutdown_drain: shutdown_drain(&file.table("machine").table("shutdown_drain"), shutdown_timeout, gather),
        detach_on_term: file.table("runner_core").flag("detach_on_term"),
        results: results::of(&file.table("runner_core").table("results"), gather),
        given: given::of(file, &["runners"]),
    }
}

fn log_level(text: &str) -> Option<LogLevel> {
    match text {
        "panic" => Some(LogLevel::Panic),
        "fatal" => Some(LogLevel::Fatal),
        "error" => Some(LogLevel::Error),
        "warning" => Some(LogLevel::Warning),
        "info" => Some(LogLevel::Info),
        "debug" => Some(LogLevel::Debug),
        _ => None,
    }
}

fn log_format(text: &str) -> LogFormat {
    match text {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => LogFormat::Runner,
    }
}

/// GitLab's port for metrics, as its list of default ports for Prometheus has it.
const METRICS_PORT: u16 = 9252;

fn listen_address(file: &Checked, gather: &mut Gather<'_>) -> Option<String> {
    let address = file.text("listen_address")?;
    let with_port = go_text::with_port(&address, METRICS_PORT);
    if with_port.is_none() {
        let message = format!("`listen_address` = `{address}` has too many colons");
        gather.refuse("no-address", message, Some(file.place("listen_address")), "write `host:port`, and an IPv6 address in brackets");
    }
    with_port
}

fn session_server(table: &Checked, gather: &mut Gather<'_>) -> Option<SessionServer> {
    let listen_address = table.text("listen_address")?;
    let advertised = table.text("advertise_address").unwrap_or_else(|| listen_address.clone());
    match address::advertised(&advertised) {
        Ok(advertise_address) => {
            Some(SessionServer { listen_address, advertise_address, session_timeout: table.seconds_above_zero("session_timeout") })
        }
        Err(why) => {
            let message = format!("`advertise_address` = `{advertised}` {why}");
            gather.refuse("no-address", message, Some(table.place("advertise_address")), "write `host:port`");
            None
        }
    }
}

/// What GitLab's documentation advises where machines are removed at shutdown.
const LONG_ENOUGH: Duration = Duration::from_secs(5 * 60);

fn shutdown_drain(table: &Checked, shutdown_timeout: Duration, gather: &mut Gather<'_>) -> Option<ShutdownDrain> {
    if !table.flag("enabled") {
        return None;
    }
    if shutdown_timeout < LONG_ENOUGH {
        let message =
            format!("machines are removed within `shutdown_timeout`, which is {} s: usually too short", shutdown_timeout.as_secs());
        gather.note("short-drain", message, Some(table.place("enabled")), "write `shutdown_timeout = 300`");
    }
    Some(ShutdownDrain {
        concurrency: table.count("concurrency").max(1),
        max_retries: table.count("max_retries"),
        retry_backoff: table.duration("retry_backoff"),
    })
}
