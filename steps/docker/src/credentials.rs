//! Who we are at a registry: from Docker's configuration and from what the job brings along.
//!
//! The format is that of Docker's config.json, which is also what the job variable `DOCKER_AUTH_CONFIG` holds (original.md G.7).

use crate::image_reference::{DOCKER_HUB, ImageReference};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// How Docker's configuration calls Docker Hub.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// A name and its password, or a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    pub password: String,
    /// In place of both.
    pub identity_token: Option<String>,
}

/// Nothing of it is for a log.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Where a login may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Login(Login),
    /// `docker-credential-NAME get` is asked for this registry.
    Program {
        name: String,
        registry: String,
    },
}

/// An input `{registry, username, password}`; GitLab calls the registry `url`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Given {
    #[serde(alias = "url")]
    pub registry: String,
    #[serde(default)]
    pub username: String,
    #[serde(default)]
    pub password: String,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given({})", self.registry)
    }
}

/// Docker's config.json, as far as it is about registries.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    auths: BTreeMap<String, Entry>,
    creds_store: String,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// Name, colon, password, in base64.
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// Nothing of it is for a log.
impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configuration").finish_non_exhaustive()
    }
}

impl Configuration {
    /// # Errors
    /// It is no such configuration. The error holds nothing of it.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("it is not the content of a Docker config.json (line {}, column {})", error.line(), error.column()))
    }

    fn find(&self, image: &ImageReference) -> Option<Source> {
        let keys = keys(image);
        if let Some(registry) = keys.iter().find(|key| self.cred_helpers.contains_key(*key)) {
            return Some(Source::Program { name: self.cred_helpers[registry].clone(), registry: registry.clone() });
        }
        let entry = keys.iter().find_map(|key| {
            let same = |(written, _): &(&String, &Entry)| bare(written) == bare(key);
            self.auths.iter().find(same).map(|(_, entry)| entry)
        });
        // With a store, an entry without content says that the store has it.
        if let Some(login) = entry.and_then(Entry::login) {
            return Some(Source::Login(login));
        }
        let registry = if image.registry == DOCKER_HUB { DOCKER_HUB_KEY.to_owned() } else { image.registry.clone() };
        (!self.creds_store.is_empty()).then(|| Source::Program { name: self.creds_store.clone(), registry })
    }
}

impl Entry {
    fn login(&self) -> Option<Login> {
        let identity_token = Some(self.identitytoken.clone()).filter(|token| !token.is_empty());
        let (username, password) = if self.auth.is_empty() {
            (self.username.clone(), self.password.clone())
        } else {
            let bytes = STANDARD.decode(&self.auth).or_else(|_| STANDARD_NO_PAD.decode(&self.auth)).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            let (username, password) = text.split_once(':')?;
            (username.to_owned(), password.trim_end_matches('\0').to_owned())
        };
        (!username.is_empty() || identity_token.is_some()).then_some(Login { username, password, identity_token })
    }
}

/// The first login that fits: the repository before the registry, a configuration before the next.
pub fn find(image: &ImageReference, configurations: &[Configuration], given: &[Given]) -> Option<Source> {
    configurations.iter().find_map(|configuration| configuration.find(image)).or_else(|| {
        let keys = keys(image);
        let found = keys.iter().find_map(|key| given.iter().find(|given| bare(&given.registry) == bare(key)));
        found.map(|given| Source::Login(Login { username: given.username.clone(), password: given.password.clone(), identity_token: None }))
    })
}

/// `registry/repository`, every folder above it, the registry.
fn keys(image: &ImageReference) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let mut path = Some(image.repository.as_str());
    while let Some(repository) = path {
        keys.push(format!("{}/{repository}", image.registry));
        path = repository.rsplit_once('/').map(|(above, _)| above);
    }
    keys.push(image.registry.clone());
    if image.registry == DOCKER_HUB {
        keys.extend([DOCKER_HUB_KEY.to_owned(), "index.docker.io".to_owned()]);
    }
    keys
}

/// A registry without scheme and version: old configurations have both.
fn bare(registry: &str) -> &str {
    let registry = registry.trim_start_matches("https://").trim_start_matches("http://");
    registry.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches("/v2")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(text: &str) -> Configuration {
        Configuration::read(text).unwrap()
    }

    fn who(image: &str, text: &str) -> String {
        match find(&ImageReference::parse(image).unwrap(), &[configuration(text)], &[]) {
            None => "nobody".into(),
            Some(Source::Login(login)) => format!("{}:{}", login.username, login.password),
            Some(Source::Program { name, registry }) => format!("{name} for {registry}"),
        }
    }

    #[test]
    fn a_login_is_found_by_the_longest_name() {
        // "dTpw" is u:p, "djpx" is v:q
        let text = r#"{"auths": {"registry.example": {"auth": "dTpw"}, "registry.example/group": {"auth": "djpx"}}}"#;
        assert_eq!(who("registry.example/a/b", text), "u:p");
        assert_eq!(who("registry.example/group/b:1", text), "v:q");
        assert_eq!(who("other.example/a", text), "nobody");
    }

    #[test]
    fn docker_hub_has_three_names() {
        for key in ["https://index.docker.io/v1/", "index.docker.io", "docker.io"] {
            assert_eq!(who("postgres", &format!(r#"{{"auths": {{"{key}": {{"username": "u", "password": "p"}}}}}}"#)), "u:p");
        }
    }

    #[test]
    fn a_program_that_knows_is_asked() {
        let text = r#"{"credHelpers": {"registry.example": "cloud"}, "credsStore": "desktop"}"#;
        assert_eq!(who("registry.example/a", text), "cloud for registry.example");
        assert_eq!(who("postgres", text), "desktop for https://index.docker.io/v1/");
    }

    #[test]
    fn what_the_job_brings_comes_after_the_configurations() {
        let given = [Given { registry: "registry.example".into(), username: "job".into(), password: "t".into() }];
        let image = ImageReference::parse("registry.example/a").unwrap();
        let found = |configurations: &[Configuration]| match find(&image, configurations, &given) {
            Some(Source::Login(login)) => login.username,
            other => format!("{other:?}"),
        };
        assert_eq!(found(&[]), "job");
        assert_eq!(found(&[configuration(r#"{"auths": {"registry.example": {"auth": "dTpw"}}}"#)]), "u");
    }

    #[test]
    fn nothing_secret_is_in_an_error_or_in_what_is_printed() {
        let error = Configuration::read(r#"{"auths": {"r": {"auth": 5secret}}}"#).err().unwrap();
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(format!("{:?}", Login { username: "u".into(), password: "p".into(), identity_token: None }), "Login");
    }
}
