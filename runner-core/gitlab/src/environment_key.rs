//! The key of an environment that a later job resumes: `RUNNER/SYSTEM/REST`.

use std::fmt;

/// Travels in the last update of the job that left the environment, and comes back with the job that resumes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvironmentKey(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is no key of an environment: it is `RUNNER/SYSTEM/ENVIRONMENT`")]
pub struct NotAnEnvironmentKey {
    pub key: String,
}

impl EnvironmentKey {
    /// # Errors
    /// There are fewer than two slashes in it.
    pub fn parse(text: &str) -> Result<Self, NotAnEnvironmentKey> {
        if text.bytes().filter(|byte| *byte == b'/').count() < 2 {
            return Err(NotAnEnvironmentKey { key: text.to_owned() });
        }
        Ok(Self(text.to_owned()))
    }

    /// The runner, the manager and the environment that it names.
    pub fn parts(&self) -> (&str, &str, &str) {
        let (runner, rest) = self.0.split_once('/').unwrap_or_default();
        let (system, environment) = rest.split_once('/').unwrap_or_default();
        (runner, system, environment)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_192_a_key_has_at_least_two_slashes() {
        for text in ["", "a", "a/b", "/"] {
            assert!(EnvironmentKey::parse(text).is_err(), "{text}");
        }
        let key = EnvironmentKey::parse("12/s_0123456789ab/instance/7").expect("a key");
        assert_eq!(key.parts(), ("12", "s_0123456789ab", "instance/7"));
    }
}
