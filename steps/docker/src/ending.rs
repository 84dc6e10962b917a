//! How a container ended, in sentences: what the engine says, and what is known of the image.

use crate::address::Address;
use crate::engine::Ended;
use crate::settings::{Entrypoint, Settings};
use crate::specification::{ImageFacts, Specification};
use crate::trouble::{Trouble, one_line};
use step_sdk::Failure;

/// What a container was made from.
#[derive(Debug)]
pub struct Circumstances<'a> {
    pub settings: &'a Settings,
    pub image: &'a ImageFacts,
    pub specification: &'a Specification,
    pub engine: &'a Address,
}

impl Circumstances<'_> {
    fn limit_of_memory(&self) -> String {
        match self.settings.limits.memory {
            Some(bytes) => format!("its limit is {}", size(bytes)),
            None => "the machine of the engine has no more".to_owned(),
        }
    }

    /// The entrypoint, if the container has one that is not the agent.
    fn entrypoint(&self) -> Option<String> {
        let is_agent = self.image.entrypoint.is_empty() && self.settings.entrypoint == Entrypoint::OfImage
            || self.settings.entrypoint == Entrypoint::Replaced(Vec::new());
        (!is_agent).then(|| format!("`{}`", self.specification.entrypoint.join(" ")))
    }
}

/// The engine made the container and could not start it.
pub fn not_started(trouble: Trouble, circumstances: &Circumstances<'_>) -> Failure {
    let image = &circumstances.settings.image;
    let Trouble::Refused { message, .. } = &trouble else { return trouble.while_doing("start the container", circumstances.engine) };
    let cannot_run = ["no such file or directory", "permission denied", "exec format error", "not found in $PATH", "is a directory"];
    let is_entrypoint = message.contains("exec") && cannot_run.iter().any(|why| message.contains(why));
    match circumstances.entrypoint() {
        Some(entrypoint) if is_entrypoint => {
            let why = cannot_run.iter().find(|why| message.contains(**why)).copied().unwrap_or("it cannot be run");
            Failure::step(format!("could not start the container of `{image}`: its entrypoint {entrypoint} cannot be run: {why}"))
                .with_hint("`entrypoint: [\"\"]` starts the image without one")
        }
        _ => trouble.while_doing(&format!("start the container of `{image}`"), circumstances.engine),
    }
}

/// The inner steps have failed, and the engine knows more about it. `None`: it does not.
pub fn more_about(ended: &Ended, circumstances: &Circumstances<'_>) -> Option<String> {
    ended.out_of_memory.then(|| format!("the container ran out of memory: {}", circumstances.limit_of_memory()))
}

/// The stream ended before the result was there, and so has the container.
pub fn lost(ended: &Ended, engine_architecture: &str, circumstances: &Circumstances<'_>) -> Failure {
    let (image, facts) = (&circumstances.settings.image, circumstances.image);
    if ended.out_of_memory {
        return Failure::step(format!("the container of `{image}` was killed for memory: {}", circumstances.limit_of_memory()))
            .with_hint("give it more with `memory`, or find what takes so much");
    }
    let is_foreign = !engine_architecture.is_empty() && !facts.architecture.is_empty() && facts.architecture != engine_architecture;
    if is_foreign && matches!(ended.exit_code, 1 | 126 | 255) {
        return Failure::step(format!(
            "the image `{image}` is for {}/{}, and the engine runs {engine_architecture}: it cannot run what is in it",
            facts.os, facts.architecture
        ))
        .with_hint(format!("take an image for {engine_architecture}, or `platform: linux/{engine_architecture}` where it has one"));
    }
    if let Some(entrypoint) = circumstances.entrypoint()
        && !matches!(ended.exit_code, 137 | 143)
    {
        return Failure::step(format!(
            "the entrypoint {entrypoint} of `{image}` ended with exit code {} and did not start the agent{}",
            ended.exit_code,
            said(ended)
        ))
        .with_hint("an entrypoint has to run its arguments (`exec \"$@\"`); `entrypoint: [\"\"]` starts the image without one");
    }
    match ended.exit_code {
        137 | 143 => Failure::step(format!("the container of `{image}` was killed by somebody else (exit code {})", ended.exit_code)),
        code => Failure::step(format!("the container of `{image}` ended with exit code {code} before its steps did{}", said(ended))),
    }
}

/// Somebody removed the container under the job.
pub fn removed(circumstances: &Circumstances<'_>) -> Failure {
    Failure::step(format!("the container of `{}` was removed by somebody else while its steps ran", circumstances.settings.image))
}

fn said(ended: &Ended) -> String {
    if ended.error.is_empty() { String::new() } else { format!(": {}", one_line(&ended.error)) }
}

fn size(bytes: i64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Permissions;
    use serde_json::json;

    fn told(entrypoint: &[&str], tell: impl Fn(&Circumstances<'_>) -> String) -> String {
        let inputs = json!({"image": "app:1", "memory": "64m", "entrypoint": entrypoint});
        let settings = Settings::check(serde_json::from_value(inputs).unwrap(), &Permissions::default()).unwrap();
        let image = ImageFacts { os: "linux".into(), architecture: "arm64".into(), ..ImageFacts::default() };
        let specification =
            Specification { entrypoint: entrypoint.iter().map(|text| (*text).to_owned()).collect(), ..Specification::default() };
        let engine = Address::default();
        tell(&Circumstances { settings: &settings, image: &image, specification: &specification, engine: &engine })
    }

    fn ended(exit_code: i64) -> Ended {
        Ended { exit_code, out_of_memory: false, error: String::new() }
    }

    #[test]
    fn every_end_has_its_sentence() {
        let lost = |entrypoint: &[&str], end: Ended, engine: &str| told(entrypoint, |around| super::lost(&end, engine, around).to_string());
        let refused = |message: &str| Trouble::Refused { status: 400, message: message.into() };
        let shown = [
            lost(&[], Ended { out_of_memory: true, ..ended(137) }, "arm64"),
            lost(&[], ended(1), "amd64"),
            lost(&["/kubectl"], ended(0), "arm64"),
            lost(&["/entry"], ended(137), "arm64"),
            lost(&[], ended(2), "arm64"),
            told(&[], |around| more_about(&Ended { out_of_memory: true, ..ended(0) }, around).unwrap()),
            told(&[], |around| removed(around).to_string()),
            told(&["/nope"], |around| {
                not_started(refused("OCI runtime create failed: exec: \"/nope\": stat /nope: no such file or directory: unknown"), around)
                    .to_string()
            }),
            told(&[], |around| not_started(refused("unable to find user x: no matching entries in passwd file"), around).to_string()),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r#"
        error: the container of `app:1` was killed for memory: its limit is 64 MiB
         hint: give it more with `memory`, or find what takes so much
        error: the image `app:1` is for linux/arm64, and the engine runs amd64: it cannot run what is in it
         hint: take an image for amd64, or `platform: linux/amd64` where it has one
        error: the entrypoint `/kubectl` of `app:1` ended with exit code 0 and did not start the agent
         hint: an entrypoint has to run its arguments (`exec "$@"`); `entrypoint: [""]` starts the image without one
        error: the container of `app:1` was killed by somebody else (exit code 137)
        error: the container of `app:1` ended with exit code 2 before its steps did
        the container ran out of memory: its limit is 64 MiB
        error: the container of `app:1` was removed by somebody else while its steps ran
        error: could not start the container of `app:1`: its entrypoint `/nope` cannot be run: no such file or directory
         hint: `entrypoint: [""]` starts the image without one
        error: could not start the container of `app:1`: unable to find user x: no matching entries in passwd file
        "#);
    }

    #[test]
    fn an_end_that_the_engine_knows_nothing_of_is_not_explained() {
        assert_eq!(told(&[], |around| format!("{:?}", more_about(&ended(1), around))), "None");
        assert_eq!([size(1 << 20), size(1500), size(3 << 30)], ["1 MiB", "1500 bytes", "3 GiB"]);
    }
}
