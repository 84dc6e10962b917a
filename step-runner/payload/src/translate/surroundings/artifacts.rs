//! Artifacts of earlier jobs, and of this one, as inputs of steps.

use super::builtin::{secret_input, text_input, value_input};
use super::settings::Settings;
use crate::job::{Artifact, Dependency, Job};
use crate::{ArtifactPlace, Here};
use serde_json::{Value as Json, json};
use step_model::diagnostic::Problem;
use step_model::document::{Dialect, ValueTemplate};
use step_model::expression::Template;

type Inputs = Vec<(Template, ValueTemplate)>;

pub(super) fn download(job: &Job, here: &Here, dependency: &Dependency, problems: &mut Vec<Problem>) -> Inputs {
    let mut settings = Settings::new(job, problems);
    let mut inputs = vec![
        text_input("action", "download"),
        text_input("name", &dependency.name),
        text_input("filename", &dependency.filename),
        value_input("attempts", &json!(settings.whole("ARTIFACT_DOWNLOAD_ATTEMPTS", 1, 10, 1))),
        value_input("direct", &Json::Bool(settings.flag("FF_USE_DIRECT_DOWNLOAD", true))),
    ];
    if settings.flag("STEP_RUNNER_OUTSIDE_LINKS", false) {
        inputs.push(value_input("outside_links", &Json::Bool(true)));
    }
    inputs.extend(timeout(here));
    match &here.artifacts {
        ArtifactPlace::Server { url } => inputs.extend(server(job, url.as_deref(), dependency.id, &dependency.token, &settings)),
        ArtifactPlace::Directory { earlier, .. } => inputs.push(text_input("directory", earlier)),
    }
    inputs
}

pub(super) fn upload(job: &Job, here: &Here, artifact: &Artifact, problems: &mut Vec<Problem>) -> Inputs {
    let mut settings = Settings::new(job, problems);
    let all = |texts: &[String], settings: &Settings<'_>| json!(texts.iter().map(|text| settings.expand(text)).collect::<Vec<_>>());
    let mut inputs = vec![
        text_input("action", "upload"),
        text_input("name", &settings.expand(&artifact.name)),
        value_input("paths", &all(&artifact.paths, &settings)),
        value_input("exclude", &all(&artifact.exclude, &settings)),
        value_input("untracked", &Json::Bool(artifact.untracked)),
        text_input("type", if artifact.kind.is_empty() { "archive" } else { &artifact.kind }),
        text_input("format", if artifact.format.is_empty() { "zip" } else { &artifact.format }),
        text_input("expire_in", &settings.expand(&artifact.expire_in)),
        text_input("level", &settings.level("ARTIFACT_COMPRESSION_LEVEL")),
    ];
    inputs.extend(timeout(here));
    match &here.artifacts {
        ArtifactPlace::Server { url } => inputs.extend(server(job, url.as_deref(), job.id.unwrap_or_default(), &job.token, &settings)),
        ArtifactPlace::Directory { own, .. } => {
            inputs.push(text_input("directory", own));
            inputs.push(text_input("job", &job.name));
        }
    }
    inputs
}

fn timeout(here: &Here) -> Option<(Template, ValueTemplate)> {
    here.added.artifact_timeout.map(|limit| text_input("timeout", &format!("{}s", limit.as_secs().max(1))))
}

/// Without an address nothing is uploaded, as in GitLab's runner, and a download says so.
fn server(job: &Job, url: Option<&str>, id: u64, token: &str, settings: &Settings<'_>) -> Inputs {
    let of_job = settings.value("CI_SERVER_URL").unwrap_or_default();
    let mut inputs = vec![text_input("url", url.unwrap_or(&of_job)), value_input("id", &json!(id)), secret_input("token", token)];
    if job.variable("CI_SERVER_TLS_CA_FILE").is_some_and(|variable| variable.file)
        && let Ok(path) = Template::parse("${{ vars.CI_SERVER_TLS_CA_FILE }}", Dialect::Functions)
    {
        inputs.push((Template::literal("tls_ca_file"), ValueTemplate::Text(path)));
    }
    inputs
}
