//! GitLab's `$VAR` in values, as its runner expands it: once.
//!
//! Source: GitLab Runner, `common/spec/variables.go` (`os.Expand` of Go with its rules).

mod among;

pub(crate) use among::expand_among_each_other;

use crate::job::JobVariable;
use std::collections::BTreeMap;

/// A piece of an expanded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// The path of a file variable, which is known only where the job runs.
    FileOf(String),
}

/// Variables by name, to look values up.
#[derive(Debug, Default)]
pub(crate) struct Variables<'a> {
    by_name: BTreeMap<&'a str, &'a JobVariable>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(variables: &'a [JobVariable]) -> Self {
        Self { by_name: variables.iter().map(|variable| (variable.key.as_str(), variable)).collect() }
    }

    /// The text with every reference replaced once, as GitLab's runner does: what is unknown becomes nothing, `$$` becomes `$`, and what a value itself refers
    /// to stays.
    pub(crate) fn expand(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            plain.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            match shell_name(rest) {
                Name::None => plain.push('$'),
                Name::Malformed { length } => rest = &rest[length..],
                Name::Of { name, length } => {
                    match self.by_name.get(name) {
                        _ if name == "$" => plain.push('$'),
                        Some(variable) if variable.file => {
                            if !plain.is_empty() {
                                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                            }
                            pieces.push(Piece::FileOf(variable.key.clone()));
                        }
                        Some(variable) => plain.push_str(&variable.value),
                        None => {}
                    }
                    rest = &rest[length..];
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        pieces
    }

    /// As [`Variables::expand`], for a place where a text is needed: the path of a file variable stays a reference, `${NAME}`.
    pub(crate) fn expand_text(&self, text: &str) -> String {
        if !text.contains('$') {
            return text.to_owned();
        }
        self.expand(text)
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::FileOf(name) => format!("${{{name}}}"),
            })
            .collect()
    }
}

enum Name<'a> {
    /// The dollar stands for itself.
    None,
    /// `${}` and `${` without an end: these bytes are dropped.
    Malformed {
        length: usize,
    },
    Of {
        name: &'a str,
        length: usize,
    },
}

/// What follows a dollar, by the rules of Go's `os.Expand`.
fn shell_name(text: &str) -> Name<'_> {
    let bytes = text.as_bytes();
    match bytes.first() {
        None => Name::None,
        Some(b'{') => {
            if bytes.len() > 2 && is_special(bytes[1]) && bytes[2] == b'}' {
                return Name::Of { name: &text[1..2], length: 3 };
            }
            match text.find('}') {
                Some(1) => Name::Malformed { length: 2 },
                Some(end) => Name::Of { name: &text[1..end], length: end + 1 },
                None => Name::Malformed { length: 1 },
            }
        }
        Some(byte) if is_special(*byte) => Name::Of { name: &text[..1], length: 1 },
        Some(_) => match bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count() {
            0 => Name::None,
            length => Name::Of { name: &text[..length], length },
        },
    }
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'*' | b'#' | b'$' | b'@' | b'!' | b'?' | b'-' | b'0'..=b'9')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(key: &str, value: &str) -> JobVariable {
        JobVariable { key: key.to_owned(), value: value.to_owned(), ..JobVariable::default() }
    }

    fn expanded(text: &str) -> String {
        let variables =
            [variable("A", "a"), variable("B", "$A"), variable("A-B", "dash"), JobVariable { file: true, ..variable("F", "content") }];
        Variables::new(&variables).expand_text(text)
    }

    #[test]
    fn references_become_values_once() {
        assert_eq!(expanded("$A ${A} $B x$A.y"), "a a $A xa.y");
    }

    #[test]
    fn what_is_unknown_becomes_nothing() {
        assert_eq!(expanded("[$NOPE][${NOPE}][$1][$?][${A:-x}]"), "[][][][][]");
    }

    #[test]
    fn two_dollars_are_one_and_a_lone_dollar_stays() {
        assert_eq!(expanded("$$A $ $. 5$"), "$A $ $. 5$");
    }

    #[test]
    fn braces_take_any_name_and_broken_ones_are_dropped() {
        assert_eq!(expanded("${A-B} ${} ${A"), "dash  A");
    }

    #[test]
    fn a_file_variable_is_its_path_which_is_not_known_here() {
        assert_eq!(expanded("--config=$F"), "--config=${F}");
        let variables = [JobVariable { file: true, ..variable("F", "content") }];
        assert_eq!(
            Variables::new(&variables).expand("a${F}b"),
            [Piece::Text("a".into()), Piece::FileOf("F".into()), Piece::Text("b".into())]
        );
    }
}
