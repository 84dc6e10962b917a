//! How an image comes: by policy, from a mirror or its registry, with a login where one is known.

use crate::credentials::{self, Configuration, Given, Login, Source};
use crate::engine::Engine;
use crate::image_reference::ImageReference;
use crate::settings::{PullPolicy, Settings};
use crate::specification::ImageFacts;
use crate::trouble::{Trouble, one_line};
use serde::Deserialize;
use step_sdk::{Failure, say};

/// The logins that a job brings, and those of this machine.
#[derive(Debug)]
pub struct Keyring {
    configurations: Vec<Configuration>,
    given: Vec<Given>,
}

impl Keyring {
    /// `of_job`: an input or the variable `DOCKER_AUTH_CONFIG`; `of_machine`: the text of the user's own config.json, if there is one.
    /// # Errors
    /// The job's is not what it should be.
    pub fn new(of_job: &str, of_machine: Option<String>, given: Vec<Given>) -> Result<Self, Failure> {
        let mut configurations = Vec::new();
        if !of_job.trim().is_empty() {
            let read = Configuration::read(of_job);
            configurations.push(read.map_err(|why| Failure::bad_input(format!("`auth_config` (`DOCKER_AUTH_CONFIG`): {why}")))?);
        }
        match of_machine.as_deref().map(Configuration::read) {
            Some(Ok(configuration)) => configurations.push(configuration),
            Some(Err(why)) => say(&format!("warning: the Docker configuration of this user is not used: {why}")),
            None => {}
        }
        Ok(Self { configurations, given })
    }

    async fn login(&self, image: &ImageReference) -> Result<Option<Login>, Failure> {
        match credentials::find(image, &self.configurations, &self.given) {
            None => Ok(None),
            Some(Source::Login(login)) => Ok(Some(login)),
            Some(Source::Program { name, registry }) => ask_program(&name, &registry).await,
        }
    }
}

/// Tries the policies in order, and gives the image or says why none of them did.
pub async fn have_image(engine: &Engine, settings: &Settings, keyring: &Keyring) -> Result<ImageFacts, Failure> {
    let image = &settings.image;
    let mut reasons: Vec<String> = Vec::new();
    for policy in &settings.pull_policies {
        if *policy != PullPolicy::Always
            && let Some(facts) = present(engine, image, &settings.platform).await?
        {
            return Ok(facts);
        }
        if *policy == PullPolicy::Never {
            reasons.push("it is not there, and is never pulled (`pull_policy: never`)".to_owned());
            continue;
        }
        match pull(engine, settings, keyring).await? {
            Ok(facts) => return Ok(facts),
            Err(reason) => reasons.push(reason),
        }
    }
    let failure = Failure::step(format!("could not get the image `{image}`: {}", reasons.join("; then: ")));
    let denied = reasons.iter().any(|reason| {
        ["denied", "unauthorized", "authentication required", "no basic auth credentials"].iter().any(|word| reason.contains(word))
    });
    Err(failure.with_hint(if denied {
        "check its name; if it is not public, give a login: `docker login`, the job variable `DOCKER_AUTH_CONFIG`, or the input `credentials`"
    } else {
        "check its name and that the engine reaches its registry; `docker pull` shows the same; an image that is there needs no registry \
         (`pull_policy: [if-not-present]`)"
    }))
}

/// `None`: not there, or for another platform.
async fn present(engine: &Engine, image: &ImageReference, platform: &str) -> Result<Option<ImageFacts>, Failure> {
    let facts = engine.image(&image.to_string()).await.map_err(|trouble| trouble.while_doing("look for the image", engine.address()))?;
    Ok(facts.filter(|facts| fits(facts, platform)))
}

fn fits(facts: &ImageFacts, platform: &str) -> bool {
    let mut parts = platform.split('/');
    let (os, architecture) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    platform.is_empty() || (facts.os == os && facts.architecture == architecture)
}

/// The outer error is one that no other policy mends.
async fn pull(engine: &Engine, settings: &Settings, keyring: &Keyring) -> Result<Result<ImageFacts, String>, Failure> {
    let image = &settings.image;
    let mirrored = settings.mirror.as_deref().and_then(|mirror| image.at_mirror(mirror));
    let mut reasons = Vec::new();
    for source in mirrored.iter().chain([image]) {
        say(&format!("Pulling image {source} ..."));
        let login = keyring.login(source).await?;
        match engine.pull(source, &settings.platform, login).await {
            Ok(()) => {
                let facts = present(engine, source, &settings.platform).await?;
                return Ok(facts.ok_or_else(|| format!("`{source}` was pulled, and is not for {}", settings.platform)));
            }
            Err(Trouble::Refused { message, .. }) => reasons.push(one_line(&message)),
            Err(trouble) => return Err(trouble.while_doing("pull the image", engine.address())),
        }
    }
    Ok(Err(reasons.join("; then: ")))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FromProgram {
    username: String,
    secret: String,
}

/// `docker-credential-NAME get`: the registry on standard input, JSON on standard output. One that has none is no error.
async fn ask_program(name: &str, registry: &str) -> Result<Option<Login>, Failure> {
    use tokio::io::AsyncWriteExt as _;
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(Failure::bad_input(format!("`{name}` is no name of a credential helper")));
    }
    let program = format!("docker-credential-{name}");
    let failed = |why: &str| Failure::step(format!("could not ask `{program}` for the login of {registry}: {why}"));
    let mut child = tokio::process::Command::new(&program)
        .arg("get")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that does not read tells why by how it ends.
        let _ended_already = pipe.write_all(registry.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Ok(None);
    }
    // What it printed is secret: no error repeats it.
    let login: FromProgram = serde_json::from_slice(&output.stdout).map_err(|_| failed("it did not answer with a login"))?;
    Ok(Some(if login.username == "<token>" {
        Login { username: String::new(), password: String::new(), identity_token: Some(login.secret) }
    } else {
        Login { username: login.username, password: login.secret, identity_token: None }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_for_another_platform_is_not_there() {
        let facts = ImageFacts { os: "linux".into(), architecture: "arm64".into(), ..ImageFacts::default() };
        assert!(fits(&facts, "") && fits(&facts, "linux/arm64") && fits(&facts, "linux/arm64/v8"));
        assert!(!fits(&facts, "linux/amd64"));
    }

    #[test]
    fn a_configuration_of_the_job_that_cannot_be_read_is_bad_input() {
        let failure = Keyring::new("{", None, Vec::new()).unwrap_err();
        assert!(
            failure.message.starts_with("`auth_config` (`DOCKER_AUTH_CONFIG`): it is not the content of a Docker config.json"),
            "{failure}"
        );
        assert!(Keyring::new(" ", Some("{".into()), Vec::new()).is_ok());
    }
}
