//! Values that nobody prints: tokens, keys, and what may hold them.

use crate::tables::Kind;
use std::fmt;

/// A text that is never shown: not in a message, not by `{:?}`. Whoever needs it says [`Secret::expose`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Nothing but blanks counts as nothing: such a token is no token (case 48 of GitLab's tests).
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// What is handed on as it stands to a plugin or a step and may hold keys of a cloud: a JSON object.
#[derive(Clone, PartialEq, Default)]
pub struct Opaque(serde_json::Value);

impl Opaque {
    pub fn new(value: serde_json::Value) -> Self {
        Self(value)
    }

    pub fn expose(&self) -> &serde_json::Value {
        &self.0
    }
}

/// The names are shown, the values are not.
impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            serde_json::Value::Object(fields) => f.debug_set().entries(fields.keys()).finish(),
            _ => f.write_str("[hidden]"),
        }
    }
}

/// Whether a text that is no secret may still name an account: `https://name:password@host`.
pub(crate) fn names_an_account(text: &str, kind: Kind) -> bool {
    text.contains('@') && (matches!(kind, Kind::Address) || text.contains("//"))
}

/// The part of a token that logs and cache paths name: without its prefix, nine characters.
pub fn short_token(token: &str) -> &str {
    let rest = after_kind(token);
    let rest = rest.strip_prefix("glcbt-").unwrap_or(rest);
    let rest = after_registration(rest).unwrap_or(rest);
    let end = rest.char_indices().nth(9).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

/// Drops `glrt-`, `glrt-t1_`, `t2_` alone, or `glrtr-`.
fn after_kind(token: &str) -> &str {
    if let Some(rest) = token.strip_prefix("glrtr-") {
        return rest;
    }
    let rest = token.strip_prefix("glrt-").unwrap_or(token);
    ["t1_", "t2_", "t3_"].iter().find_map(|kind| rest.strip_prefix(kind)).unwrap_or(rest)
}

/// Drops `GR` and seven digits of base 16, with which old registration tokens begin.
fn after_registration(token: &str) -> Option<&str> {
    let rest = token.strip_prefix("GR")?;
    let (digits, rest) = rest.split_at_checked(7)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_in_its_debug_text() {
        let shown = format!("{:?} {:?}", Secret::new("glrt-abc"), Opaque::new(serde_json::json!({"password": "glrt-abc"})));
        assert_eq!(shown, r#"[hidden] {"password"}"#);
    }

    #[test]
    fn a_short_token_has_no_prefix_and_nine_characters() {
        for (token, short) in [
            ("glrt-abcdefghijkl", "abcdefghi"),
            ("glrt-t1_abcdefghijkl", "abcdefghi"),
            ("t3_abcdefghijkl", "abcdefghi"),
            ("glrtr-abcdefghijkl", "abcdefghi"),
            ("glcbt-abcdefghijkl", "abcdefghi"),
            ("GR1348941abcdefghijkl", "abcdefghi"),
            ("GR13489", "GR13489"),
            ("abc", "abc"),
            ("äöüäöüäöüäöü", "äöüäöüäöü"),
            ("", ""),
        ] {
            assert_eq!(short_token(token), short, "{token}");
        }
    }
}
