//! What a container is asked to be, checked: every problem at once, and then a type that cannot be wrong.

use crate::image_reference::ImageReference;
use crate::inputs::ContainerInputs;
use crate::permissions::Permissions;
use crate::quantity;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::time::Duration;
use step_sdk::{Failure, FailureKind};

/// How long an engine may say nothing, when the job does not say.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(30);

/// When an image is asked of its registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// How the files of the job get into the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// The same directory, at the same path.
    Mount,
    /// Copied in before the first step, and back after the last.
    Copy,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entrypoint {
    OfImage,
    /// Empty: none at all.
    Replaced(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub source: MountSource,
    pub target: String,
    pub read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    Path(String),
    /// By name.
    Volume(String),
}

/// `None`: no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// In billionths of a processor.
    pub nano_cpus: Option<i64>,
    /// Bytes. No swap on top.
    pub memory: Option<i64>,
    pub pids: Option<i64>,
    /// Bytes of /dev/shm.
    pub shm_size: Option<i64>,
}

/// A checked container.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub image: ImageReference,
    pub entrypoint: Entrypoint,
    /// Empty: the image's own.
    pub command: Vec<String>,
    /// Empty: the image's own.
    pub user: String,
    /// Empty: the engine's own.
    pub platform: String,
    /// Tried one after the other; not empty.
    pub pull_policies: Vec<PullPolicy>,
    pub mirror: Option<String>,
    pub variables: BTreeMap<String, String>,
    /// `None`: as the place of the engine asks for.
    pub workspace: Option<Workspace>,
    pub mounts: Vec<Mount>,
    pub tmpfs: BTreeMap<String, String>,
    /// `None`: that of the job's services.
    pub network: Option<String>,
    pub aliases: Vec<String>,
    pub hostname: String,
    pub extra_hosts: Vec<String>,
    pub dns: Vec<String>,
    pub dns_search: Vec<String>,
    pub limits: Limits,
    /// Limits of the inner steps that the container holds.
    pub held: Vec<String>,
    pub privileged: bool,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    pub read_only: bool,
    pub labels: BTreeMap<String, String>,
    pub engine_timeout: Duration,
}

impl Settings {
    /// # Errors
    /// All problems of the inputs in one failure; as a refusal when a permission is all that is missing.
    pub fn check(inputs: ContainerInputs, permissions: &Permissions) -> Result<Self, Failure> {
        let mut problems = Problems::default();
        let image = ImageReference::parse(&inputs.image).unwrap_or_else(|error| {
            problems.add("image", &error.to_string());
            ImageReference::default()
        });
        let settings = Self {
            image,
            entrypoint: entrypoint(inputs.entrypoint),
            command: inputs.command,
            user: inputs.user,
            pull_policies: pull_policies(&inputs.pull_policy, &mut problems),
            mirror: Some(inputs.mirror).filter(|mirror| !mirror.is_empty()),
            variables: texts(&inputs.variables, "variables", &mut problems),
            workspace: workspace(&inputs.workspace, &mut problems),
            mounts: inputs.mounts.iter().filter_map(|mount| read_mount(mount, &mut problems)).collect(),
            tmpfs: texts(&inputs.tmpfs, "tmpfs", &mut problems),
            network: Some(inputs.network).filter(|network| !network.is_empty()),
            aliases: inputs.aliases,
            hostname: inputs.hostname,
            extra_hosts: inputs.extra_hosts,
            dns: inputs.dns,
            dns_search: inputs.dns_search,
            limits: Limits {
                nano_cpus: number("cpus", inputs.cpus, 1e9, &mut problems),
                memory: size("memory", &inputs.memory, &mut problems),
                pids: number("pids", inputs.pids, 1.0, &mut problems),
                shm_size: size("shm_size", &inputs.shm_size, &mut problems),
            },
            held: Vec::new(),
            platform: platform(inputs.platform, &mut problems),
            privileged: inputs.privileged,
            cap_add: inputs.cap_add,
            cap_drop: inputs.cap_drop,
            read_only: inputs.read_only,
            labels: texts(&inputs.labels, "labels", &mut problems),
            engine_timeout: timeout(&inputs.engine_timeout, &mut problems),
        };
        problems.none()?;
        permissions.allow(&settings)?;
        Ok(settings)
    }
}

/// Collects what is wrong, input by input.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, input: &str, why: &str) {
        self.0.push(format!("`{input}`: {why}"));
    }

    fn none(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::new(FailureKind::BadInput, self.0.join("; "))) }
    }
}

/// GitLab's users write `[""]` for an image that is to start without its own.
fn entrypoint(given: Vec<String>) -> Entrypoint {
    if given.is_empty() { Entrypoint::OfImage } else { Entrypoint::Replaced(given.into_iter().filter(|item| !item.is_empty()).collect()) }
}

fn pull_policies(given: &[String], problems: &mut Problems) -> Vec<PullPolicy> {
    let mut policies = Vec::new();
    for text in given {
        match text.as_str() {
            "always" => policies.push(PullPolicy::Always),
            "if-not-present" => policies.push(PullPolicy::IfNotPresent),
            "never" => policies.push(PullPolicy::Never),
            other => problems.add("pull_policy", &format!("`{other}` is none of `always`, `if-not-present` and `never`")),
        }
    }
    if policies.is_empty() { vec![PullPolicy::IfNotPresent] } else { policies }
}

fn workspace(text: &str, problems: &mut Problems) -> Option<Workspace> {
    match text {
        "" => None,
        "mount" => Some(Workspace::Mount),
        "copy" => Some(Workspace::Copy),
        "none" => Some(Workspace::None),
        other => {
            problems.add("workspace", &format!("`{other}` is none of `mount`, `copy` and `none`"));
            None
        }
    }
}

fn read_mount(text: &str, problems: &mut Problems) -> Option<Mount> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, options) = match parts[..] {
        [source, target] => (source, target, ""),
        [source, target, options] => (source, target, options),
        _ => {
            problems.add("mounts", &format!("`{text}` is not `SOURCE:TARGET` or `SOURCE:TARGET:ro`"));
            return None;
        }
    };
    if source.is_empty() || !target.starts_with('/') || !matches!(options, "" | "ro" | "rw") {
        problems.add("mounts", &format!("`{text}` is not `SOURCE:TARGET` or `SOURCE:TARGET:ro`, with an absolute target"));
        return None;
    }
    if source.contains('/') && !source.starts_with('/') {
        problems.add("mounts", &format!("the source of `{text}` is a relative path: write it absolute, or as the name of a volume"));
        return None;
    }
    let source = if source.starts_with('/') { MountSource::Path(source.to_owned()) } else { MountSource::Volume(source.to_owned()) };
    Some(Mount { source, target: target.to_owned(), read_only: options == "ro" })
}

fn platform(text: String, problems: &mut Problems) -> String {
    let parts: Vec<&str> = text.split('/').collect();
    if !text.is_empty() && (!(2..=3).contains(&parts.len()) || parts.iter().any(|part| part.is_empty())) {
        problems.add("platform", &format!("`{text}` is not `OS/ARCHITECTURE`, such as `linux/arm64`"));
    }
    text
}

fn number(input: &str, given: f64, factor: f64, problems: &mut Problems) -> Option<i64> {
    let value = given * factor;
    if given == 0.0 {
        return None;
    }
    if !(value.is_finite() && (1.0..9e18).contains(&value)) {
        problems.add(input, &format!("{given} is no limit: expected a number above zero, or zero for none"));
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was looked at")]
    Some(value as i64)
}

fn size(input: &str, text: &str, problems: &mut Problems) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let size = quantity::bytes(text);
    if size.is_none() {
        problems.add(input, &format!("`{text}` is no size: write `512m` or `2g`"));
    }
    size
}

fn timeout(text: &str, problems: &mut Problems) -> Duration {
    if text.is_empty() {
        return ENGINE_TIMEOUT;
    }
    quantity::duration(text).filter(|timeout| !timeout.is_zero()).unwrap_or_else(|| {
        problems.add("engine_timeout", &format!("`{text}` is no duration: write `30s` or `2m`"));
        ENGINE_TIMEOUT
    })
}

/// Numbers and flags are texts in an environment.
fn texts(given: &Map<String, Json>, input: &str, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (key, value) in given {
        match value {
            Json::String(text) => drop(texts.insert(key.clone(), text.clone())),
            Json::Bool(_) | Json::Number(_) => drop(texts.insert(key.clone(), value.to_string())),
            Json::Null => drop(texts.insert(key.clone(), String::new())),
            Json::Array(_) | Json::Object(_) => problems.add(input, &format!("the value of `{key}` is neither a text nor a number")),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inputs: Json) -> Result<Settings, Failure> {
        Settings::check(serde_json::from_value(inputs).unwrap(), &Permissions::default())
    }

    #[test]
    fn an_image_alone_is_enough() {
        let settings = check(serde_json::json!({"image": "postgres:16"})).unwrap();
        assert_eq!(settings.entrypoint, Entrypoint::OfImage);
        assert_eq!(settings.pull_policies, [PullPolicy::IfNotPresent]);
        assert_eq!(settings.limits, Limits::default());
        assert_eq!((settings.workspace, settings.network, settings.engine_timeout), (None, None, ENGINE_TIMEOUT));
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let failure = check(serde_json::json!({
            "image": "A", "memory": "lots", "pull_policy": ["sometimes"], "mounts": ["a", "./b:/c"], "cpus": -1, "platform": "arm64",
            "workspace": "share", "variables": {"A": []}, "engine_timeout": "soon",
        }))
        .unwrap_err();
        assert_eq!(failure.kind, FailureKind::BadInput);
        insta::assert_snapshot!(failure.message.replace("; ", "\n"), @r"
        `image`: `A` is no name of an image: the name of a repository has no capital letters
        `pull_policy`: `sometimes` is none of `always`, `if-not-present` and `never`
        `variables`: the value of `A` is neither a text nor a number
        `workspace`: `share` is none of `mount`, `copy` and `none`
        `mounts`: `a` is not `SOURCE:TARGET` or `SOURCE:TARGET:ro`
        `mounts`: the source of `./b:/c` is a relative path: write it absolute, or as the name of a volume
        `cpus`: -1 is no limit: expected a number above zero, or zero for none
        `memory`: `lots` is no size: write `512m` or `2g`
        `platform`: `arm64` is not `OS/ARCHITECTURE`, such as `linux/arm64`
        `engine_timeout`: `soon` is no duration: write `30s` or `2m`
        ");
    }

    #[test]
    fn an_entrypoint_of_one_empty_text_is_none() {
        let settings = check(serde_json::json!({"image": "a", "entrypoint": [""]})).unwrap();
        assert_eq!(settings.entrypoint, Entrypoint::Replaced(vec![]));
    }

    #[test]
    fn limits_are_read_in_the_units_of_the_engine() {
        let settings = check(serde_json::json!({"image": "a", "cpus": 0.5, "memory": "64m", "pids": 100, "shm_size": "1g"})).unwrap();
        let expected = Limits { nano_cpus: Some(500_000_000), memory: Some(64 << 20), pids: Some(100), shm_size: Some(1 << 30) };
        assert_eq!(settings.limits, expected);
    }

    #[test]
    fn a_source_without_a_slash_is_a_volume() {
        let settings = check(serde_json::json!({"image": "a", "mounts": ["cache:/c", "/d:/d:ro"]})).unwrap();
        assert_eq!(settings.mounts[0], Mount { source: MountSource::Volume("cache".into()), target: "/c".into(), read_only: false });
        assert_eq!(settings.mounts[1], Mount { source: MountSource::Path("/d".into()), target: "/d".into(), read_only: true });
    }

    #[test]
    fn what_only_the_owner_of_the_machine_allows_is_refused() {
        let failure =
            check(serde_json::json!({"image": "a", "privileged": true, "cap_add": ["SYS_ADMIN"], "network": "host"})).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        insta::assert_snapshot!(failure, @r"
        error: not allowed on this machine: a privileged container, the capability `SYS_ADMIN`, the network `host`
         hint: its owner allows it in `/etc/step-runner/docker.json`
        ");
    }
}
