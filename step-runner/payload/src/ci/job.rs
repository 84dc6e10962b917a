//! A job of the configuration, read into what a payload says too.

use super::assemble::{Assembled, Fault};
use super::keywords;
use super::read::Values;
use super::tree::{At, Content, Tree};
use crate::duration::spoken_duration;
use crate::job::{Hook, Job, JobStep, JobVariable, Secret};
use crate::variables::expand_among_each_other;
use crate::{Here, NotDone, Translation, translate};
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::diagnostic::{Place, Problem};
use step_model::document::When;
use step_model::expression::nearest;

/// Keywords that a job takes over from `default:`, or from the top level, when it has none of its own.
const INHERITED: [&str; 13] = [
    "after_script",
    "artifacts",
    "before_script",
    "cache",
    "hooks",
    "id_tokens",
    "identity",
    "image",
    "interruptible",
    "retry",
    "services",
    "tags",
    "timeout",
];

/// Keywords that the top level may hold in place of `default:`.
const GLOBAL: [&str; 5] = ["image", "services", "cache", "before_script", "after_script"];

/// A job that was found, and where its parts stand.
#[derive(Debug)]
pub(super) struct Wanted {
    pub job: Job,
    /// Of its script or `run`, or of the job itself.
    pub at: At,
    pub places: BTreeMap<&'static str, At>,
    pub not_done: Vec<NotDone>,
    pub warnings: Vec<Problem>,
}

impl Wanted {
    pub fn translated(
        &self,
        here: &Here,
        supplied: &BTreeMap<String, String>,
        place_of: &dyn Fn(&str) -> Option<Place>,
    ) -> Result<Translation, Vec<Problem>> {
        let mut job = self.job.clone();
        expand_as_gitlab_does(&mut job, here).map_err(|problem| vec![problem])?;
        let mut translation = translate::translate(job, here, supplied, place_of)?;
        translation.not_done.extend(self.not_done.iter().cloned());
        translation.problems.extend(self.warnings.iter().cloned());
        Ok(translation)
    }
}

/// `None`: there are faults.
pub(super) fn read(assembled: &Assembled, name: &str, faults: &mut Vec<Fault>) -> Option<Wanted> {
    let own = assembled.job(name, faults)?;
    let tree = with_defaults(assembled, &own, faults);
    let mut warnings = Vec::new();
    warn_of_unknown_keys(name, &own, &mut warnings);
    if let Some(trigger) = tree.get("trigger") {
        let message = format!("`{name}` starts another pipeline: it has nothing to run here");
        faults.push(Fault { at: trigger.at, message, hint: None });
        return None;
    }
    if tree.get("script").is_none() && tree.get("run").is_none() {
        let hint = Some("give it a `script`, or let it extend a job that has one".to_owned());
        faults.push(Fault { at: own.at, message: format!("jobs:{name} script can't be blank"), hint });
        return None;
    }
    for keyword in ["script", "before_script", "after_script"] {
        if let (Some(_), Some(with)) = (own.get("run"), own.get(keyword)) {
            let message = format!("the `run` and `{keyword}` keywords cannot be used together");
            faults.push(Fault { at: with.at, message, hint: None });
        }
    }
    let before = faults.len();
    let job = read_job(assembled, name, &tree, faults);
    let mut not_done = Vec::new();
    keywords::name_unapplied(&tree, &mut not_done);
    keywords::name_unapplied_of_pipeline(&assembled.root, &mut not_done);
    if faults.len() > before {
        return None;
    }
    let places = ["run", "script"].into_iter().filter_map(|key| Some((key, tree.get(key)?.at))).collect::<BTreeMap<_, _>>();
    let at = places.values().next().copied().unwrap_or(own.at);
    Some(Wanted { job, at, places, not_done, warnings })
}

/// The job over what it takes from `default:`; `inherit:default` says how much of it.
fn with_defaults(assembled: &Assembled, own: &Tree, faults: &mut Vec<Fault>) -> Tree {
    let inherits = inherits(own, "default");
    let default = assembled.value("default", faults);
    let mut tree = own.clone();
    for keyword in INHERITED.into_iter().filter(|keyword| own.get(keyword).is_none() && inherits(keyword)) {
        let of_default = default.as_ref().and_then(|default| default.get(keyword)).cloned();
        let value = of_default.or_else(|| GLOBAL.contains(&keyword).then(|| assembled.value(keyword, faults)).flatten());
        // A key that the job sets to nothing on purpose is inherited neither.
        let is_written = own.as_map().is_some_and(|map| map.0.iter().any(|(key, _)| &**key == keyword));
        if let Some(value) = value.filter(|_| !is_written) {
            let addition = Tree::map(super::tree::Map(vec![(keyword.into(), value)]), own.at);
            tree = tree.merged_with(&addition);
        }
    }
    tree
}

/// `inherit: {default: false}`, or the names that are inherited.
fn inherits<'t>(job: &'t Tree, kind: &str) -> impl Fn(&str) -> bool + 't {
    let setting = job.get("inherit").and_then(|inherit| inherit.get(kind));
    move |name| match setting.map(|setting| &setting.content) {
        Some(Content::Boolean(all)) => *all,
        Some(Content::List(names)) => names.iter().any(|item| item.as_text().is_some_and(|text| &**text == name)),
        _ => true,
    }
}

fn warn_of_unknown_keys(name: &str, job: &Tree, warnings: &mut Vec<Problem>) {
    for (key, _) in job.as_map().into_iter().flat_map(|map| &map.0) {
        if !keywords::KNOWN.contains(&&**key) {
            let problem = Problem::warning("unknown-keyword", format!("jobs:{name} config contains unknown keys: {key}"), None);
            warnings.push(match nearest(key, keywords::KNOWN) {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => problem,
            });
        }
    }
}

fn read_job(assembled: &Assembled, name: &str, tree: &Tree, faults: &mut Vec<Fault>) -> Job {
    let global = assembled.value("variables", faults);
    let mut values = Values { faults };
    let path = |keyword: &str| format!("jobs:{name}:{keyword}");
    let mut variables = predefined(name, tree);
    if let Some(global) = global {
        let inherits = inherits(tree, "variables");
        variables.extend(values.variables(&global, "variables").into_iter().filter(|variable| inherits(&variable.key)));
    }
    if let Some(own) = tree.get("variables") {
        variables.extend(values.variables(own, &path("variables")));
    }
    let mut job = Job {
        name: name.to_owned(),
        timeout: timeout(tree, name, &mut values),
        variables,
        steps: scripts(tree, &path, &mut values),
        run: tree.get("run").map(|run| run.to_json().to_string()).unwrap_or_default(),
        image: tree.get("image").map(|image| values.image(image, &path("image"))),
        services: tree
            .get("services")
            .into_iter()
            .flat_map(Tree::one_or_several)
            .map(|service| values.image(service, &path("services")))
            .collect(),
        artifacts: tree.get("artifacts").map(|artifacts| values.artifacts(artifacts, &path("artifacts"))).unwrap_or_default(),
        cache: tree
            .get("cache")
            .into_iter()
            .flat_map(Tree::one_or_several)
            .filter_map(|cache| values.cache(cache, &path("cache")))
            .collect(),
        secrets: secrets(tree),
        hooks: hooks(tree, &path, &mut values),
        ..Job::default()
    };
    job.keep_last_of_each_name();
    job
}

/// `before_script` and `script` are one script of one shell; `after_script` is another.
fn scripts(tree: &Tree, path: &dyn Fn(&str) -> String, values: &mut Values<'_>) -> Vec<JobStep> {
    let mut read = |keyword: &str| tree.get(keyword).map(|script| values.script(script, &path(keyword))).unwrap_or_default();
    let mut script = if tree.get("run").is_none() || tree.get("script").is_some() { read("before_script") } else { Vec::new() };
    script.extend(read("script"));
    let after_script = if tree.get("run").is_none() { read("after_script") } else { Vec::new() };
    vec![
        JobStep { name: "script".to_owned(), script, ..JobStep::default() },
        JobStep { name: "after_script".to_owned(), script: after_script, when: When::Always, allow_failure: true, ..JobStep::default() },
    ]
}

fn hooks(tree: &Tree, path: &dyn Fn(&str) -> String, values: &mut Values<'_>) -> Vec<Hook> {
    let written = tree.get("hooks").and_then(Tree::as_map).into_iter().flat_map(|hooks| &hooks.0);
    written.map(|(name, script)| Hook { name: name.to_string(), script: values.script(script, &path(&format!("hooks:{name}"))) }).collect()
}

fn timeout(tree: &Tree, name: &str, values: &mut Values<'_>) -> Option<Duration> {
    let written = tree.get("timeout")?;
    let duration = spoken_duration(&values.text(written, &format!("jobs:{name}:timeout")));
    if duration.is_none_or(|duration| duration.is_zero()) {
        values.fault(written, format!("jobs:{name}:timeout config should be a duration, such as `1h 30m`"));
    }
    duration
}

/// Secrets and tokens that GitLab or the runner would fetch: their values must be supplied.
fn secrets(tree: &Tree) -> Vec<Secret> {
    let names = |keyword: &'static str| tree.get(keyword).and_then(Tree::as_map).into_iter().flat_map(|map| &map.0);
    let kept = names("secrets").map(|(name, secret)| Secret {
        name: name.to_string(),
        provider: secret.as_map().and_then(|map| map.0.first()).map(|(provider, _)| provider.to_string()).unwrap_or_default(),
        file: !matches!(secret.get("file").map(|file| &file.content), Some(Content::Boolean(false))),
    });
    let tokens = names("id_tokens").map(|(name, _)| Secret { name: name.to_string(), provider: "id_tokens".to_owned(), file: false });
    kept.chain(tokens).collect()
}

/// What the file itself says about the job. What the place knows (commit, project directory) is in [`Here::predefined`].
fn predefined(name: &str, tree: &Tree) -> Vec<JobVariable> {
    let stage = tree.get("stage").and_then(Tree::as_text).map_or("test", |stage| stage);
    let values = [
        ("CI", "true"),
        ("GITLAB_CI", "true"),
        ("CI_SERVER", "yes"),
        ("CI_JOB_NAME", name),
        ("CI_JOB_NAME_SLUG", &slug(name)),
        ("CI_JOB_STAGE", stage),
    ]
    .map(|(key, value)| JobVariable { key: key.to_owned(), value: value.to_owned(), raw: true, ..JobVariable::default() });
    values.to_vec()
}

/// Lower case, at most 63 letters, anything but `a` to `z` and digits a dash, no dash at either end.
fn slug(name: &str) -> String {
    let dashed: String =
        name.to_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).take(63).collect();
    dashed.trim_matches('-').to_owned()
}

/// GitLab expands variables through each other before a runner sees them.
fn expand_as_gitlab_does(job: &mut Job, here: &Here) -> Result<(), Problem> {
    let added = here.predefined.iter().map(|(key, value)| JobVariable {
        key: key.clone(),
        value: value.clone(),
        raw: true,
        ..JobVariable::default()
    });
    job.variables.splice(0..0, added);
    job.keep_last_of_each_name();
    let cyclic = expand_among_each_other(&mut job.variables);
    if cyclic.is_empty() {
        return Ok(());
    }
    let message = format!("circular variable reference detected: [{}]", cyclic.join(", "));
    Err(Problem::error("circular-variables", message, None).with_hint("`expand: false` leaves a value as it is"))
}
