//! Where the runner's own log goes: standard error, in the format that was asked for.

use super::RunArguments;
use runner_config::settings::{Global, LogFormat, LogLevel};
use std::io::IsTerminal as _;
use step_console::exit::Stop;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// Begins to log. The command line wins over the configuration, RUST_LOG over both.
/// # Errors
/// There is no such level or format.
pub fn start(arguments: &RunArguments, global: &Global) -> Result<(), Stop> {
    let level = match &arguments.log_level {
        Some(text) => level_named(text)?,
        None => global.log_level.map_or(LevelFilter::INFO, level),
    };
    let format = match &arguments.log_format {
        Some(text) => format_named(text)?,
        None => global.log_format.unwrap_or(LogFormat::Runner),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(level)));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.with_ansi(false).with_target(false).try_init(),
        LogFormat::Runner => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).compact().try_init(),
    };
    // Only once in a process, and nobody else does it.
    started.map_err(|fault| Stop::usage(format!("could not begin to log: {fault}")))
}

/// Parts of other people say only what is wrong: their words are not about jobs.
fn directives(level: LevelFilter) -> String {
    let ours = ["runner_core", "runner_control", "runner_gitlab", "runner_fleeting", "fleeting"].map(|target| format!("{target}={level}"));
    format!("warn,{}", ours.join(","))
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Panic | LogLevel::Fatal | LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

fn level_named(text: &str) -> Result<LevelFilter, Stop> {
    match text {
        "panic" | "fatal" | "error" => Ok(LevelFilter::ERROR),
        "warning" | "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        _ => Err(Stop::usage(format!("`--log-level {text}` is no level")).with_hint("debug, info, warning, error, fatal, panic")),
    }
}

fn format_named(text: &str) -> Result<LogFormat, Stop> {
    match text {
        "runner" => Ok(LogFormat::Runner),
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(Stop::usage(format!("`--log-format {text}` is no format")).with_hint("runner, text, json")),
    }
}
