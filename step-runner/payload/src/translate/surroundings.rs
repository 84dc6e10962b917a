//! What GitLab's runner does around the job's own steps: here a `builtin://` step each where the place has it, else a line that names it.

mod artifacts;
mod builtin;
mod cache_key;
mod caches;
mod checkout;
mod settings;

pub(crate) use caches::uses as cache_uses;

use crate::job::{Image, Job, JobVariable, Login};
use crate::variables::Variables;
use crate::{AddedService, CachePlace, Here, NotDone};
use builtin::{builtin_step, container_step, handover};
use step_model::diagnostic::Problem;
use step_model::document::{Action, AllowFailure, ScriptLegacy, Step, ValueTemplate};
use step_model::expression::Template;
use step_model::value::Value;

pub(super) struct Around {
    pub steps: Vec<Step>,
    pub not_done: Vec<NotDone>,
}

/// Collects steps before and after the job's own, and what is not done.
struct Surroundings<'a> {
    job: &'a Job,
    here: &'a Here,
    variables: Variables<'a>,
    before: Vec<Step>,
    after: Vec<Step>,
    not_done: Vec<NotDone>,
}

pub(super) fn of(job: &Job, here: &Here, own: Vec<Step>, problems: &mut Vec<Problem>) -> Around {
    let mut around =
        Surroundings { job, here, variables: Variables::new(&job.variables), before: Vec::new(), after: Vec::new(), not_done: Vec::new() };
    let own = around.image(own);
    around.services();
    around.checkout(problems);
    around.caches(problems);
    around.dependencies(problems);
    around.artifacts(problems);
    around.rest();
    let mut steps = around.before;
    steps.extend(own);
    steps.extend(around.after);
    Around { steps, not_done: around.not_done }
}

impl Surroundings<'_> {
    fn has(&self, builtin: &str) -> bool {
        self.here.references.contains_key(builtin) || self.here.builtins.iter().any(|name| name == builtin)
    }

    fn not_done(&mut self, part: &'static str, what: impl Into<String>, way_out: impl Into<String>) {
        self.not_done.push(NotDone { part, what: what.into(), way_out: way_out.into(), refused: false });
    }

    fn image(&mut self, own: Vec<Step>) -> Vec<Step> {
        let of_runner = &self.here.added.containers.image;
        let by_default = || (!of_runner.is_empty()).then(|| Image { name: of_runner.clone(), ..Image::default() });
        let Some(image) = &self.job.image.clone().or_else(by_default) else { return own };
        let image = self.expanded(image);
        if self.here.ignore_image {
            let what = format!("the image `{}` is ignored: the job runs on this machine, with its tools", image.name);
            self.not_done("image", what, "install what the job needs, or leave `--ignore-image` out where containers can be had");
            return own;
        }
        if self.has("docker") {
            let mut step = handover(self.here, &image, own);
            builtin::add_missing(&mut step, &self.here.added.containers.inputs);
            step.inputs.extend(self.logins());
            return vec![step];
        }
        self.not_done.push(NotDone {
            part: "image",
            what: format!("the job wants to run in the image `{}`, and {}", image.name, self.why_no_containers()),
            way_out: "start one, or say where one is with DOCKER_HOST; `--ignore-image` runs the job on this machine".to_owned(),
            refused: true,
        });
        own
    }

    fn why_no_containers(&self) -> &str {
        if self.here.no_containers.is_empty() { "there are no containers here" } else { &self.here.no_containers }
    }

    /// Who the job is at registries: what a job variable says, and what GitLab gives. Logins that GitLab gives end with the job.
    fn logins(&self) -> Vec<(Template, ValueTemplate)> {
        let mut logins = Vec::new();
        if let Some(config) = self.job.variable("DOCKER_AUTH_CONFIG").filter(|variable| !variable.value.is_empty()) {
            let value = if config.raw { config.value.clone() } else { self.variables.expand_text(&config.value) };
            logins.push(builtin::secret_input("auth_config", &value));
        }
        if self.here.live && !self.job.registries.is_empty() {
            let login = |login: &Login| {
                Value::object([
                    ("registry", Value::from(login.registry.as_str())),
                    ("username", login.username.as_str().into()),
                    ("password", login.password.as_str().into()),
                ])
            };
            let credentials = Value::array(self.job.registries.iter().map(login)).sensitive();
            logins.push((Template::literal("credentials"), ValueTemplate::Scalar(credentials)));
        }
        logins
    }

    fn services(&mut self) {
        if self.has("service") {
            let of_runner = self.here.added.containers.services.iter().map(of_runner);
            for (index, service) in of_runner.chain(self.job.services.iter().cloned()).enumerate() {
                let mut service = self.expanded(&service);
                service.variables = self.public_variables().into_iter().chain(service.variables).collect();
                let mut step = container_step(self.here, &format!("service_{}", index + 1), "service", &service);
                builtin::add_missing(&mut step, &self.here.added.containers.service_inputs);
                step.inputs.extend(self.logins());
                self.before.push(step);
            }
            return;
        }
        if !self.job.services.is_empty() {
            let names = listed(self.job.services.iter().map(|service| self.variables.expand_text(&service.name)));
            let what = format!("{} not started: {names}", count(self.job.services.len(), "service is", "services are"));
            self.not_done("services", what, "start what the job needs beforehand, and give its address with `--env NAME=VALUE`");
        }
    }

    /// What a service sees of the job: neither files nor what is masked (GitLab Runner v19.4, `PublicOrInternal`).
    fn public_variables(&self) -> Vec<(String, String)> {
        let public = self.job.variables.iter().filter(|variable| variable.public && !variable.file && !variable.masked);
        let value =
            |variable: &JobVariable| if variable.raw { variable.value.clone() } else { self.variables.expand_text(&variable.value) };
        public.map(|variable| (variable.key.clone(), value(variable))).collect()
    }

    fn checkout(&mut self, problems: &mut Vec<Problem>) {
        let Some(git) = &self.job.git else { return self.hooks_are_not_run() };
        if self.has("checkout") {
            self.hook("pre_get_sources_script", &self.here.added.pre_get_sources);
            let mut step = self.step("checkout", "checkout", checkout::inputs(self.job, self.here, git, problems));
            step.timeout = self.here.added.get_sources_timeout.filter(|limit| self.job.timeout.is_none_or(|whole| *limit < whole));
            self.before.push(step);
            self.hook("post_get_sources_script", &self.here.added.post_get_sources);
            return;
        }
        let commit =
            if git.sha.is_empty() { "the commit".to_owned() } else { format!("commit `{}`", git.sha.chars().take(12).collect::<String>()) };
        let reference = if git.reference.is_empty() { String::new() } else { format!(" of `{}`", git.reference) };
        let what = format!("{commit}{reference} is not checked out: the current work tree stands in for it");
        self.not_done("checkout", what, "check that commit out beforehand to run the same");
        self.hooks_are_not_run();
    }

    fn hooks_are_not_run(&mut self) {
        if !self.job.hooks.is_empty() {
            let names = listed(self.job.hooks.iter().map(|hook| hook.name.clone()));
            self.not_done("hooks", format!("nothing is checked out, so these hooks are not run: {names}"), "run what they do beforehand");
        }
    }

    /// The runner's own comes first.
    fn hook(&mut self, name: &str, of_runner: &str) {
        let own = Some(vec![of_runner.into()]).filter(|_| !of_runner.is_empty());
        let of_job = self.job.hooks.iter().filter(|hook| hook.name == name && !hook.script.is_empty());
        let of_job = of_job.map(|hook| hook.script.iter().map(|line| line.as_str().into()).collect());
        for (number, lines) in own.into_iter().chain(of_job).enumerate() {
            let name = if number == 0 { name.to_owned() } else { format!("{name}_{}", number + 1) };
            let mut step = Step::new(name.as_str(), Action::ScriptLegacy(ScriptLegacy { lines, echo: true, ..ScriptLegacy::default() }));
            step.env = self.environment();
            self.before.push(step);
        }
    }

    /// A step with the environment of the job.
    fn step(&self, name: &str, builtin: &str, inputs: Vec<(Template, ValueTemplate)>) -> Step {
        Step { inputs, env: self.environment(), ..builtin_step(self.here, name, builtin, &()) }
    }

    /// The variables of the job are the environment of all that is done for it: proxies, certificates, settings of git. What cannot be exported has been
    /// said for the job's own steps.
    fn environment(&self) -> Vec<(Template, Template)> {
        super::own_steps::environment(self.job, &mut Vec::new())
    }

    fn caches(&mut self, problems: &mut Vec<Problem>) {
        let entries = caches::entries(self.job, problems);
        if entries.is_empty() {
            return;
        }
        // A step of somebody else's knows by itself where.
        let is_kept = self.here.caches != CachePlace::Nowhere || self.here.references.contains_key("cache");
        if !(self.has("cache") && is_kept) {
            let names = listed(entries.iter().map(|entry| entry.keys[0].clone()));
            let what = format!("{} neither restored nor saved: {names}", count(entries.len(), "cache is", "caches are"));
            self.not_done("cache", what, "what its paths hold in the work tree is used as it is");
            return;
        }
        for (index, entry) in entries.iter().enumerate() {
            if entry.policy.restores() {
                let inputs = caches::inputs(self.job, self.here, entry, false, problems);
                let mut step = self.step(&format!("restore_cache_{}", index + 1), "cache", inputs);
                step.allow_failure = AllowFailure::Any; // A cache that cannot be had only costs time.
                self.before.push(step);
            }
            if entry.policy.saves() {
                let inputs = caches::inputs(self.job, self.here, entry, true, problems);
                let mut step = self.step(&format!("archive_cache_{}", index + 1), "cache", inputs);
                step.when = entry.when;
                self.after.push(step);
            }
        }
    }

    fn dependencies(&mut self, problems: &mut Vec<Problem>) {
        let with_files: Vec<_> = self.job.dependencies.iter().filter(|dependency| !dependency.filename.is_empty()).collect();
        if self.has("artifact") {
            for (index, dependency) in with_files.iter().enumerate() {
                let inputs = artifacts::download(self.job, self.here, dependency, problems);
                let mut step = self.step(&format!("download_artifacts_{}", index + 1), "artifact", inputs);
                step.allow_failure = AllowFailure::Any; // A warning only, as in GitLab's runner (GitLab Runner v19.4, `functions/concrete`).
                self.before.push(step);
            }
        } else if !with_files.is_empty() {
            let names = listed(with_files.iter().map(|dependency| dependency.name.clone()));
            let what =
                format!("the artifacts of {} not downloaded: {names}", count(with_files.len(), "earlier job are", "earlier jobs are"));
            self.not_done("dependencies", what, "put the files that the job needs into the work tree");
        }
    }

    fn artifacts(&mut self, problems: &mut Vec<Problem>) {
        let wanted: Vec<_> = self.job.artifacts.iter().filter(|artifact| !artifact.paths.is_empty() || artifact.untracked).collect();
        if self.has("artifact") {
            for (index, artifact) in wanted.iter().enumerate() {
                let inputs = artifacts::upload(self.job, self.here, artifact, problems);
                let mut step = self.step(&format!("upload_artifacts_{}", index + 1), "artifact", inputs);
                step.when = artifact.when;
                self.after.push(step);
            }
        } else if !wanted.is_empty() {
            let paths = listed(wanted.iter().flat_map(|artifact| &artifact.paths).map(|path| self.variables.expand_text(path)));
            self.not_done("artifacts", format!("artifacts are not uploaded: {paths}"), "they stay in the work tree");
        }
    }

    /// What is named and has no step.
    fn rest(&mut self) {
        let uses_registry = self.job.image.is_some() || !self.job.services.is_empty();
        let are_logged_in = self.has("docker") && self.here.live;
        if uses_registry && !self.job.registries.is_empty() && !are_logged_in {
            let hosts = listed(self.job.registries.iter().map(|login| login.registry.clone()));
            self.not_done(
                "credentials",
                format!("nothing logs in to these registries: {hosts}"),
                "`docker login` beforehand where the job needs it",
            );
        }
        if self.has_expired_token() {
            let what = "the token of the job has ended with the job that it was made for: what uses `CI_JOB_TOKEN` is refused by GitLab";
            self.not_done("token", what, "give one of your own as `CI_JOB_TOKEN` with `--secrets FILE`");
        }
        if let Some(policy) = &self.job.policy {
            let what = format!("the policy `{policy}` put this job into its pipeline; its rules for variables are not applied");
            self.not_done("policy_options", what, "give the values that the policy would set with `--secrets FILE`");
        }
        if self.job.suspend {
            self.not_done("suspend_options", "the environment is not kept for a later job", "`--keep` leaves the files of the run");
        }
    }

    /// The job brought a token, nobody gave another, and GitLab waits for no answer.
    fn has_expired_token(&self) -> bool {
        let variable = self.job.variable("CI_JOB_TOKEN");
        let was_supplied = variable.is_some_and(|variable| variable.raw && variable.masked && variable.value != self.job.token);
        !self.here.live && (!self.job.token.is_empty() || variable.is_some()) && !was_supplied
    }

    fn expanded(&self, image: &Image) -> Image {
        let one = |text: &String| self.variables.expand_text(text);
        Image {
            name: one(&image.name),
            aliases: image.aliases.iter().map(one).collect(),
            entrypoint: image.entrypoint.clone(),
            command: image.command.clone(),
            variables: image.variables.iter().map(|(key, value)| (key.clone(), one(value))).collect(),
            pull_policy: image.pull_policy.clone(),
            platform: one(&image.platform),
            user: one(&image.user),
        }
    }
}

/// A service of every job, as if the job named it.
fn of_runner(service: &AddedService) -> Image {
    Image {
        name: service.image.clone(),
        aliases: service.aliases.clone(),
        entrypoint: service.entrypoint.clone(),
        command: service.command.clone(),
        variables: service.variables.clone(),
        ..Image::default()
    }
}

/// At most five of them; the rest is counted.
fn listed(names: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
