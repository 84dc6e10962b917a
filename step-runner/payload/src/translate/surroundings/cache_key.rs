//! The name of a cache, from what somebody wrote to what every store takes.
//!
//! Source: GitLab Runner v19.4, `cache/cachekey/cachekey.go`. Pure, since whoever signs addresses needs the same names as the step.

use step_model::reference::Digest;

/// A key as it is used. `None`: nothing is left of what was written.
pub(super) fn sanitised(raw: &str) -> Option<String> {
    let decoded = decoded(raw).replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    // White space at the end of a name is lost on some systems, and with it the last part may be.
    while let Some(last) = parts.pop() {
        let trimmed = last.trim_end();
        if !matches!(trimmed, "" | "." | "..") {
            parts.push(trimmed);
            break;
        }
    }
    let key: String = parts.join("/").chars().filter(|letter| !letter.is_control()).collect();
    // A part that was only control characters is gone now.
    (!key.is_empty() && key.split('/').all(|part| !part.trim().is_empty())).then_some(key)
}

/// The hexadecimal SHA-256 of what was written, for `FF_HASH_CACHE_KEYS`.
pub(super) fn hashed(raw: &str) -> String {
    Digest::of(raw.as_bytes()).bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a key is one that only protected branches may save to.
pub(super) fn is_protected(key: &str) -> bool {
    key.trim_end_matches(['.', ' ']).ends_with("-protected")
}

/// `%2f` and `%2e`, once.
fn decoded(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(percent) = rest.find('%') {
        text.push_str(&rest[..percent]);
        rest = &rest[percent..];
        let letter = match rest.get(1..3).map(str::to_ascii_lowercase).as_deref() {
            Some("2f") => '/',
            Some("2e") => '.',
            _ => {
                text.push('%');
                rest = &rest[1..];
                continue;
            }
        };
        text.push(letter);
        rest = &rest[3..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_fine_stays_as_it_is() {
        for key in ["main", "job name/main", "a.b/c..d", "ä", "100%", "%2x"] {
            assert_eq!(sanitised(key).as_deref(), Some(key));
        }
    }

    #[test]
    fn a_key_stays_below_its_root() {
        for (raw, key) in [
            ("a%2Fb", "a/b"),
            ("%2e%2E/a", "a"),
            ("a\\b", "a/b"),
            ("../../a", "a"),
            ("a/../b", "b"),
            ("/a//b/", "a/b"),
            ("a/./b", "a/b"),
            ("a/b  ", "a/b"),
            ("a/b/ \t", "a/b"),
            ("a/.. ", "a"),
            ("a\nb", "ab"),
        ] {
            assert_eq!(sanitised(raw).as_deref(), Some(key), "{raw:?}");
        }
    }

    #[test]
    fn nothing_is_left_of_some() {
        for raw in ["", " ", "..", "/", "a/..", "%2e%2e%2f", ". ", "\u{1}"] {
            assert_eq!(sanitised(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn a_hashed_key_is_that_of_what_was_written() {
        assert_eq!(hashed("main"), "0d6e4079e36703ebd37c00722f5891d28b0e2811dc114b129215123adcce3605");
    }

    #[test]
    fn cac_01_dots_and_spaces_do_not_hide_that_a_key_is_protected() {
        for key in ["x-protected", "x-protected. ", "x-protected ..", "-protected"] {
            assert!(is_protected(key), "{key:?}");
        }
        assert!(!is_protected("x-protected/a") && !is_protected("protected"));
    }
}
