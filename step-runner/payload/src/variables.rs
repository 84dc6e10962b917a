//! GitLab's `$VAR` in values: what its runner expands, and what GitLab itself expands before a job gets there.
//!
//! Source: GitLab Runner, `common/spec/variables.go` (`os.Expand` of Go with its rules); GitLab, `lib/expand_variables.rb`.

use crate::job::JobVariable;
use std::collections::{BTreeMap, BTreeSet};

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

/// What GitLab does before a job is handed out: every value gets the values that it refers to, which were expanded before it. Raw values, references to file
/// variables, unknown names, `$$` and `%%` stay as they are. In a cycle nothing is expanded; its names are returned.
pub(crate) fn expand_among_each_other(variables: &mut [JobVariable]) -> Vec<String> {
    let index: BTreeMap<String, usize> = variables.iter().enumerate().map(|(index, variable)| (variable.key.clone(), index)).collect();
    let mut order = Order {
        variables,
        index: &index,
        state: vec![Visit::New; index.len().max(variables.len())],
        sorted: Vec::new(),
        cyclic: BTreeSet::new(),
    };
    for start in 0..order.variables.len() {
        order.visit(start);
    }
    let (sorted, cyclic) = (order.sorted, order.cyclic);
    if !cyclic.is_empty() {
        return cyclic.into_iter().collect();
    }
    for position in sorted {
        if variables[position].raw || !variables[position].value.contains(['$', '%']) {
            continue;
        }
        let mut expanded = String::new();
        for token in tokens(&variables[position].value) {
            match token {
                Token::Text(text) => expanded.push_str(text),
                Token::Reference { name, written } => match index.get(name).map(|index| &variables[*index]) {
                    Some(variable) if !variable.file && variable.key != variables[position].key => expanded.push_str(&variable.value),
                    _ => expanded.push_str(written),
                },
            }
        }
        variables[position].value = expanded;
    }
    Vec::new()
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

/// A depth-first order in which what is referred to comes first, without recursion: a chain may be as long as the file.
struct Order<'a> {
    variables: &'a [JobVariable],
    index: &'a BTreeMap<String, usize>,
    state: Vec<Visit>,
    sorted: Vec<usize>,
    cyclic: BTreeSet<String>,
}

impl Order<'_> {
    fn visit(&mut self, start: usize) {
        let mut stack = vec![(start, self.references(start))];
        if self.state[start] != Visit::New {
            return;
        }
        self.state[start] = Visit::Open;
        while let Some((current, references)) = stack.last_mut() {
            let current = *current;
            match references.pop() {
                None => {
                    self.state[current] = Visit::Done;
                    self.sorted.push(current);
                    stack.pop();
                }
                Some(next) => match self.state[next] {
                    Visit::Done => {}
                    Visit::Open => {
                        let names = stack.iter().map(|(index, _)| *index).skip_while(|index| *index != next);
                        self.cyclic.extend(names.map(|index| self.variables[index].key.clone()));
                    }
                    Visit::New => {
                        self.state[next] = Visit::Open;
                        let references = self.references(next);
                        stack.push((next, references));
                    }
                },
            }
        }
    }

    fn references(&self, position: usize) -> Vec<usize> {
        let variable = &self.variables[position];
        if variable.raw {
            return Vec::new();
        }
        let names = tokens(&variable.value).into_iter().filter_map(|token| match token {
            Token::Reference { name, .. } => self.index.get(name).copied(),
            Token::Text(_) => None,
        });
        names.filter(|index| *index != position).collect()
    }
}

enum Token<'a> {
    Text(&'a str),
    Reference { name: &'a str, written: &'a str },
}

/// `$NAME`, `${NAME}` and `%NAME%`; `$$` and `%%` are text.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut plain = 0;
    let mut position = 0;
    while let Some(found) = text[position..].find(['$', '%']) {
        let start = position + found;
        let rest = &text[start + 1..];
        let sign = &text[start..=start];
        if rest.starts_with(sign) {
            position = start + 2;
            continue;
        }
        let (skipped, inner) = match rest.strip_prefix('{') {
            Some(inner) if sign == "$" => (1, inner),
            _ => (0, rest),
        };
        let length = name_length(inner);
        let closing = match (sign, skipped) {
            ("%", _) => usize::from(inner[length..].starts_with('%')),
            (_, 1) => usize::from(inner[length..].starts_with('}')),
            _ => 0,
        };
        let needs_closing = sign == "%" || skipped == 1;
        if length == 0 || (needs_closing && closing == 0) {
            position = start + 1;
            continue;
        }
        let end = start + 1 + skipped + length + closing;
        if plain < start {
            tokens.push(Token::Text(&text[plain..start]));
        }
        tokens.push(Token::Reference { name: &inner[..length], written: &text[start..end] });
        plain = end;
        position = end;
    }
    if plain < text.len() {
        tokens.push(Token::Text(&text[plain..]));
    }
    tokens
}

fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
        return 0;
    }
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
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

    fn among(variables: &[JobVariable]) -> Result<Vec<String>, Vec<String>> {
        let mut variables = variables.to_vec();
        let cyclic = expand_among_each_other(&mut variables);
        if cyclic.is_empty() { Ok(variables.into_iter().map(|variable| variable.value).collect()) } else { Err(cyclic) }
    }

    #[test]
    fn values_are_expanded_through_each_other_in_any_order() {
        let variables = [variable("C", "<%B%>"), variable("B", "${A}/b"), variable("A", "a"), variable("D", "$NOPE $$A %%A %A")];
        assert_eq!(among(&variables), Ok(vec!["<a/b>".into(), "a/b".into(), "a".into(), "$NOPE $$A %%A %A".into()]));
    }

    #[test]
    fn a_raw_value_stays_but_is_used_by_others() {
        let variables = [JobVariable { raw: true, ..variable("R", "$A") }, variable("A", "a"), variable("U", "$R")];
        assert_eq!(among(&variables), Ok(vec!["$A".into(), "a".into(), "$A".into()]));
    }

    #[test]
    fn the_names_of_a_cycle_are_returned() {
        let variables = [variable("A", "$B"), variable("B", "$C"), variable("C", "$A"), variable("D", "$A")];
        assert_eq!(among(&variables), Err(vec!["A".into(), "B".into(), "C".into()]));
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let variables: Vec<_> = (0..50_000).map(|number| variable(&format!("V{number}"), &format!("$V{}", number + 1))).collect();
        assert_eq!(among(&variables).map(|values| values[0].clone()), Ok("$V50000".into()));
    }

    #[test]
    fn a_variable_may_mention_its_own_name() {
        assert_eq!(among(&[variable("PATH", "/x:$PATH")]), Ok(vec!["/x:$PATH".into()]));
    }
}
