//! Judges a plugin, in whatever language it is written: what it must do for every host, and what it should for ours.

use crate::contract::{self, Finding, Trial, Weight};
use crate::host::{Options, Plugin};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// For what needs no cloud.
const AT_ONCE: Duration = Duration::from_secs(10);

/// What every plugin of go-plugin has beside its own service, though hosts can do without.
const SERVICES: [&str; 3] = ["grpc.health.v1.Health", "plugin.GRPCController", "plugin.GRPCStdio"];

/// Tries a program from its start to its end, in the clear and in TLS. The configuration must be one with which it can make instances.
pub async fn examine(program: &Path, trial: &Trial, options: &Options) -> Vec<Finding> {
    let mut findings = vec![
        must("without its host it refuses to run, and says nothing on standard output", alone(program).await),
        should("`--version` is answered without a host", version(program).await),
    ];
    let tls = Options { tls: true, ..options.clone() };
    findings.push(should("it starts and ends with automatic TLS", start_and_end(program, &tls).await));
    findings.push(should("a shutdown without init is fine", early_shutdown(program, options).await));
    match Plugin::start(program, options).await {
        Err(fault) => findings.push(must("it starts", Err(fault.to_string()))),
        Ok(plugin) => {
            findings.push(must("it starts", Ok(())));
            let services = plugin.services().await.unwrap_or_default();
            let missing: Vec<&str> = SERVICES.into_iter().filter(|service| !services.iter().any(|found| found == service)).collect();
            let all = if missing.is_empty() { Ok(()) } else { Err(format!("reflection does not name {}", missing.join(", "))) };
            findings.push(should("it has the services of go-plugin", all));
            findings.extend(contract::judge(&plugin, &Trial { early_shutdown: false, ..trial.clone() }).await);
            let ended = if plugin.end().await { Ok(()) } else { Err(format!("it had to be killed after {:?}", options.grace)) };
            findings.push(must("it ends when its host asks it to", ended));
        }
    }
    findings
}

fn must(claim: &'static str, outcome: Result<(), String>) -> Finding {
    Finding { claim, weight: Weight::Must, fault: outcome.err() }
}

fn should(claim: &'static str, outcome: Result<(), String>) -> Finding {
    Finding { claim, weight: Weight::Should, fault: outcome.err() }
}

async fn output(program: &Path, arguments: &[&str]) -> Result<std::process::Output, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env_remove(crate::handshake::COOKIE.0).kill_on_drop(true);
    match tokio::time::timeout(AT_ONCE, command.output()).await {
        Ok(output) => output.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it has not ended within {AT_ONCE:?}")),
    }
}

async fn alone(program: &Path) -> Result<(), String> {
    let output = output(program, &[]).await?;
    match (output.status.success(), output.stdout.is_empty()) {
        (true, _) => Err("it ends as if all were well".to_owned()),
        (_, false) => Err("it writes to standard output".to_owned()),
        (false, true) => Ok(()),
    }
}

async fn version(program: &Path) -> Result<(), String> {
    let output = output(program, &["--version"]).await?;
    match (output.status.success(), String::from_utf8_lossy(&output.stdout).contains("Version:")) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("it ends with {}", output.status)),
        (true, false) => Err("there is no line `Version:`".to_owned()),
    }
}

async fn start_and_end(program: &Path, options: &Options) -> Result<(), String> {
    let plugin = Plugin::start(program, options).await.map_err(|fault| fault.to_string())?;
    if plugin.end().await { Ok(()) } else { Err(format!("it had to be killed after {:?}", options.grace)) }
}

/// With a process of its own, since there are plugins that die of it.
async fn early_shutdown(program: &Path, options: &Options) -> Result<(), String> {
    use crate::instance_group::InstanceGroup as _;
    let plugin = Plugin::start(program, options).await.map_err(|fault| fault.to_string())?;
    let answer = plugin.shutdown().await.map_err(|failure| failure.to_string());
    plugin.end().await;
    answer
}
