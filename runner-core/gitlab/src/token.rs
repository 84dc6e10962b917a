//! Tokens of runners, jobs and users: compared and sent, never printed.

use secrecy::{ExposeSecret, SecretString};
use std::fmt;

/// Opens a runner or a job to whoever holds it. `Debug` hides it; it is wiped from memory at its end.
#[derive(Clone)]
pub struct Token(SecretString);

impl Token {
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The token itself, for a header or a body of the API.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// A runner does not poll with one of these.
    pub fn is_blank(&self) -> bool {
        self.expose().trim().is_empty()
    }

    /// The runner was created in the interface or by a user: such a token registers nothing, and what the runner may do is known to the server only.
    pub fn is_of_created_runner(&self) -> bool {
        self.expose().starts_with("glrt-")
    }

    /// What logs and cache paths call a runner: the first nine characters after the prefix, as GitLab's runner writes them
    /// (`helpers/shorten_token.go`).
    pub fn short(&self) -> &str {
        let text = self.expose();
        let text = match text.strip_prefix("glrt-") {
            Some(rest) => ["t1_", "t2_", "t3_"].iter().find_map(|kind| rest.strip_prefix(kind)).unwrap_or(rest),
            None => without_kind(text).or_else(|| text.strip_prefix("glrtr-")).unwrap_or(text),
        };
        let text = text.strip_prefix("glcbt-").unwrap_or(text);
        let text = without_rotation_mark(text).unwrap_or(text);
        text.char_indices().nth(9).map_or(text, |(end, _)| &text[..end])
    }
}

/// `t1_...`: a kind without the prefix before it.
fn without_kind(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('t')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[digits..].strip_prefix('_').filter(|_| digits > 0)
}

/// `GR1348941...`: the mark of old registration tokens, seven hexadecimal digits.
fn without_rotation_mark(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("GR")?;
    (rest.len() >= 7 && rest.bytes().take(7).all(|byte| byte.is_ascii_hexdigit())).then(|| &rest[7..])
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Token {}

impl PartialOrd for Token {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Token {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.expose().cmp(other.expose())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([hidden])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_leaves_prefixes_out() {
        for (token, short) in [
            ("glrt-abcdefghijklmnop", "abcdefghi"),
            ("glrt-t1_abcdefghijklmnop", "abcdefghi"),
            ("glrt-t3_abcdefghijklmnop", "abcdefghi"),
            ("t2_abcdefghijklmnop", "abcdefghi"),
            ("glrtr-abcdefghijklmnop", "abcdefghi"),
            ("glcbt-64_abcdefgh", "64_abcdef"),
            ("GR1348941abcdefghijkl", "abcdefghi"),
            ("abcdefghijklmnop", "abcdefghi"),
            ("abc", "abc"),
            ("", ""),
        ] {
            assert_eq!(Token::new(token).short(), short, "{token}");
        }
    }

    #[test]
    fn a_token_is_never_printed() {
        assert_eq!(format!("{:?}", Token::new("glrt-abcdefghijklmnop")), "Token([hidden])");
    }

    #[test]
    fn a_token_of_white_space_is_blank() {
        assert!(["", " ", "   ", "\t", "\n", " \t\n"].iter().all(|text| Token::new(*text).is_blank()));
        assert!(!Token::new("glrt-x").is_blank());
    }
}
