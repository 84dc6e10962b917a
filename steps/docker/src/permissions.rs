//! What the owner of a machine allows containers of jobs to be: nobody else can, since such a container is the machine.

use crate::settings::{MountSource, Settings};
use serde::Deserialize;
use std::path::Path;
use step_sdk::{Failure, FailureKind};

/// Where the owner writes them down. No variable moves it: a job could.
pub const FILE: &str = "/etc/step-runner/docker.json";

/// Without a file: no privileges, and everything that an unprivileged container may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Containers that are not confined.
    privileged: bool,
    /// Capabilities that may be added; `ALL` for every one.
    capabilities: Vec<String>,
    /// The network of the machine itself.
    host_network: bool,
    /// Directories of the machine that may be mounted, with what is below. Absent: every one.
    mounts: Option<Vec<String>>,
    /// Names of images, `*` for any text. Absent: every one.
    images: Option<Vec<String>>,
}

impl Permissions {
    /// # Errors
    /// The file is there and cannot be read as what it should be: then nothing is allowed, rather than anything.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let unusable = |why: String| {
            Failure::refused(format!("could not read `{}`, which says what containers may be: {why}", path.display()))
                .with_hint("tell the owner of this machine")
        };
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| unusable(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// # Errors
    /// All that is not allowed, in one refusal.
    pub fn allow(&self, settings: &Settings) -> Result<(), Failure> {
        let mut refused = Vec::new();
        if settings.privileged && !self.privileged {
            refused.push("a privileged container".to_owned());
        }
        let may_add = |capability: &String| {
            let bare = |text: &str| text.to_ascii_uppercase().trim_start_matches("CAP_").to_owned();
            self.capabilities.iter().any(|allowed| bare(allowed) == "ALL" || bare(allowed) == bare(capability))
        };
        refused.extend(settings.cap_add.iter().filter(|name| !may_add(name)).map(|name| format!("the capability `{name}`")));
        let network = settings.network.as_deref().unwrap_or_default();
        if (network == "host" || network.starts_with("container:")) && !self.host_network {
            refused.push(format!("the network `{network}`"));
        }
        for mount in &settings.mounts {
            if let (MountSource::Path(path), Some(allowed)) = (&mount.source, &self.mounts)
                && (path.split('/').any(|part| part == "..") || !allowed.iter().any(|allowed| Path::new(path).starts_with(allowed)))
            {
                refused.push(format!("the mount of `{path}`"));
            }
        }
        let name = settings.image.to_string();
        if self.images.as_ref().is_some_and(|allowed| !allowed.iter().any(|pattern| matches(pattern, &name))) {
            refused.push(format!("the image `{name}`"));
        }
        if refused.is_empty() {
            return Ok(());
        }
        Err(Failure::new(FailureKind::Refused, format!("not allowed on this machine: {}", refused.join(", ")))
            .with_hint(format!("its owner allows it in `{FILE}`")))
    }
}

/// `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text
            .strip_prefix(before)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::ContainerInputs;

    fn allowed(permissions: &str, inputs: &str) -> String {
        let permissions: Permissions = serde_json::from_str(permissions).unwrap();
        let inputs: ContainerInputs = serde_json::from_str(inputs).unwrap();
        Settings::check(inputs, &permissions).map_or_else(|failure| failure.message, |_| "allowed".into())
    }

    #[test]
    fn the_owner_allows_each_thing_by_itself() {
        let privileged = r#"{"image": "a", "privileged": true}"#;
        assert_eq!(allowed("{}", privileged), "not allowed on this machine: a privileged container");
        assert_eq!(allowed(r#"{"privileged": true}"#, privileged), "allowed");
        let added = r#"{"image": "a", "cap_add": ["CAP_NET_ADMIN"]}"#;
        assert_eq!(allowed(r#"{"capabilities": ["net_admin"]}"#, added), "allowed");
        assert_eq!(allowed(r#"{"capabilities": ["SYS_PTRACE"]}"#, added), "not allowed on this machine: the capability `CAP_NET_ADMIN`");
    }

    #[test]
    fn mounts_stay_below_what_is_allowed() {
        let allowed_below = |path: &str| allowed(r#"{"mounts": ["/cache"]}"#, &format!(r#"{{"image": "a", "mounts": ["{path}:/c"]}}"#));
        assert_eq!(allowed_below("/cache/a"), "allowed");
        assert_eq!(allowed_below("/cachet"), "not allowed on this machine: the mount of `/cachet`");
        assert_eq!(allowed_below("/cache/../etc"), "not allowed on this machine: the mount of `/cache/../etc`");
        assert_eq!(allowed_below("volume"), "allowed");
    }

    #[test]
    fn images_are_matched_by_name() {
        let image = |name: &str| allowed(r#"{"images": ["registry.example/*:1", "postgres:*"]}"#, &format!(r#"{{"image": "{name}"}}"#));
        assert_eq!([image("registry.example/a/b:1"), image("postgres:16")], ["allowed", "allowed"]);
        assert_eq!(image("registry.example/a:2"), "not allowed on this machine: the image `registry.example/a:2`");
    }

    #[test]
    fn a_file_that_cannot_be_read_allows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("docker.json");
        assert_eq!(Permissions::read(&file), Ok(Permissions::default()));
        std::fs::write(&file, "{\"privileged\": yes}").unwrap();
        let failure = Permissions::read(&file).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.message.contains("could not read"), "{failure}");
    }
}
