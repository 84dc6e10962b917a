//! What a runner says of itself: program, executor, and what it can do.

use serde::Serialize;
use std::collections::BTreeMap;

/// The `info` of a request. Rails keeps the features of the first contact for up to an hour, so every call carries all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunnerInfo {
    pub name: String,
    pub version: String,
    pub revision: String,
    /// `linux`, `windows`, `darwin`, as Go calls them.
    pub platform: String,
    /// `amd64`, `arm64`, as Go calls them.
    pub architecture: String,
    pub executor: String,
    pub shell: String,
    pub features: Features,
    pub config: InfoConfig,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InfoConfig {
    pub gpus: String,
}

impl RunnerInfo {
    /// This program, on this system, with the executor of a runner's entry.
    pub fn of_this_program(executor: impl Into<String>, shell: impl Into<String>) -> Self {
        Self {
            name: "runner-core".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("GIT_COMMIT").unwrap_or("HEAD").to_owned(),
            platform: platform().to_owned(),
            architecture: architecture().to_owned(),
            executor: executor.into(),
            shell: shell.into(),
            features: Features::ours(),
            config: InfoConfig::default(),
            labels: BTreeMap::new(),
        }
    }

    /// `NAME VERSION (BRANCH; LANGUAGE; OS/ARCHITECTURE)`.
    pub fn user_agent(&self) -> String {
        format!("{} {} ({}; rust; {}/{})", self.name, self.version, self.revision, self.platform, self.architecture)
    }
}

fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What the server may count on. All are sent, also those that are false.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct Features { $($(#[$doc])* pub $name: bool),* }

        impl Features {
            /// All names, in the order in which they are sent.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

features! {
    variables, image, services, artifacts, cache, fallback_cache_keys, shared, upload_multiple_artifacts, upload_raw_artifacts, session, terminal,
    refspecs, masking, proxy, raw_variables, artifacts_exclude, multi_build_steps, trace_reset, trace_checksum, trace_size, vault_secrets, cancelable,
    return_exit_code, service_variables, service_multiple_aliases, image_executor_opts, service_executor_opts, cancel_gracefully,
    native_steps_integration, two_phase_job_commit, job_inputs,
}

impl Features {
    /// What every runner of ours can do: a payload becomes the same steps everywhere. A session or terminal is there only where one is served.
    pub fn ours() -> Self {
        Self {
            variables: true,
            image: true,
            services: true,
            artifacts: true,
            cache: true,
            fallback_cache_keys: true,
            shared: true,
            upload_multiple_artifacts: true,
            upload_raw_artifacts: true,
            refspecs: true,
            masking: true,
            raw_variables: true,
            artifacts_exclude: true,
            multi_build_steps: true,
            trace_reset: true,
            trace_checksum: true,
            trace_size: true,
            cancelable: true,
            return_exit_code: true,
            service_variables: true,
            service_multiple_aliases: true,
            image_executor_opts: true,
            service_executor_opts: true,
            cancel_gracefully: true,
            native_steps_integration: true,
            two_phase_job_commit: true,
            job_inputs: true,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_31_features_are_sent_also_those_that_are_false() {
        let sent = serde_json::to_value(Features::default()).expect("booleans");
        let sent = sent.as_object().expect("an object");
        assert_eq!((Features::NAMES.len(), sent.len()), (31, 31));
        assert!(sent.values().all(|value| value == false));
    }

    #[test]
    fn what_rails_fails_jobs_for_is_there() {
        let ours = Features::ours();
        // rails: app/models/ci/build.rb RUNNER_FEATURES
        assert!(ours.upload_multiple_artifacts && ours.refspecs && ours.artifacts_exclude && ours.multi_build_steps);
        assert!(ours.return_exit_code && ours.fallback_cache_keys && ours.cancel_gracefully);
    }

    #[test]
    fn the_user_agent_has_the_form_that_rails_reads() {
        let info = RunnerInfo {
            version: "1.2.3".to_owned(),
            revision: "abc".to_owned(),
            platform: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            ..RunnerInfo::of_this_program("instance", "bash")
        };
        assert_eq!(info.user_agent(), "runner-core 1.2.3 (abc; rust; linux/amd64)");
    }
}
