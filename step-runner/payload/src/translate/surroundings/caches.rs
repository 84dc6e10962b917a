//! The caches of a job become steps before and after its own.
//!
//! Limits and defaults: GitLab Runner v19.4, `functions/concrete/builder`.

use super::builtin::{secret_json, text_input, value_input};
use super::cache_key::{hashed, is_protected, sanitised};
use super::settings::Settings;
use crate::job::{Cache, Job};
use crate::{CachePlace, CacheUse, Here};
use serde_json::{Value as Json, json};
use step_model::diagnostic::Problem;
use step_model::document::{ValueTemplate, When};
use step_model::expression::Template;

/// A cache with everything expanded, and its keys in the order in which they are tried.
pub(super) struct Entry {
    /// Never empty. The first is the one that is saved.
    pub keys: Vec<String>,
    pub paths: Vec<String>,
    pub untracked: bool,
    pub when: When,
    pub policy: Policy,
    /// Said by the step.
    pub warnings: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Policy {
    PullPush,
    Pull,
    Push,
}

impl Policy {
    fn of(text: &str) -> Option<Self> {
        match text {
            "" | "pull-push" => Some(Self::PullPush),
            "pull" => Some(Self::Pull),
            "push" => Some(Self::Push),
            _ => None,
        }
    }

    pub fn restores(self) -> bool {
        self != Self::Push
    }

    pub fn saves(self) -> bool {
        self != Self::Pull
    }
}

/// Those that have files at all.
pub(super) fn entries(job: &Job, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut settings = Settings::new(job, problems);
    let with_files = job.cache.iter().enumerate().filter(|(_, cache)| !cache.paths.is_empty() || cache.untracked);
    with_files.filter_map(|(index, cache)| entry(job, index, cache, &mut settings)).collect()
}

/// For whoever signs addresses.
pub(crate) fn uses(job: &Job, problems: &mut Vec<Problem>) -> Vec<CacheUse> {
    let uses = entries(job, problems).into_iter().flat_map(|entry| {
        let Entry { keys, policy, .. } = entry;
        keys.into_iter().enumerate().map(move |(index, key)| CacheUse {
            key,
            restored: policy.restores(),
            saved: index == 0 && policy.saves(),
        })
    });
    uses.filter(|cache| cache.restored || cache.saved).collect()
}

fn entry(job: &Job, index: usize, cache: &Cache, settings: &mut Settings<'_>) -> Option<Entry> {
    let policy = Policy::of(&settings.expand(&cache.policy));
    if policy.is_none() {
        let message = format!("`cache[{index}].policy` is none of `pull-push`, `pull`, `push`");
        settings.problems.push(Problem::error("cache-policy", message, None));
    }
    let policy = policy?;
    let mut warnings = Vec::new();
    // The key of a cache without one is the job's name and the ref.
    let reference = job.git.as_ref().map(|git| git.reference.as_str()).unwrap_or_default();
    let written = Some(settings.expand(&cache.key)).filter(|key| !key.is_empty()).unwrap_or_else(|| format!("{}/{reference}", job.name));
    let is_hashed = settings.flag("FF_HASH_CACHE_KEYS", false);
    let mut keys = used(&written, is_hashed, &mut warnings);
    if keys.is_empty() {
        let message = format!("`cache[{index}]` is left out: nothing is left of its key `{}`", written.escape_debug());
        settings.problems.push(Problem::warning("cache-key", message, None));
        return None;
    }
    let mut fallbacks: Vec<String> = cache.fallback_keys.iter().map(|key| settings.expand(key)).collect();
    if let Some(key) = settings.value("CACHE_FALLBACK_KEY") {
        if is_protected(&key) {
            warnings.push(format!("CACHE_FALLBACK_KEY `{key}` is not allowed: it ends in `-protected`"));
        } else {
            fallbacks.push(key);
        }
    }
    for fallback in fallbacks.iter().filter(|key| !key.is_empty()) {
        for key in used(fallback, is_hashed, &mut warnings) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let paths = cache.paths.iter().map(|path| settings.expand(path)).collect();
    Some(Entry { keys, paths, untracked: cache.untracked, when: cache.when, policy, warnings })
}

/// The key as it is used; where keys are hashed, the readable one after it, since caches may be older than that.
fn used(written: &str, is_hashed: bool, warnings: &mut Vec<String>) -> Vec<String> {
    let readable = sanitised(written);
    if is_hashed {
        return std::iter::once(hashed(written)).chain(readable).collect();
    }
    if let Some(key) = readable.as_deref().filter(|key| *key != written) {
        warnings.push(format!("the cache key `{}` is used as `{key}`", written.escape_debug()));
    }
    readable.into_iter().collect()
}

/// The inputs of a step that restores or saves.
pub(super) fn inputs(job: &Job, here: &Here, entry: &Entry, saves: bool, problems: &mut Vec<Problem>) -> Vec<(Template, ValueTemplate)> {
    let mut settings = Settings::new(job, problems);
    let minutes = settings.whole("CACHE_REQUEST_TIMEOUT", 1, 120, 10);
    let (first, others) = entry.keys.split_at(1);
    let mut inputs = vec![text_input("action", if saves { "archive" } else { "restore" }), text_input("key", &first[0])];
    if saves {
        inputs.push(value_input("paths", &json!(entry.paths)));
        inputs.push(value_input("untracked", &Json::Bool(entry.untracked)));
        inputs.push(text_input("format", &settings.one_of("CACHE_COMPRESSION_FORMAT", &["zip", "tarzstd", "zipzstd"], "zip")));
        inputs.push(text_input("level", &settings.level("CACHE_COMPRESSION_LEVEL")));
        if here.largest_cache > 0 {
            inputs.push(value_input("max_size", &json!(here.largest_cache)));
        }
    } else {
        inputs.push(value_input("fallback_keys", &json!(others)));
        inputs.push(value_input("attempts", &json!(settings.whole("RESTORE_CACHE_ATTEMPTS", 1, 10, 1))));
        if settings.flag("STEP_RUNNER_OUTSIDE_LINKS", false) {
            inputs.push(value_input("outside_links", &Json::Bool(true)));
        }
    }
    inputs.push(text_input("timeout", &format!("{minutes}m")));
    if !entry.warnings.is_empty() {
        inputs.push(value_input("warnings", &json!(entry.warnings)));
    }
    inputs.extend(place(here, entry));
    inputs
}

fn place(here: &Here, entry: &Entry) -> Vec<(Template, ValueTemplate)> {
    match &here.caches {
        CachePlace::Nowhere => Vec::new(),
        CachePlace::Directory(directory) => vec![text_input("directory", directory)],
        CachePlace::Bucket { settings, credentials } => {
            let fields = settings.iter().map(|(name, value)| value_input(name, value));
            fields.chain([secret_json("credentials", credentials)]).collect()
        }
        CachePlace::Signed(objects) => {
            // An address is as good as a password: only those that this step needs.
            let own: serde_json::Map<String, Json> =
                entry.keys.iter().filter_map(|key| Some((key.clone(), objects.get(key)?.clone()))).collect();
            vec![secret_json("signed", &Json::Object(own))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobVariable;

    fn job(cache: Cache, variables: &[(&str, &str)]) -> Job {
        let variables =
            variables.iter().map(|(key, value)| JobVariable { key: (*key).into(), value: (*value).into(), ..JobVariable::default() });
        Job { name: "build".into(), cache: vec![cache], variables: variables.collect(), ..Job::default() }
    }

    fn cache(key: &str) -> Cache {
        Cache { key: key.into(), paths: vec!["deps".into()], ..Cache::default() }
    }

    /// The keys, what is warned of, and what is told before the job.
    fn keys(cache: Cache, variables: &[(&str, &str)]) -> String {
        let mut problems = Vec::new();
        let entries = entries(&job(cache, variables), &mut problems);
        let problems = problems.iter().map(|problem| problem.message.clone());
        let shown = entries.iter().flat_map(|entry| [entry.keys.join(" "), entry.warnings.join("; ")]);
        shown.chain(problems).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn keys_are_expanded_and_tried_in_order() {
        let with_fallbacks = Cache { fallback_keys: vec!["$A-x".into(), "last".into(), "one".into()], ..cache("$A") };
        assert_eq!(keys(with_fallbacks, &[("A", "one"), ("CACHE_FALLBACK_KEY", "of-all")]), "one one-x last of-all");
        assert_eq!(keys(cache(""), &[]), "build | the cache key `build/` is used as `build`");
    }

    #[test]
    fn cac_01_a_fallback_key_that_is_protected_is_refused_with_a_warning() {
        for key in ["x-protected", "x-$P. "] {
            let said = keys(cache("main"), &[("CACHE_FALLBACK_KEY", key), ("P", "protected")]);
            assert!(said.starts_with("main | CACHE_FALLBACK_KEY `x-protected"), "{said}");
            assert!(said.contains("is not allowed: it ends in `-protected`"), "{said}");
        }
    }

    #[test]
    fn cac_02_a_policy_may_be_a_variable_and_a_wrong_one_is_an_error() {
        let push = Cache { policy: "$P".into(), ..cache("main") };
        let restored = |value| uses(&job(push.clone(), &[("P", value)]), &mut Vec::new());
        assert_eq!(restored("push"), [CacheUse { key: "main".into(), restored: false, saved: true }]);
        assert_eq!(restored("pull"), [CacheUse { key: "main".into(), restored: true, saved: false }]);
        assert_eq!(keys(push, &[("P", "psuh")]), "`cache[0].policy` is none of `pull-push`, `pull`, `push`");
    }

    #[test]
    fn a_key_that_leads_elsewhere_is_used_as_another_and_said() {
        insta::assert_snapshot!(keys(cache("../../a%2fb"), &[]), @"a/b | the cache key `../../a%2fb` is used as `a/b`");
        insta::assert_snapshot!(keys(cache(".."), &[]), @"`cache[0]` is left out: nothing is left of its key `..`");
    }

    #[test]
    fn hashed_keys_come_before_readable_ones() {
        let keys = keys(cache("main"), &[("FF_HASH_CACHE_KEYS", "true")]);
        assert_eq!(keys, format!("{} main", hashed("main")));
    }

    #[test]
    fn only_the_first_key_is_saved() {
        let with_fallbacks = Cache { fallback_keys: vec!["other".into()], ..cache("main") };
        let uses: Vec<_> =
            uses(&job(with_fallbacks, &[]), &mut Vec::new()).into_iter().map(|each| (each.key, each.restored, each.saved)).collect();
        assert_eq!(uses, [("main".to_owned(), true, true), ("other".to_owned(), true, false)]);
    }
}
