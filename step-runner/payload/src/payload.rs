//! Reads the 201 body of `jobs/request`: every field that is not what it should be at once, each with its path and place.

mod fields;
mod place;

use crate::job::{Artifact, Cache, Dependency, Git, Hook, Image, Job, JobInput, JobStep, JobVariable, Login, Secret};
use fields::{Findings, Object};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::diagnostic::Problem;
use step_model::document::When;
use step_model::value::{Kind, MAXIMUM_DEPTH, Value};

/// What GitLab's runner takes when the payload names no timeout (`common/build.go`).
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(2);

const PROVIDERS: [&str; 5] = ["vault", "gcp_secret_manager", "azure_key_vault", "aws_secrets_manager", "gitlab_secrets_manager"];

/// # Errors
/// Every problem of the payload.
pub(crate) fn read(text: &str) -> Result<Job, Vec<Problem>> {
    let json: Json = serde_json::from_str(text).map_err(|error| vec![not_json(text, &error)])?;
    let mut findings = Findings::default();
    let job = match &json {
        Json::Object(members) => read_job(Object { members, path: "" }, &mut findings),
        other => {
            findings.add("", format!("the payload is {}, expected an object", fields::kind(other)));
            Job::default()
        }
    };
    if findings.0.is_empty() {
        return Ok(job);
    }
    let mut problems: Vec<Problem> = findings
        .0
        .into_iter()
        .map(|finding| Problem::error("bad-payload", finding.message, place::place_of(text, &finding.path)))
        .collect();
    problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
    Err(problems)
}

/// The place of a value of the payload, for a problem that is found later.
pub(crate) fn place_of(text: &str, path: &str) -> Option<step_model::diagnostic::Place> {
    place::place_of(text, path)
}

fn not_json(text: &str, error: &serde_json::Error) -> Problem {
    let offset = place::offset_of(text, error.line(), error.column());
    let place = Some(place::place(text, offset..offset));
    if text.trim().is_empty() {
        return Problem::error("empty", "the payload is empty", None);
    }
    if error.is_eof() {
        let hint = "the file ends in the middle: save the whole answer of `jobs/request`";
        return Problem::error("cut-off", "the payload is cut off", place).with_hint(hint);
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.contains("recursion limit") {
        return Problem::error("too-deep", "the payload nests deeper than 127 levels", place);
    }
    Problem::error("not-json", format!("the payload is not JSON: {message}"), place)
}

fn read_job(payload: Object<'_>, findings: &mut Findings) -> Job {
    let mut job = Job {
        id: payload.number(findings, "id"),
        token: payload.text(findings, "token"),
        name: payload.object(findings, "job_info", |info, findings| info.text(findings, "name")).unwrap_or_default(),
        timeout: Some(read_timeout(payload, findings)),
        variables: read_variables(payload, findings, "variables"),
        inputs: payload.objects(findings, "inputs", read_input),
        steps: payload.objects(findings, "steps", read_step),
        run: read_run(payload, findings),
        image: payload.object(findings, "image", read_image).filter(|image| !image.name.is_empty()),
        services: payload.objects(findings, "services", |service, findings| Some(read_image(service, findings))),
        artifacts: payload.objects(findings, "artifacts", read_artifact),
        cache: payload.objects(findings, "cache", read_cache),
        dependencies: payload.objects(findings, "dependencies", read_dependency),
        registries: payload.objects(findings, "credentials", |login, findings| {
            let registry = login.text(findings, "url");
            Some(Login { registry, username: login.text(findings, "username"), password: login.text(findings, "password") })
        }),
        secrets: read_secrets(payload, findings),
        hooks: payload.objects(findings, "hooks", |hook, findings| {
            Some(Hook { name: hook.text(findings, "name"), script: hook.texts(findings, "script") })
        }),
        git: payload.object(findings, "git_info", read_git),
        policy: payload
            .object(findings, "policy_options", |policy, findings| {
                let name = policy.text(findings, "policy_name");
                policy.flag(findings, "execution_policy_job").then_some(name)
            })
            .flatten(),
        suspend: payload
            .object(findings, "suspend_options", |options, findings| {
                options.flag(findings, "suspend_on_success") | options.flag(findings, "suspend_on_failure")
            })
            .unwrap_or(false),
    };
    let allow_fetch = payload.flag(findings, "allow_git_fetch");
    if let Some(git) = &mut job.git {
        git.allow_fetch = allow_fetch;
    }
    job.keep_last_of_each_name();
    job
}

fn read_timeout(payload: Object<'_>, findings: &mut Findings) -> Duration {
    let seconds = payload.object(findings, "runner_info", |info, findings| info.number(findings, "timeout")).flatten();
    seconds.filter(|seconds| *seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs)
}

fn read_variables(object: Object<'_>, findings: &mut Findings, key: &str) -> Vec<JobVariable> {
    object.objects(findings, key, |variable, findings| {
        let read = JobVariable {
            key: variable.text(findings, "key"),
            value: variable.text(findings, "value"),
            file: variable.flag(findings, "file"),
            masked: variable.flag(findings, "masked"),
            raw: variable.flag(findings, "raw"),
            public: variable.flag(findings, "public"),
        };
        if read.key.is_empty() {
            findings.add(variable.path, format!("`{}` has no key", variable.path));
            return None;
        }
        Some(read)
    })
}

fn read_run(payload: Object<'_>, findings: &mut Findings) -> String {
    if let Some(list @ Json::Array(_)) = payload.get("run") {
        findings.expected("run", "a string that holds the list as JSON", list);
        return String::new();
    }
    let text = payload.text(findings, "run");
    let is_empty = matches!(text.trim(), "" | "null" | "[]");
    if is_empty { String::new() } else { text }
}

fn read_step(step: Object<'_>, findings: &mut Findings) -> Option<JobStep> {
    Some(JobStep {
        name: step.text(findings, "name"),
        script: step.texts(findings, "script"),
        timeout: step.number(findings, "timeout").filter(|seconds| *seconds > 0).map(Duration::from_secs),
        when: read_when(step, findings),
        allow_failure: step.flag(findings, "allow_failure"),
    })
}

fn read_when(object: Object<'_>, findings: &mut Findings) -> When {
    match object.text(findings, "when").as_str() {
        "" | "on_success" => When::OnSuccess,
        "on_failure" => When::OnFailure,
        "always" => When::Always,
        _ => {
            let path = object.path_of("when");
            let message = format!("`{path}` is none of `on_success`, `on_failure`, `always`");
            findings.add(path, message);
            When::OnSuccess
        }
    }
}

fn read_image(image: Object<'_>, findings: &mut Findings) -> Image {
    let mut read = Image {
        name: image.text(findings, "name"),
        aliases: image.text(findings, "alias").split([',', ' ']).filter(|alias| !alias.is_empty()).map(str::to_owned).collect(),
        entrypoint: image.texts(findings, "entrypoint"),
        command: image.texts(findings, "command"),
        variables: read_variables(image, findings, "variables")
            .into_iter()
            .map(|variable| (variable.key, variable.value))
            .collect::<BTreeMap<_, _>>(),
        pull_policy: image.texts(findings, "pull_policy"),
        ..Image::default()
    };
    image.object(findings, "executor_opts", |options, findings| {
        only_known(options, findings, "executor_opts", &["docker", "kubernetes"]);
        options.object(findings, "kubernetes", |kubernetes, findings| only_known(kubernetes, findings, "kubernetes executor", &["user"]));
        options.object(findings, "docker", |docker, findings| {
            only_known(docker, findings, "docker executor", &["platform", "user"]);
            read.platform = docker.text(findings, "platform");
            read.user = docker.text_or_number(findings, "user");
        });
    });
    read
}

/// GitLab's runner refuses such a job with this text.
fn only_known(options: Object<'_>, findings: &mut Findings, executor: &str, known: &[&str]) {
    let unknown: Vec<&str> = options.members.keys().map(String::as_str).filter(|key| !known.contains(key)).collect();
    if !unknown.is_empty() {
        let message = format!(
            "Unsupported \"image\" options [{}] for \"{executor}\"; supported options are [{}]",
            unknown.join(" "),
            known.join(" ")
        );
        findings.add(options.path, message);
    }
}

fn read_artifact(artifact: Object<'_>, findings: &mut Findings) -> Option<Artifact> {
    Some(Artifact {
        name: artifact.text(findings, "name"),
        untracked: artifact.flag(findings, "untracked"),
        paths: artifact.texts(findings, "paths"),
        exclude: artifact.texts(findings, "exclude"),
        when: read_when(artifact, findings),
        kind: artifact.text(findings, "artifact_type"),
        format: artifact.text(findings, "artifact_format"),
        expire_in: artifact.text(findings, "expire_in"),
    })
}

fn read_cache(cache: Object<'_>, findings: &mut Findings) -> Option<Cache> {
    Some(Cache {
        key: cache.text(findings, "key"),
        untracked: cache.flag(findings, "untracked"),
        paths: cache.texts(findings, "paths"),
        policy: cache.text(findings, "policy"),
        when: read_when(cache, findings),
        fallback_keys: cache.texts(findings, "fallback_keys"),
    })
}

fn read_dependency(dependency: Object<'_>, findings: &mut Findings) -> Option<Dependency> {
    Some(Dependency {
        id: dependency.number(findings, "id").unwrap_or_default(),
        name: dependency.text(findings, "name"),
        filename: dependency.object(findings, "artifacts_file", |file, findings| file.text(findings, "filename")).unwrap_or_default(),
        token: dependency.text(findings, "token"),
    })
}

fn read_secrets(payload: Object<'_>, findings: &mut Findings) -> Vec<Secret> {
    let read = payload.object(findings, "secrets", |secrets, findings| {
        let names: Vec<&String> = secrets.members.keys().collect();
        names
            .into_iter()
            .filter_map(|name| {
                secrets.object(findings, name, |secret, findings| Secret {
                    name: name.clone(),
                    provider: PROVIDERS
                        .into_iter()
                        .find(|provider| secret.get(provider).is_some())
                        .unwrap_or("an unknown provider")
                        .to_owned(),
                    file: secret.optional_flag(findings, "file").unwrap_or(true),
                })
            })
            .collect()
    });
    read.unwrap_or_default()
}

fn read_git(git: Object<'_>, findings: &mut Findings) -> Git {
    Git {
        repo_url: git.text(findings, "repo_url"),
        repo_object_format: git.text(findings, "repo_object_format"),
        reference: git.text(findings, "ref"),
        sha: git.text(findings, "sha"),
        before_sha: git.text(findings, "before_sha"),
        ref_type: git.text(findings, "ref_type"),
        refspecs: git.texts(findings, "refspecs"),
        depth: git.number(findings, "depth").unwrap_or_default(),
        allow_fetch: false,
    }
}

/// The texts are those of GitLab's runner (`common/spec/inputs.go`).
fn read_input(input: Object<'_>, findings: &mut Findings) -> Option<JobInput> {
    let key = input.text(findings, "key");
    if key.is_empty() {
        findings.add(input.path, "input without key");
        return None;
    }
    let Some(Some((kind, content, sensitive))) = input.object(findings, "value", |value, findings| {
        let kind = value.text(findings, "type");
        let content = value.get("content").cloned();
        Some((kind, content, value.flag(findings, "sensitive")))
    }) else {
        findings.add(input.path, format!("input \"{key}\" is null, must have valid value"));
        return None;
    };
    let Some(content) = content else {
        findings.add(input.path_of("value"), format!("input \"{key}\" is null, must have valid value"));
        return None;
    };
    let value = Value::from_json(&content);
    if value.depth() > MAXIMUM_DEPTH {
        findings.add(input.path_of("value.content"), format!("input \"{key}\" nests deeper than {MAXIMUM_DEPTH} levels"));
        return None;
    }
    let Some(announced) = Kind::declared(&kind) else {
        findings.add(input.path_of("value.type"), format!("invalid type \"{kind}\" for input \"{key}\": type is unknown"));
        return None;
    };
    if announced != value.kind() {
        let message = format!("mismatching type of input \"{key}\". Announced \"{announced}\", but got \"{}\"", value.kind());
        findings.add(input.path_of("value.content"), message);
        return None;
    }
    Some(JobInput { key, value: value.marked(sensitive) })
}

#[cfg(test)]
mod tests;
