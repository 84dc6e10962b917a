//! Who is meant: runners, jobs, environments, effects.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// An entry of the configuration that jobs are taken for. The text is chosen by whoever makes the settings and stays the same over restarts and new
/// tokens (GitLab's address and runner id, `gitlab.example/17`), since records name it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct RunnerId(Arc<str>);

/// What a provider of environments calls one of them. Unique among those of one runner.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct InstanceName(Arc<str>);

/// A job: the number that the server gave it, and the runner that it was given to (two servers count for themselves).
// The number stands first since it nearly always decides a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId {
    pub number: u64,
    pub runner: RunnerId,
}

/// An environment that runs jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstanceId {
    pub name: InstanceName,
    pub runner: RunnerId,
}

/// An effect that can fail. They rise within one process, and begin anew in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EffectId(pub u64);

/// Which process speaks to an agent: one more for each that opens the same state. An agent that has heard a later one refuses an earlier one, so two
/// managers never drive the same job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Generation(pub u64);

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            pub fn new(text: &str) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(RunnerId);
text_id!(InstanceName);

impl JobId {
    pub fn new(runner: &RunnerId, number: u64) -> Self {
        Self { number, runner: runner.clone() }
    }
}

impl InstanceId {
    pub fn new(runner: &RunnerId, name: &InstanceName) -> Self {
        Self { name: name.clone(), runner: runner.clone() }
    }
}

/// `17 of gitlab.example/4`.
impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.runner)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.runner)
    }
}
