//! The name of an image, taken apart as Docker does: which registry, which repository, which tag or digest.

use std::fmt;

/// The registry of names without one.
pub const DOCKER_HUB: &str = "docker.io";

/// `registry.example/group/name:tag@digest`, made complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageReference {
    /// As it was written.
    written: String,
    /// With its port: `registry.example:5000`.
    pub registry: String,
    /// `library/postgres` for `postgres`.
    pub repository: String,
    /// `None`: a digest says which.
    pub tag: Option<String>,
    pub digest: Option<String>,
}

/// Why a text is no name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no name of an image: {why}")]
pub struct NoImage {
    pub text: String,
    pub why: &'static str,
}

impl ImageReference {
    /// # Errors
    /// Docker would not take it as a name.
    pub fn parse(text: &str) -> Result<Self, NoImage> {
        let no_image = |why| NoImage { text: text.to_owned(), why };
        if text.is_empty() {
            return Err(no_image("it is empty"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        if digest.is_some_and(|digest| !digest.contains(':')) {
            return Err(no_image("behind `@` there is a digest, `sha256:` and 64 digits"));
        }
        // A colon before the last slash is that of a port.
        let name_from = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[name_from..].find(':') {
            Some(colon) => (&rest[..name_from + colon], Some(&rest[name_from + colon + 1..])),
            None => (rest, None),
        };
        if tag.is_some_and(|tag| tag.is_empty() || !tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))) {
            return Err(no_image("a tag is letters, digits, `_`, `.` and `-`"));
        }
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
            _ => (DOCKER_HUB, name),
        };
        let registry = if matches!(registry, "index.docker.io" | "registry-1.docker.io") { DOCKER_HUB } else { registry };
        if path.chars().any(|c| c.is_ascii_uppercase()) {
            return Err(no_image("the name of a repository has no capital letters"));
        }
        let is_part = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
                && !part.starts_with(['.', '-'])
        };
        if !path.split('/').all(is_part) {
            return Err(no_image("its parts are lowercase letters, digits, `_`, `.` and `-`, with a `/` between them"));
        }
        let repository = if registry == DOCKER_HUB && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
        let tag = tag.map(str::to_owned).or_else(|| digest.is_none().then(|| "latest".to_owned()));
        Ok(Self { written: text.to_owned(), registry: registry.to_owned(), repository, tag, digest: digest.map(str::to_owned) })
    }

    /// The name without registry, tag and digest, as it was written: `group/postgres`.
    pub fn short_repository(&self) -> &str {
        let is_official = self.registry == DOCKER_HUB && !self.written.contains('/');
        if is_official { self.repository.trim_start_matches("library/") } else { &self.repository }
    }

    /// The registry was written, or is not the one of names without.
    pub fn names_registry(&self) -> bool {
        self.registry != DOCKER_HUB || self.written.starts_with(DOCKER_HUB)
    }

    /// What an engine is asked to pull: name, and tag or digest.
    pub fn to_pull(&self) -> (String, String) {
        let name = if self.registry == DOCKER_HUB { self.repository.clone() } else { format!("{}/{}", self.registry, self.repository) };
        let version = self.digest.clone().or_else(|| self.tag.clone()).unwrap_or_default();
        (name, version)
    }

    /// The same image at a mirror of Docker Hub. `None`: the image is none of Docker Hub's.
    pub fn at_mirror(&self, mirror: &str) -> Option<Self> {
        let host = mirror.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
        (self.registry == DOCKER_HUB && !host.is_empty()).then(|| {
            let version = match (&self.digest, &self.tag) {
                (Some(digest), _) => format!("@{digest}"),
                (None, tag) => format!(":{}", tag.as_deref().unwrap_or("latest")),
            };
            let registry = host.split('/').next().unwrap_or(host).to_owned();
            let prefix = host.split_once('/').map(|(_, path)| format!("{path}/")).unwrap_or_default();
            let repository = format!("{prefix}{}", self.repository);
            Self { written: format!("{registry}/{repository}{version}"), registry, repository, ..self.clone() }
        })
    }
}

/// As it was written.
impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> String {
        match ImageReference::parse(text) {
            Ok(image) => format!(
                "{} {} {} {}",
                image.registry,
                image.repository,
                image.tag.as_deref().unwrap_or("-"),
                image.digest.as_deref().unwrap_or("-")
            ),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_are_made_complete_as_docker_does() {
        for (text, expected) in [
            ("postgres", "docker.io library/postgres latest -"),
            ("postgres:16", "docker.io library/postgres 16 -"),
            ("group/app:1", "docker.io group/app 1 -"),
            ("docker.io/postgres", "docker.io library/postgres latest -"),
            ("localhost/app", "localhost app latest -"),
            ("127.0.0.1:5000/a/b:c", "127.0.0.1:5000 a/b c -"),
            ("registry.example/a/b", "registry.example a/b latest -"),
            ("registry.example/a@sha256:00", "registry.example a - sha256:00"),
            ("registry.example/a:1@sha256:00", "registry.example a 1 sha256:00"),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_said() {
        assert_eq!(parts(""), "`` is no name of an image: it is empty");
        assert_eq!(parts("Postgres"), "`Postgres` is no name of an image: the name of a repository has no capital letters");
        assert_eq!(parts("a:"), "`a:` is no name of an image: a tag is letters, digits, `_`, `.` and `-`");
        assert!(parts("a b").contains("its parts are"));
        assert!(parts("a//b").contains("its parts are"));
        assert!(parts("a@latest").contains("digest"));
    }

    #[test]
    fn a_mirror_has_only_images_of_docker_hub() {
        let at =
            |text: &str| ImageReference::parse(text).unwrap().at_mirror("https://mirror.example:5000/hub/").map(|image| image.to_string());
        assert_eq!(at("postgres:16").as_deref(), Some("mirror.example:5000/hub/library/postgres:16"));
        assert_eq!(at("a/b@sha256:0").as_deref(), Some("mirror.example:5000/hub/a/b@sha256:0"));
        assert_eq!(at("registry.example/a"), None);
    }
}
