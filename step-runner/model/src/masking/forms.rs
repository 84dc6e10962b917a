//! The forms in which a secret may turn up in a log.
//!
//! | form | where it comes from |
//! |---|---|
//! | as it is; each line of at least 8 characters | echo, cat, terminals that rewrite line ends |
//! | base64 in its three alignments, both alphabets, with and without padding; wrapped at 64 or 76 | `base64`, Basic authentication, Kubernetes secrets, PEM |
//! | percent-encoding of the usual escape sets, both hex cases, blank as `+` or `%20` | URLs, forms |
//! | JSON escapes, also with `\/`, ASCII only, and safe for HTML | structured logs |
//! | shell quoting | `set -x`, `printf %q` |
//!
//! A form that says too little (fewer than [`super::MINIMUM`] bytes) is left out.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A line of a secret is masked by itself when it has as many characters as GitLab asks of a masked variable. Shorter ones, such as `}`
/// or `spec:`, are not secret by themselves.
const SHORTEST_LINE: usize = 8;

/// Of a longer secret only itself and its lines are looked for: its encodings would cost some twenty times its size.
const LONGEST_ENCODED: usize = 32 << 10;

/// At what lengths programs break lines of base64: PEM and openssl, MIME and coreutils.
const WRAPPED_AT: [usize; 2] = [64, 76];

/// All forms of a secret that has no white space around it.
pub(super) fn of(secret: &str) -> BTreeSet<Vec<u8>> {
    let mut forms = BTreeSet::from([secret.as_bytes().to_vec()]);
    let lines = secret.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    forms.extend(lines.map(|line| line.as_bytes().to_vec()));
    if secret.len() <= LONGEST_ENCODED {
        base64(secret.as_bytes(), &mut forms);
        for keeps in &PERCENT {
            for hex in [Hex::Upper, Hex::Lower] {
                forms.insert(percent(secret.as_bytes(), keeps, hex));
            }
        }
        for style in &JSON {
            forms.insert(json(secret, style).into_bytes());
        }
        forms.insert(secret.replace('\'', r"'\''").into_bytes());
        forms.insert(secret.replace('\'', r#"'"'"'"#).into_bytes());
        forms.insert(backslashes(secret).into_bytes());
        forms.insert(ansi_c(secret).into_bytes());
    }
    forms.retain(|form| form.len() >= super::MINIMUM);
    forms
}

/// What base64 shows of the secret wherever it stands in the encoded bytes: without the first and last character where those also
/// depend on neighbours, and with the last one where the secret ends the encoded bytes.
fn base64(secret: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    for alphabet in [&STANDARD, &URL_SAFE] {
        for before in 0..3 {
            let encoded = encode(alphabet, before, secret);
            let first = (before * 8).div_ceil(6);
            let whole = (before + secret.len()) * 8 / 6;
            forms.insert(encoded[first..whole].to_vec());
            forms.insert(encoded[first..].to_vec());
            let padding = encoded.len().next_multiple_of(4) - encoded.len();
            forms.insert([&encoded[first..], &b"=="[..padding]].concat());
            if before == 0 {
                for width in WRAPPED_AT {
                    forms.extend(encoded[..whole].chunks(width).filter(|line| line.len() >= SHORTEST_LINE).map(<[u8]>::to_vec));
                }
            }
        }
    }
}

fn encode(alphabet: &Alphabet, before: usize, secret: &[u8]) -> Vec<u8> {
    let shifted = [&[0; 2][..before], secret].concat();
    GeneralPurpose::new(alphabet, NO_PAD).encode(shifted).into_bytes()
}

#[derive(Clone, Copy)]
enum Hex {
    Upper,
    Lower,
}

/// What a percent-encoding leaves as it is, besides letters and digits.
struct Keeps {
    marks: &'static [u8],
    /// A blank becomes `+` instead of `%20`.
    plus: bool,
}

const PERCENT: [Keeps; 6] = [
    Keeps { marks: b"-._~", plus: false },       // RFC 3986, Go, Python's quote(safe="")
    Keeps { marks: b"-._~!*'()", plus: false },  // JavaScript's encodeURIComponent
    Keeps { marks: b"-._~/", plus: false },      // Python's quote
    Keeps { marks: b"*-._", plus: true },        // forms in browsers
    Keeps { marks: b"-._~", plus: true },        // forms in Go and Python
    Keeps { marks: b"-._~$&+,;=", plus: false }, // user and password in Go's URLs
];

fn percent(secret: &[u8], keeps: &Keeps, hex: Hex) -> Vec<u8> {
    let mut form = Vec::with_capacity(secret.len() * 3);
    for byte in secret {
        match byte {
            b' ' if keeps.plus => form.push(b'+'),
            byte if byte.is_ascii_alphanumeric() || keeps.marks.contains(byte) => form.push(*byte),
            byte => {
                let escape = match hex {
                    Hex::Upper => format!("%{byte:02X}"),
                    Hex::Lower => format!("%{byte:02x}"),
                };
                form.extend_from_slice(escape.as_bytes());
            }
        }
    }
    form
}

/// What a writer of JSON escapes besides quotes, backslashes and control characters.
struct Escapes {
    marks: &'static [char],
    beyond_ascii: bool,
    hex: Hex,
}

const JSON: [Escapes; 6] = [
    Escapes { marks: &[], beyond_ascii: false, hex: Hex::Lower }, // Rust, JavaScript
    Escapes { marks: &['<', '>', '&', '\u{2028}', '\u{2029}'], beyond_ascii: false, hex: Hex::Lower }, // Go
    Escapes { marks: &['<', '>', '&', '\'', '+', '`'], beyond_ascii: true, hex: Hex::Upper }, // .NET
    Escapes { marks: &[], beyond_ascii: true, hex: Hex::Lower },  // Python
    Escapes { marks: &['/'], beyond_ascii: true, hex: Hex::Lower }, // PHP
    Escapes { marks: &['/'], beyond_ascii: false, hex: Hex::Lower }, // PHP with JSON_UNESCAPED_UNICODE
];

fn json(secret: &str, escapes: &Escapes) -> String {
    let mut form = String::with_capacity(secret.len() * 2);
    for character in secret.chars() {
        match character {
            '"' | '\\' => form.extend(['\\', character]),
            '/' if escapes.marks.contains(&'/') => form.push_str(r"\/"),
            '\n' => form.push_str(r"\n"),
            '\r' => form.push_str(r"\r"),
            '\t' => form.push_str(r"\t"),
            '\u{8}' => form.push_str(r"\b"),
            '\u{c}' => form.push_str(r"\f"),
            character if character < ' ' || escapes.marks.contains(&character) || (escapes.beyond_ascii && !character.is_ascii()) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let written = match escapes.hex {
                        Hex::Upper => write!(form, "\\u{unit:04X}"),
                        Hex::Lower => write!(form, "\\u{unit:04x}"),
                    };
                    debug_assert!(written.is_ok(), "a string takes everything");
                }
            }
            character => form.push(character),
        }
    }
    form
}

/// As bash's `printf %q` quotes a word without control characters.
fn backslashes(secret: &str) -> String {
    let mut form = String::with_capacity(secret.len() * 2);
    for (at, character) in secret.char_indices() {
        if " \t!\"$&'()*,;<>?[\\]^`{|}".contains(character) || (at == 0 && matches!(character, '#' | '~')) {
            form.push('\\');
        }
        form.push(character);
    }
    form
}

/// As bash quotes a word with control characters, `$'...'`.
fn ansi_c(secret: &str) -> String {
    let mut form = String::with_capacity(secret.len() * 2);
    for character in secret.chars() {
        match character {
            '\'' | '\\' => form.extend(['\\', character]),
            '\n' => form.push_str(r"\n"),
            '\r' => form.push_str(r"\r"),
            '\t' => form.push_str(r"\t"),
            '\u{1b}' => form.push_str(r"\E"),
            character => form.push(character),
        }
    }
    form
}
