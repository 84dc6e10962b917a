//! Values of parameters that open something, in whatever looks like an address.

use serde::{Deserialize, Serialize};
use step_model::masking::MASK;

/// In small letters.
const KEYS: [&[u8]; 6] =
    [b"private_token", b"authenticity_token", b"rss_token", b"x-amz-signature", b"x-amz-credential", b"x-amz-security-token"];

/// No key is longer.
const LONGEST: usize = 20;

/// Where in an address a stream of text is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    at: At,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    #[default]
    Text,
    /// Behind `?` or `&`, with what has come of the key, in small letters.
    Key(Vec<u8>),
    /// Behind the `=` of a key that is one of ours: the mask is written, the value is not.
    Value,
}

impl Parameters {
    /// Whether this text comes out as it is, and nothing needs to be remembered of it.
    pub fn leaves_alone(&self, text: &[u8]) -> bool {
        self.at == At::Text && memchr::memchr2(b'?', b'&', text).is_none()
    }

    /// Appends what may be read of `text`.
    pub fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        while !text.is_empty() {
            let used = match &mut self.at {
                At::Text => {
                    let end = memchr::memchr2(b'?', b'&', text).map(|found| found + 1);
                    if end.is_some() {
                        self.at = At::Key(Vec::new());
                    }
                    let end = end.unwrap_or(text.len());
                    out.extend_from_slice(&text[..end]);
                    end
                }
                At::Key(key) => {
                    let byte = text[0];
                    out.push(byte);
                    match byte {
                        b'=' if KEYS.contains(&key.as_slice()) => {
                            out.extend_from_slice(MASK.as_bytes());
                            self.at = At::Value;
                        }
                        b'?' | b'&' => key.clear(),
                        _ if key.len() < LONGEST && byte != b'=' => key.push(byte.to_ascii_lowercase()),
                        _ => self.at = At::Text,
                    }
                    1
                }
                At::Value => {
                    let end = text.iter().position(|byte| matches!(byte, b'?' | b'&' | b' ' | 0x7f) || byte.is_ascii_control());
                    if end.is_some() {
                        self.at = At::Text;
                    }
                    end.unwrap_or(text.len())
                }
            };
            text = &text[used..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(pieces: &[&str]) -> String {
        let (mut parameters, mut out) = (Parameters::default(), Vec::new());
        for piece in pieces {
            if parameters.leaves_alone(piece.as_bytes()) {
                out.extend_from_slice(piece.as_bytes());
            } else {
                parameters.push(piece.as_bytes(), &mut out);
            }
        }
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn runner_125_keys_are_found_in_any_case_and_keep_it() {
        assert_eq!(masked(&["?X-AMZ-sigNATure=deadbeef"]), "?X-AMZ-sigNATure=[MASKED]");
    }

    #[test]
    fn runner_126_only_what_is_in_an_address_is_masked() {
        assert_eq!(
            masked(&["this is rss_token=x and ?rss_token=!@#$A&x-amz-credential=abc&test=test"]),
            "this is rss_token=x and ?rss_token=[MASKED]&x-amz-credential=[MASKED]&test=test"
        );
    }

    #[test]
    fn runner_128_a_value_ends_at_a_space_or_a_control_character_and_may_be_long() {
        let long = "x".repeat(8 << 10);
        assert_eq!(masked(&[&format!("?private_token={long} next")]), "?private_token=[MASKED] next");
        assert_eq!(masked(&["?private_token=abc\nnext"]), "?private_token=[MASKED]\nnext");
        assert_eq!(masked(&["?private_token=abc\u{8}next"]), "?private_token=[MASKED]\u{8}next");
        assert_eq!(masked(&["?private_token=&next"]), "?private_token=[MASKED]&next");
    }

    #[test]
    fn runner_129_it_may_be_split_anywhere() {
        let expected = "a?x=y&authenticity_token=[MASKED]&z";
        let text = "a?x=y&authenticity_token=secret&z";
        for split in 0..text.len() {
            let (head, tail) = text.split_at(split);
            assert_eq!(masked(&[head, tail]), expected, "{head}|{tail}");
        }
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(masked(&bytes.iter().map(String::as_str).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn runner_131_a_long_key_that_is_none_of_ours_stays() {
        assert_eq!(masked(&["?this-is-a-really-really-long-key-name=foobar"]), "?this-is-a-really-really-long-key-name=foobar");
    }
}
