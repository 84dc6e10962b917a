//! Where a step comes from: a directory, a Git revision, an image, the program itself, or a text that is only known at run time.
//!
//! Source: original.md A.5 (GitLab step-runner, `schema/v1/short_reference.go`, and the functions documentation).

mod short;

pub use short::ReferenceError;
pub(crate) use short::with_scheme;

use crate::expression::Template;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::Arc;

/// A reference as a document writes it, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub enum StepReference {
    /// A directory or file, relative to the directory of the document that holds the reference, or absolute.
    Local(LocalReference),
    /// In a box, as the next: most references are local, and a job can hold thousands.
    Git(Box<GitReference>),
    Oci(Box<OciReference>),
    /// A step that the original bundles: `dist://script`.
    Dist {
        path: Vec<Arc<str>>,
    },
    /// A step compiled into the agent: `builtin://script`.
    Builtin {
        name: Arc<str>,
    },
    /// Holds an expression, so what it names is known only when the run reaches it. The result is classified again.
    Dynamic(Template),
}

/// A path in parts. The first part is `/` for an absolute path, and `.` or `..` for a relative one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReference {
    pub path: Vec<Arc<str>>,
    /// The file that was named. `None`: `func.yml`, then `step.yml`.
    pub file: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GitReference {
    /// Always with a scheme. Expressions are allowed.
    pub url: Template,
    /// Branch, tag or commit.
    pub revision: Arc<str>,
    /// Directory inside the repository, in parts; the short form puts `steps` in front.
    pub path: Vec<Arc<str>>,
    pub file: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OciReference {
    pub registry: Template,
    pub repository: Template,
    /// A tag, or a digest `sha256:...`.
    pub tag: Template,
    pub path: Vec<Arc<str>>,
    pub file: Option<Arc<str>>,
}

/// SHA-256 of some content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits")]
pub struct NoDigest;

impl std::str::FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let digits = text
            .strip_prefix("sha256:")
            .filter(|digits| digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .ok_or(NoDigest)?;
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(NoDigest)?;
        }
        Ok(Self(bytes))
    }
}

/// `sha256:` and 64 hexadecimal digits, as OCI writes it.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
