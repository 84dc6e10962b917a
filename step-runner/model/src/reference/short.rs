//! A reference as one line of text: `./greet`, `host/project@v1`, `registry/image:1 dir/func.yml`, `builtin://script`.
//!
//! Source: original.md A.5 (`schema/v1/short_reference.go`; the functions documentation). How a Git and an OCI reference are told apart is not
//! documented there: an `@` that no digest follows means Git.

use super::{GitReference, LocalReference, OciReference, StepReference};
use crate::document::Dialect;
use crate::expression::{ExpressionError, Template, holds_expression};
use std::sync::Arc;

/// Why a text is no reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("the reference is empty")]
    Empty,
    #[error("expecting url@rev. got \"{text}\"")]
    ExpectingRevision { text: String, hint: &'static str },
    #[error("`{scheme}://` is no way to name a step")]
    UnknownScheme { scheme: String },
    #[error("`{text}` names no step")]
    NoName { text: String },
    #[error("`{text}` is no image: {fault}")]
    NoImage { text: String, fault: &'static str },
    #[error(transparent)]
    Expression(#[from] ExpressionError),
}

impl ReferenceError {
    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty => Some("write a directory (`./greet`), a Git revision (`host/project@v1`) or `builtin://script`".into()),
            Self::ExpectingRevision { hint, .. } => Some((*hint).into()),
            Self::UnknownScheme { scheme } if scheme == "oci" || scheme == "docker" => {
                Some("write the image alone, `registry/repository:tag`, with `func:`".into())
            }
            Self::UnknownScheme { .. } => Some("known are `https://`, `http://`, `builtin://` and `dist://`".into()),
            Self::NoName { .. } => Some("put the name of a step behind it: `builtin://script`".into()),
            Self::NoImage { .. } => Some("an image is `registry/repository:tag`; a directory begins with `./`".into()),
            Self::Expression(error) => error.hint.clone(),
        }
    }
}

impl StepReference {
    /// Takes a short reference apart. The dialect is that of the document that holds it.
    /// # Errors
    /// It is none of the forms.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, ReferenceError> {
        if holds_expression(text) {
            return Ok(Self::Dynamic(Template::parse(text, dialect)?));
        }
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if trimmed.starts_with(['.', '/']) {
            return Ok(Self::Local(LocalReference::parse(trimmed)));
        }
        if let Some(path) = trimmed.strip_prefix("dist://") {
            let path: Vec<Arc<str>> = path.split('/').filter(|part| !part.is_empty()).map(Arc::from).collect();
            return if path.is_empty() { Err(ReferenceError::NoName { text: trimmed.into() }) } else { Ok(Self::Dist { path }) };
        }
        if let Some(name) = trimmed.strip_prefix("builtin://") {
            let name = name.trim_matches('/');
            return if name.is_empty() {
                Err(ReferenceError::NoName { text: trimmed.into() })
            } else {
                Ok(Self::Builtin { name: name.into() })
            };
        }
        if let Some((scheme, _)) = trimmed.split_once("://")
            && !matches!(scheme, "http" | "https")
            && scheme.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'-' | b'.'))
        {
            return Err(ReferenceError::UnknownScheme { scheme: scheme.into() });
        }
        if dialect == Dialect::Functions && !is_git(trimmed) {
            return OciReference::parse(trimmed).map(Box::new).map(Self::Oci);
        }
        GitReference::parse(trimmed, dialect).map(Box::new).map(Self::Git)
    }
}

impl LocalReference {
    /// A path that begins with `.` or `/`.
    fn parse(text: &str) -> Self {
        let (mut path, file) = path_and_file(text);
        if text.starts_with('/') {
            path.insert(0, "/".into());
        }
        Self { path, file }
    }
}

impl GitReference {
    /// `[https://]host/project[/-/dir[/file.yml]]@revision`
    fn parse(text: &str, dialect: Dialect) -> Result<Self, ReferenceError> {
        let hint = match text.contains('/') {
            _ if dialect == Dialect::Functions => "a Git reference ends with a revision: `host/project@v1`",
            true => "a directory begins with `./`, and a Git reference ends with a revision: `host/project@v1`",
            false => "a directory begins with `./`",
        };
        let expecting = || ReferenceError::ExpectingRevision { text: text.into(), hint };
        let (location, revision) = text.rsplit_once('@').ok_or_else(expecting)?;
        if location.is_empty() || revision.is_empty() {
            return Err(expecting());
        }
        let (url, inside) = location.split_once("/-/").unwrap_or((location, ""));
        let (mut path, file) = path_and_file(inside);
        path.insert(0, "steps".into());
        Ok(Self { url: Template::literal(with_scheme(url)), revision: revision.into(), path, file })
    }
}

impl OciReference {
    /// `[registry/]repository[:tag | @sha256:...][ dir/file.yml]`
    fn parse(text: &str) -> Result<Self, ReferenceError> {
        let no_image = |fault| ReferenceError::NoImage { text: text.into(), fault };
        let (image, inside) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (name, digest) = match image.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (image, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        let (registry, repository) = match name.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
            _ => ("", name),
        };
        if repository.is_empty() {
            return Err(no_image("it has no repository"));
        }
        let allowed = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'_' | b'-' | b'/');
        if !repository.bytes().all(allowed) || repository.split('/').any(str::is_empty) {
            return Err(no_image("a repository has letters, digits, `.`, `_`, `-` and `/`"));
        }
        let tag = digest.or(tag).unwrap_or("latest");
        if tag.is_empty() {
            return Err(no_image("its tag is empty"));
        }
        let (path, file) = path_and_file(inside.trim());
        let literal = |text: &str| Template::literal(text);
        Ok(Self { registry: literal(registry), repository: literal(repository), tag: literal(tag), path, file })
    }
}

/// An `@` that no digest follows.
fn is_git(text: &str) -> bool {
    let is_digest = |revision: &str| {
        let (algorithm, digits) = revision.split_once(':').unwrap_or_default();
        !algorithm.is_empty()
            && digits
                .split_whitespace()
                .next()
                .is_some_and(|digits| digits.len() >= 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    text.starts_with("http://") || text.starts_with("https://") || text.rsplit_once('@').is_some_and(|(_, revision)| !is_digest(revision))
}

/// `https://` in front, unless a scheme is there.
pub(crate) fn with_scheme(url: &str) -> String {
    if url.starts_with("http://") || url.starts_with("https://") { url.to_owned() } else { format!("https://{url}") }
}

/// The parts of a path; a last one that ends in `.yml` is the file.
fn path_and_file(text: &str) -> (Vec<Arc<str>>, Option<Arc<str>>) {
    let parts = || text.split('/').filter(|part| !part.is_empty());
    // not one byte more: a job can name a step a thousand times
    let mut path = Vec::with_capacity(parts().count());
    path.extend(parts().map(Arc::<str>::from));
    let file = path.pop_if(|last| last.ends_with(".yml"));
    (path, file)
}

#[cfg(test)]
mod tests;
