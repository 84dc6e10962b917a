//! Settings of one entry of `[[runners]]`.

use super::executor::{self, Executor, Meaning};
use super::{Autoscaler, Cache, Custom, Docker, Global, Instance, Machine, Ssh, address, autoscaler, cache, docker, machine, remote};
use crate::checked::Checked;
use crate::gather::Gather;
use crate::given::{self, Given};
use crate::go_text;
use crate::secret::{Opaque, Secret, short_token};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use step_model::document::Dialect;
use step_model::expression::nearest;
use step_model::reference::StepReference;
use step_model::time::Timestamp;

/// A runner, as it is registered with a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Runner {
    /// Its place among the entries of the file, counted from 0.
    pub index: usize,
    /// `None`: it has none; see [`Runner::phrase`].
    pub name: Option<String>,
    /// Without a `/` or the old `/ci` at its end, variables replaced. Empty in an entry that is refused for it.
    pub url: String,
    /// 0: not known.
    pub id: u64,
    pub token: Secret,
    pub token_obtained_at: Option<Timestamp>,
    pub token_expires_at: Option<Timestamp>,
    pub tls: Tls,
    /// Jobs at once; for docker+machine also machines. `None`: any number.
    pub limit: Option<u64>,
    /// Size of a job's log, in bytes.
    pub output_limit: u64,
    /// Requests for a job at once; at least 1.
    pub request_concurrency: u64,
    pub strict_check_interval: bool,
    pub unhealthy_requests_limit: u64,
    pub unhealthy_interval: Duration,
    pub job_status_final_update_retry_limit: u64,
    /// `None` in an entry that is refused for it.
    pub executor: Option<Executor>,
    /// Those of the file, replaced by those of the entry name by name.
    pub labels: BTreeMap<String, String>,
    pub builds_dir: Option<String>,
    pub cache_dir: Option<String>,
    /// May name an account with its password.
    pub clone_url: Option<Secret>,
    /// Added to the job's variables.
    pub environment: Vec<Variable>,
    /// Commands may hold anything, so they are not shown. The same for the next three.
    pub pre_get_sources_script: Option<Secret>,
    pub post_get_sources_script: Option<Secret>,
    pub pre_build_script: Option<Secret>,
    pub post_build_script: Option<Secret>,
    /// `None`: the job's limit. The same for the next one.
    pub prepare_timeout: Option<Duration>,
    pub get_sources_timeout: Option<Duration>,
    pub debug_trace_disabled: bool,
    /// `None`: as GitLab's runner decides it for the executor.
    pub safe_directory_checkout: Option<bool>,
    pub clean_git_config: Option<bool>,
    /// `None`: the platform's.
    pub shell: Option<Shell>,
    /// As they were given; [`Runner::has_feature`] knows the defaults.
    pub feature_flags: BTreeMap<String, bool>,
    /// The name of a slot's cgroup, when slots have one.
    pub slot_cgroup_template: Option<String>,
    /// Whether a job may choose its directory inside `builds_dir`.
    pub custom_build_dir: bool,
    pub artifact_upload_timeout: Duration,
    pub artifact_response_header_timeout: Duration,
    pub boot_verify: Option<BootVerify>,
    /// In place of ours, by name: `checkout`, `cache`, `artifact`.
    pub steps: BTreeMap<String, StepReference>,
    pub cache: Option<Cache>,
    pub docker: Option<Docker>,
    pub machine: Option<Machine>,
    pub autoscaler: Option<Autoscaler>,
    pub instance: Instance,
    pub ssh: Option<Ssh>,
    pub custom: Option<Custom>,
    /// Checked, for the plugin.
    pub kubernetes: Option<Opaque>,
    /// What stands in the entry, key by key.
    pub given: Given,
}

impl Runner {
    /// How logs and metrics call it: by its name, else by its place and number.
    pub fn shown_name(&self) -> String {
        match (&self.name, self.id) {
            (Some(name), _) => name.clone(),
            (None, 0) => format!("runner {}", self.index + 1),
            (None, id) => format!("runner {} (id {id})", self.index + 1),
        }
    }

    /// How sentences call it: "runner `build`".
    pub fn phrase(&self) -> String {
        if self.name.is_some() { format!("runner `{}`", self.shown_name()) } else { self.shown_name() }
    }

    /// Who it is to its fleet and its records: token rotation does not change it.
    pub fn identity(&self) -> String {
        match self.id {
            0 => format!("{}#{}", self.url, short_token(self.token.expose())),
            id => format!("{}#{id}", self.url),
        }
    }

    /// Whether a feature flag is on: as given here, else in the environment of the process, else by default.
    pub fn has_feature(&self, name: &str, environment: &BTreeMap<String, String>) -> bool {
        let by_default = || crate::tables::FEATURE_FLAGS.iter().any(|flag| flag.name == name && flag.is_on);
        let from_environment = || environment.get(name).and_then(|text| go_bool(text));
        self.feature_flags.get(name).copied().or_else(from_environment).unwrap_or_else(by_default)
    }
}

/// A boolean as Go reads it from a text.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Files for the connection to the server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tls {
    pub ca_file: Option<String>,
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
}

/// A variable of the environment. Its value is not shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: String,
    pub value: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Sh,
    Cmd,
    Pwsh,
    PowerShell,
}

/// A trial job at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct BootVerify {
    pub timeout: Duration,
    pub acquire_min_backoff: Duration,
    pub acquire_max_backoff: Duration,
}

pub(super) fn of(entry: &Checked, index: usize, global: &Global, variables: &BTreeMap<String, String>, gather: &mut Gather<'_>) -> Runner {
    let executor = executor(entry, gather);
    let mut labels = global.labels.clone();
    labels.extend(entry.map("labels"));
    let autoscaler = entry.table_given("autoscaler").map(|table| autoscaler::of(table, gather));
    let custom_build_dir = entry.table("custom_build_dir").flag_given("enabled");
    let artifact = entry.table("artifact");
    let runner = Runner {
        index,
        name: entry.text("name"),
        url: url(entry, variables, gather),
        id: entry.count("id"),
        token: token(entry, variables, gather),
        token_obtained_at: entry.time("token_obtained_at").filter(is_set),
        token_expires_at: entry.time("token_expires_at").filter(is_set),
        tls: tls(entry, gather),
        limit: entry.limit("limit"),
        output_limit: entry.count("output_limit").saturating_mul(1024),
        request_concurrency: entry.count("request_concurrency").max(1),
        strict_check_interval: entry.flag("strict_check_interval"),
        unhealthy_requests_limit: entry.count("unhealthy_requests_limit").max(1),
        unhealthy_interval: entry.duration("unhealthy_interval"),
        job_status_final_update_retry_limit: entry.count("job_status_final_update_retry_limit"),
        executor,
        labels,
        builds_dir: entry.text("builds_dir"),
        cache_dir: entry.text("cache_dir"),
        clone_url: entry.text("clone_url").map(Secret::new),
        environment: variables_of(entry, "environment", gather),
        pre_get_sources_script: entry.text("pre_get_sources_script").map(Secret::new),
        post_get_sources_script: entry.text("post_get_sources_script").map(Secret::new),
        pre_build_script: entry.text("pre_build_script").map(Secret::new),
        post_build_script: entry.text("post_build_script").map(Secret::new),
        prepare_timeout: entry.duration_above_zero("prepare_timeout"),
        get_sources_timeout: entry.duration_above_zero("get_sources_timeout"),
        debug_trace_disabled: entry.flag("debug_trace_disabled"),
        safe_directory_checkout: entry.flag_given("safe_directory_checkout"),
        clean_git_config: entry.flag_given("clean_git_config"),
        shell: entry.text("shell").and_then(|shell| shell_of(&shell)),
        feature_flags: entry.flags("feature_flags"),
        slot_cgroup_template: slot_cgroup_template(entry, gather),
        custom_build_dir: custom_build_dir.unwrap_or_else(|| executor.is_some_and(Executor::allows_build_directories)),
        artifact_upload_timeout: artifact.duration("upload_timeout"),
        artifact_response_header_timeout: artifact.duration("response_header_timeout"),
        boot_verify: boot_verify(&entry.table("experimental").table("boot_verify")),
        steps: steps(&entry.table("steps"), gather),
        cache: entry.table_given("cache").and_then(|table| cache::of(table, gather)),
        docker: entry.table_given("docker").map(|table| docker::of(table, gather)),
        machine: entry.table_given("machine").map(|table| machine::of(table, gather)),
        instance: remote::instance(&entry.table("instance"), autoscaler.as_ref(), gather),
        autoscaler,
        ssh: entry.table_given("ssh").map(remote::ssh),
        custom: entry.table_given("custom").map(remote::custom),
        kubernetes: entry.table_given("kubernetes").map(|table| table.json.clone()),
        given: given::of(entry, &[]),
    };
    check_executor(&runner, entry, gather);
    runner
}

/// A reference that cannot be used refuses the entry: its jobs would run without what the operator asked for.
fn steps(table: &Checked, gather: &mut Gather<'_>) -> BTreeMap<String, StepReference> {
    const HINT: &str = "write `host/project@v1`, `registry/repository:tag`, or an absolute path on the instance";
    let mut steps = BTreeMap::new();
    for name in ["checkout", "cache", "artifact"] {
        let Some(text) = table.text(name) else { continue };
        let wrong = match StepReference::parse(&text, Dialect::Functions) {
            Ok(StepReference::Local(local)) if local.path.first().is_none_or(|first| **first != *"/") => {
                "is relative, and jobs run in many directories".to_owned()
            }
            Ok(reference) => {
                steps.insert(name.to_owned(), reference);
                continue;
            }
            Err(fault) => format!("is no reference of a step: {fault}"),
        };
        let message = format!("`{name}` = `{text}` in `[runners.steps]` {wrong}");
        gather.refuse("no-reference", message, Some(table.place(name)), HINT);
    }
    steps
}

/// Go writes the year 1 for a time that nobody has set; 1970 is beyond all doubt.
fn is_set(time: &Timestamp) -> bool {
    time.nanoseconds() > 0
}

fn executor(entry: &Checked, gather: &mut Gather<'_>) -> Option<Executor> {
    let Some(word) = entry.text("executor") else {
        if !entry.is_given("executor") {
            gather.absent("no-executor", "it has no `executor`", entry.span.clone(), "write `executor = \"shell\"`, or another one");
        } else {
            gather.refuse(
                "no-executor",
                "its `executor` is empty",
                Some(entry.place("executor")),
                "write `executor = \"shell\"`, or another one",
            );
        }
        return None;
    };
    let place = entry.place("executor");
    match executor::meaning(&word) {
        Meaning::Known(executor) => Some(executor),
        Meaning::Old(executor) => {
            let message = format!("`{word}` is an old name and taken as `{}`", executor.name());
            gather.note("old-name", message, Some(place), format!("write `executor = \"{}\"`", executor.name()));
            Some(executor)
        }
        Meaning::NotOffered(way_out) => {
            gather.refuse("no-executor", format!("the executor `{word}` is not offered"), Some(place), way_out);
            None
        }
        Meaning::Unknown => {
            let hint = nearest(&word, executor::words()).map(|near| format!("did you mean `{near}`?"));
            let hint = hint.unwrap_or_else(|| format!("there are {}", executor::words().collect::<Vec<_>>().join(", ")));
            gather.refuse("no-executor", format!("there is no executor `{word}`"), Some(place), hint);
            None
        }
    }
}

/// What each executor cannot do without. What another one needs may be missing: a table may be left from earlier days.
fn check_executor(runner: &Runner, entry: &Checked, gather: &mut Gather<'_>) {
    let Some(executor) = runner.executor else { return };
    let (name, check, hint): (_, fn(&Checked, &mut Gather<'_>), _) = match executor {
        Executor::Instance | Executor::DockerAutoscaler => ("autoscaler", autoscaler::check, "name its `plugin` there"),
        Executor::DockerMachine => ("machine", machine::check, "name its `MachineDriver` and `MachineName` there"),
        Executor::Ssh => ("ssh", remote::check_ssh, "name its `host` there"),
        Executor::Custom => ("custom", remote::check_custom, "name its `run_exec` there"),
        Executor::Docker | Executor::DockerWindows | Executor::Shell | Executor::Kubernetes => return,
    };
    match entry.table_given(name) {
        Some(table) => check(table, gather),
        None => {
            let message = format!("the executor `{}` needs a table `[runners.{name}]`", executor.name());
            gather.absent("no-table", &message, entry.place("executor"), hint);
        }
    }
}

fn url(entry: &Checked, variables: &BTreeMap<String, String>, gather: &mut Gather<'_>) -> String {
    const HINT: &str = "write the address of your GitLab server, such as `url = \"https://gitlab.example.com\"`";
    let place = entry.place("url");
    let Some(written) = entry.text("url") else {
        gather.absent("no-url", "it has no `url`", place, HINT);
        return String::new();
    };
    let expanded = expanded(&written, "url", variables, place.clone(), gather);
    match address::server(&expanded) {
        Ok((url, false)) => url,
        Ok((url, true)) => {
            gather.warn(
                "old-address",
                "the `/ci` at the end of `url` is dropped",
                Some(place),
                "write it without `/ci`: submodules break with it",
            );
            url
        }
        Err(why) => {
            // An address may name an account with its password.
            let shown = if written.contains('@') { "`url`".to_owned() } else { format!("`url` = `{written}`") };
            gather.refuse("no-url", format!("{shown} {why}"), Some(place), HINT);
            String::new()
        }
    }
}

fn token(entry: &Checked, variables: &BTreeMap<String, String>, gather: &mut Gather<'_>) -> Secret {
    let place = entry.place("token");
    let Some(written) = entry.secret("token") else {
        gather.absent("no-token", "it has no `token`", place, "`runner-core register` asks the server for one and writes it here");
        return Secret::default();
    };
    let token = Secret::new(expanded(written.expose(), "token", variables, place.clone(), gather));
    if token.is_blank() {
        gather.refuse("no-token", "its `token` is empty", Some(place), "is the variable that it names set?");
    }
    token
}

/// Names are said, values never.
fn expanded(text: &str, key: &str, variables: &BTreeMap<String, String>, place: Range<usize>, gather: &mut Gather<'_>) -> String {
    let (expanded, missing) = go_text::expand(text, variables);
    // A token may hold a dollar sign by chance; its letters are not for a message.
    if !missing.is_empty() && key != "token" {
        let message = format!("`{key}` names `{}`, which is not in the environment and counts as empty", missing.join("`, `"));
        gather.warn("no-variable", message, Some(place), "");
    } else if !missing.is_empty() {
        gather.warn("no-variable", format!("`{key}` names a variable that is not in the environment and counts as empty"), Some(place), "");
    }
    expanded
}

fn tls(entry: &Checked, gather: &mut Gather<'_>) -> Tls {
    let tls = Tls { ca_file: entry.text("tls-ca-file"), cert_file: entry.text("tls-cert-file"), key_file: entry.text("tls-key-file") };
    let (present, missing) = match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => ("tls-cert-file", "tls-key-file"),
        (None, Some(_)) => ("tls-key-file", "tls-cert-file"),
        _ => return tls,
    };
    let message = format!("`{present}` has no effect without `{missing}`");
    gather.warn("half-a-pair", message, Some(entry.place(present)), format!("add `{missing}`"));
    tls
}

/// `KEY=VALUE`, as GitLab's runner takes them apart.
pub(super) fn variables_of(table: &Checked, key: &str, gather: &mut Gather<'_>) -> Vec<Variable> {
    let mut variables = Vec::new();
    for text in table.texts(key) {
        match text.split_once('=') {
            Some((name, value)) => variables.push(Variable { name: name.to_owned(), value: Secret::new(value) }),
            None => {
                let message = format!("an item of `{key}` is ignored, since it has no `=`");
                gather.warn("no-variable", message, Some(table.place(key)), "write `KEY=VALUE`");
            }
        }
    }
    variables
}

fn shell_of(text: &str) -> Option<Shell> {
    match text {
        "bash" => Some(Shell::Bash),
        "sh" => Some(Shell::Sh),
        "cmd" => Some(Shell::Cmd),
        "pwsh" => Some(Shell::Pwsh),
        "powershell" => Some(Shell::PowerShell),
        _ => None,
    }
}

fn slot_cgroup_template(entry: &Checked, gather: &mut Gather<'_>) -> Option<String> {
    let template = entry.text("slot_cgroup_template")?;
    if !template.contains("${slot}") {
        let place = entry.place("slot_cgroup_template");
        gather.refuse(
            "no-slot",
            format!("`slot_cgroup_template` = `{template}` has no `${{slot}}`"),
            Some(place),
            "slots would share a cgroup",
        );
    }
    entry.flag("use_slot_cgroups").then_some(template)
}

fn boot_verify(table: &Checked) -> Option<BootVerify> {
    table.flag("enabled").then(|| BootVerify {
        timeout: table.duration("timeout"),
        acquire_min_backoff: table.duration("acquire_min_backoff"),
        acquire_max_backoff: table.duration("acquire_max_backoff"),
    })
}

/// Two entries that are one runner to the server would take each other's place.
pub(super) fn check_identities(runners: &[Runner], entries: &[Checked], gather: &mut Gather<'_>) {
    let mut seen = BTreeSet::new();
    for (runner, entry) in runners.iter().zip(entries) {
        if runner.token.is_blank() || runner.url.is_empty() {
            continue;
        }
        if !seen.insert((runner.url.as_str(), runner.token.expose())) {
            let message = format!("{} has the url and token of an earlier entry", runner.phrase());
            let hint = "to the server both are one runner; remove one, or register it anew";
            gather.about_entry(runner.index, |gather| gather.warn("same-runner", message, Some(entry.span.clone()), hint));
        }
    }
}
