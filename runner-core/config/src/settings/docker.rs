//! Settings of `[runners.docker]`.

use super::runner::{Variable, variables_of};
use crate::checked::{Checked, Value};
use crate::gather::Gather;
use crate::secret::Opaque;
use std::collections::BTreeMap;
use std::time::Duration;

/// Containers of jobs and of their services.
#[derive(Debug, Clone, PartialEq)]
pub struct Docker {
    /// `None`: `DOCKER_HOST`, else the engine's socket.
    pub host: Option<String>,
    pub tls_verify: bool,
    pub tls_cert_path: Option<String>,
    /// Image of jobs that name none.
    pub image: Option<String>,
    pub user: Option<String>,
    pub privileged: bool,
    pub services_privileged: bool,
    pub pull_policies: Vec<PullPolicy>,
    /// What a job may ask for.
    pub allowed_pull_policies: Vec<PullPolicy>,
    /// Patterns; empty: any.
    pub allowed_images: Vec<String>,
    pub allowed_services: Vec<String>,
    pub allowed_privileged_images: Vec<String>,
    pub allowed_privileged_services: Vec<String>,
    pub allowed_users: Vec<String>,
    pub volumes: Vec<String>,
    pub extra_hosts: Vec<String>,
    pub dns: Vec<String>,
    pub network_mode: Option<String>,
    pub memory: Option<String>,
    pub cpus: Option<String>,
    pub shm_size: Option<u64>,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    pub devices: Vec<String>,
    pub tmpfs: BTreeMap<String, String>,
    pub disable_entrypoint_overwrite: bool,
    pub disable_cache: bool,
    pub cache_dir: Option<String>,
    /// Of every job.
    pub services: Vec<DockerService>,
    /// `None`: any number.
    pub services_limit: Option<u64>,
    /// How long services may take to listen. `None`: they are not waited for.
    pub wait_for_services_timeout: Option<Duration>,
    /// All that stands in the table, in GitLab's words, for the steps that know more of it.
    pub given: Opaque,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// A service of every job.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerService {
    /// Its image.
    pub name: String,
    pub aliases: Vec<String>,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub environment: Vec<Variable>,
}

pub(super) fn of(table: &Checked, gather: &mut Gather<'_>) -> Docker {
    check(table, gather);
    let privileged = table.flag("privileged");
    let pull_policies = pull_policies(table, "pull_policy");
    let allowed_pull_policies = match table.is_given("allowed_pull_policies") {
        true => self::pull_policies(table, "allowed_pull_policies"),
        false => pull_policies.clone(),
    };
    Docker {
        host: table.text("host"),
        tls_verify: table.flag("tls_verify"),
        tls_cert_path: table.text("tls_cert_path"),
        image: table.text("image"),
        user: table.text("user"),
        privileged,
        services_privileged: table.flag_given("services_privileged").unwrap_or(privileged),
        pull_policies,
        allowed_pull_policies,
        allowed_images: table.texts("allowed_images"),
        allowed_services: table.texts("allowed_services"),
        allowed_privileged_images: table.texts("allowed_privileged_images"),
        allowed_privileged_services: table.texts("allowed_privileged_services"),
        allowed_users: table.texts("allowed_users"),
        volumes: table.texts("volumes"),
        extra_hosts: table.texts("extra_hosts"),
        dns: table.texts("dns"),
        network_mode: table.text("network_mode"),
        memory: table.text("memory"),
        cpus: table.text("cpus"),
        shm_size: table.limit("shm_size"),
        cap_add: table.texts("cap_add"),
        cap_drop: table.texts("cap_drop"),
        devices: table.texts("devices"),
        tmpfs: table.map("tmpfs"),
        disable_entrypoint_overwrite: table.flag("disable_entrypoint_overwrite"),
        disable_cache: table.flag("disable_cache"),
        cache_dir: table.text("cache_dir"),
        services: table.tables("services").iter().filter_map(|service| self::service(service, gather)).collect(),
        services_limit: u64::try_from(table.whole("services_limit")).ok(),
        wait_for_services_timeout: u64::try_from(table.whole("wait_for_services_timeout")).ok().map(Duration::from_secs),
        given: table.json.clone(),
    }
}

fn pull_policies(table: &Checked, key: &str) -> Vec<PullPolicy> {
    let policy = |text: &String| match text.as_str() {
        "never" => PullPolicy::Never,
        "if-not-present" => PullPolicy::IfNotPresent,
        _ => PullPolicy::Always,
    };
    table.texts(key).iter().map(policy).collect()
}

fn service(table: &Checked, gather: &mut Gather<'_>) -> Option<DockerService> {
    let Some(name) = table.text("name") else {
        gather.warn("no-image", "a service without `name` is ignored", Some(table.span.clone()), "write the name of its image");
        return None;
    };
    let alias = table.text("alias").unwrap_or_default();
    Some(DockerService {
        name,
        aliases: alias.split([' ', ',']).filter(|alias| !alias.is_empty()).map(str::to_owned).collect(),
        entrypoint: table.texts("entrypoint"),
        command: table.texts("command"),
        environment: variables_of(table, "environment", gather),
    })
}

/// What GitLab's runner finds out when a job is prepared, and fails the job for.
fn check(table: &Checked, gather: &mut Gather<'_>) {
    const WHEN: &str = "every job with a container would fail";
    let sizes = ["memory", "memory_swap", "memory_reservation", "service_memory", "service_memory_swap", "service_memory_reservation"];
    for key in sizes {
        if let Some(Value::Text(size)) = table.value(key)
            && !size.is_empty()
            && !is_size(size)
        {
            let message = format!("`{key}` = `{size}` is no size: {WHEN}");
            gather.refuse("no-size", message, Some(table.place(key)), "write a number with b, k, m or g, such as `512m`");
        }
    }
    for address in table.texts("dns") {
        if address.parse::<std::net::IpAddr>().is_err() {
            let message = format!("`dns` = `{address}` is no IP address: {WHEN}");
            gather.refuse("no-address", message, Some(table.place("dns")), "name servers are named by their addresses");
        }
    }
    for name in table.map("log_options").keys().filter(|name| !["env", "labels"].contains(&name.as_str())) {
        let message = format!("`log_options` may hold `env` and `labels`, not `{name}`: {WHEN}");
        gather.refuse("no-choice", message, Some(table.place("log_options")), format!("remove `{name}`"));
    }
    for (name, limits) in table.map("ulimit") {
        if !limits.splitn(2, ':').all(|limit| limit.parse::<i64>().is_ok()) {
            let message = format!("`ulimit.{name}` = `{limits}` is no limit: {WHEN}");
            gather.refuse("no-limit", message, Some(table.place("ulimit")), "write `soft:hard` or one number");
        }
    }
}

/// `512m`, `1.5g`, `1024`, `-1` for swap without a limit.
fn is_size(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let number = lower.trim_end_matches('b').trim_end_matches("ki").trim_end_matches("mi").trim_end_matches("gi");
    let number = number.trim_end_matches(['k', 'm', 'g', 't']).trim_end();
    number == "-1"
        || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_a_unit() {
        assert!(["512m", "1.5g", "1024", "4M", "64kb", "2GiB", "-1", "100b", "1 g"].iter().all(|size| is_size(size)));
        assert!(!["", "m", "a lot", "1.2.3g", "12x", "-5m"].iter().any(|size| is_size(size)));
    }
}
