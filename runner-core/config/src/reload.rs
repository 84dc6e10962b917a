//! A file has changed: what is different, runner by runner, and when each difference takes effect.

use crate::given::Given;
use crate::settings::{Runner, Settings};
use std::collections::BTreeSet;
use std::fmt;

/// The way from one configuration to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reload {
    /// Keys that count for all runners.
    pub global: Vec<Change>,
    /// Runners that both have.
    pub changed: Vec<ChangedRunner>,
    /// Places in the new configuration.
    pub added: Vec<usize>,
    /// Places in the old one. Such a runner finishes its jobs and takes no more.
    pub removed: Vec<usize>,
    /// Runners that were served and are refused now: the old settings go on counting.
    pub kept: Vec<usize>,
}

/// A runner that both configurations have; one without changes is not listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedRunner {
    /// Place among the runners of the old configuration.
    pub old: usize,
    /// Place among the runners of the new one.
    pub new: usize,
    pub changes: Vec<Change>,
}

impl ChangedRunner {
    /// Whether its plugin is replaced: a new one starts beside the old one, which takes no more jobs and ends with its last.
    pub fn needs_new_plugin(&self) -> bool {
        self.changes.iter().any(|change| change.effect == TakesEffect::WithNewPlugin)
    }
}

/// One key. Secrets are not in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// As the file writes it, inside its entry: `docker.image`.
    pub key: String,
    /// `None`: it was not there.
    pub old: Option<String>,
    pub new: Option<String>,
    pub effect: TakesEffect,
}

/// One line for a log: `limit: 3 -> 5, at once`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
        write!(f, "{}: {} -> {}, {}", self.key, shown(&self.old), shown(&self.new), self.effect.words())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakesEffect {
    AtOnce,
    /// Jobs that run keep what they began with.
    WithTheNextJob,
    /// The plugin is started anew beside the old one.
    WithNewPlugin,
}

impl TakesEffect {
    pub fn words(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::WithTheNextJob => "with the next job",
            Self::WithNewPlugin => "with a new plugin process",
        }
    }

    /// By the path of a key inside its entry.
    fn of(key: &str) -> Self {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| key == *prefix || key.starts_with(&format!("{prefix}.")));
        if begins(WITH_NEW_PLUGIN) {
            return Self::WithNewPlugin;
        }
        let is_at_once = begins(AT_ONCE) || key.starts_with("autoscaler.") || key.starts_with("machine.");
        if is_at_once { Self::AtOnce } else { Self::WithTheNextJob }
    }
}

/// What a plugin is told only once.
const WITH_NEW_PLUGIN: &[&str] = &[
    "executor",
    "autoscaler.plugin",
    "autoscaler.plugin_config",
    "autoscaler.state_storage.dir",
    "autoscaler.vm_isolation",
    "machine.MachineDriver",
    "machine.MachineName",
    "machine.MachineOptions",
    "machine.MachineOptionsWithName",
    "machine.MaxRemovalAttempts",
    "ssh",
    "custom",
    "kubernetes",
    "docker.host",
    "docker.tls_verify",
    "docker.tls_cert_path",
];

/// What the manager looks at itself; the rest travels with a job.
const AT_ONCE: &[&str] = &[
    "name",
    "url",
    "id",
    "token",
    "token_obtained_at",
    "token_expires_at",
    "tls-ca-file",
    "tls-cert-file",
    "tls-key-file",
    "limit",
    "request_concurrency",
    "strict_check_interval",
    "unhealthy_requests_limit",
    "unhealthy_interval",
    "job_status_final_update_retry_limit",
    "labels",
    "feature_flags",
    "monitoring",
    "experimental",
    "cache",
];

/// What has to happen to get from one configuration to the other.
pub fn compare(old: &Settings, new: &Settings) -> Reload {
    let mut reload =
        Reload {
            global: changes(&old.global.given, &new.global.given, |key| {
                if key == "user" { TakesEffect::WithNewPlugin } else { TakesEffect::AtOnce }
            }),
            ..Reload::default()
        };
    let mut taken = BTreeSet::new();
    for (place, runner) in old.runners.iter().enumerate() {
        if let Some(found) = counterpart(runner, &new.runners, &taken) {
            taken.insert(found);
            let changes = changes(&runner.given, &new.runners[found].given, TakesEffect::of);
            if !changes.is_empty() {
                reload.changed.push(ChangedRunner { old: place, new: found, changes });
            }
        } else if new.refused.iter().any(|refused| is_same(runner, &refused.runner)) {
            reload.kept.push(place);
        } else {
            reload.removed.push(place);
        }
    }
    reload.added = (0..new.runners.len()).filter(|place| !taken.contains(place)).collect();
    reload
}

/// The same runner in the other configuration: by its identity first, so that two entries do not change places.
fn counterpart(runner: &Runner, others: &[Runner], taken: &BTreeSet<usize>) -> Option<usize> {
    let free = || others.iter().enumerate().filter(|(place, _)| !taken.contains(place));
    let by_identity = free().find(|(_, other)| other.identity() == runner.identity());
    by_identity.or_else(|| free().find(|(_, other)| is_same(runner, other))).map(|(place, _)| place)
}

/// By number, by token, or by a name that was given to it.
fn is_same(one: &Runner, other: &Runner) -> bool {
    let same_token = !one.token.is_blank() && one.token == other.token;
    let same_name = one.name.is_some() && one.name == other.name;
    one.identity() == other.identity() || same_token || (one.url == other.url && same_name)
}

fn changes(old: &Given, new: &Given, effect: impl Fn(&str) -> TakesEffect) -> Vec<Change> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differs = |key: &&&String| old.get(**key) != new.get(**key);
    let change = |key: &String| Change {
        old: old.get(key).map(ToString::to_string),
        new: new.get(key).map(ToString::to_string),
        effect: effect(key),
        key: key.clone(),
    };
    keys.iter().filter(differs).map(|key| change(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn settings(text: &str) -> Settings {
        crate::parse(text, &BTreeMap::new()).settings.expect("settings")
    }

    fn runner(name: &str, token: &str, more: &str) -> String {
        format!("[[runners]]\nname = \"{name}\"\nurl = \"https://x\"\ntoken = \"{token}\"\nexecutor = \"shell\"\n{more}\n")
    }

    #[test]
    fn what_is_equal_needs_nothing() {
        let text = runner("a", "glrt-a", "limit = 3");
        assert_eq!(compare(&settings(&text), &settings(&format!("# moved\n\n{text}"))), Reload::default());
    }

    #[test]
    fn each_key_says_when_it_takes_effect() {
        let old = format!("concurrent = 2\n{}", runner("a", "glrt-a", "id = 1\nlimit = 3\nbuilds_dir = \"/a\"\nenvironment = [\"K=old\"]"));
        let plugin = "id = 1\nlimit = 5\nenvironment = [\"K=new\"]\n[runners.autoscaler]\nplugin = \"x\"\n[[runners.autoscaler.policy]]\nidle_time = \"20m\"";
        let new = format!("concurrent = 4\n{}", runner("a", "glrt-b", plugin));
        let reload = compare(&settings(&old), &settings(&new));
        let lines = |changes: &[Change]| changes.iter().map(|change| format!("{change}\n")).collect::<String>();
        insta::assert_snapshot!(lines(&reload.global), @"concurrent: 2 -> 4, at once");
        insta::assert_snapshot!(lines(&reload.changed[0].changes), @r#"
        autoscaler.plugin: not set -> "x", with a new plugin process
        autoscaler.policy[0].idle_time: not set -> 20m, at once
        builds_dir: "/a" -> not set, with the next job
        environment: [hidden] -> [hidden], with the next job
        limit: 3 -> 5, at once
        token: [hidden] -> [hidden], at once
        "#);
        assert!(reload.changed[0].needs_new_plugin());
    }

    #[test]
    fn runners_come_and_go() {
        let old = settings(&(runner("a", "glrt-a", "") + &runner("b", "glrt-b", "") + &runner("c", "glrt-c", "")));
        let new = settings(&(runner("d", "glrt-d", "") + &runner("c", "glrt-c", "limit = 1") + &runner("b", "glrt-b", "limit = \"x\"")));
        let reload = compare(&old, &new);
        assert_eq!((reload.added, reload.removed, reload.kept), (vec![0], vec![0], vec![1]));
        assert_eq!((reload.changed[0].old, reload.changed[0].new), (2, 1));
    }

    #[test]
    fn two_entries_do_not_change_places() {
        let old = settings(&(runner("a", "glrt-a", "id = 1") + &runner("a", "glrt-b", "id = 2")));
        let new = settings(&(runner("a", "glrt-b", "id = 2") + &runner("a", "glrt-a", "id = 1")));
        assert_eq!(compare(&old, &new), Reload::default());
    }
}
