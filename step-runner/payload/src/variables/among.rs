//! Variables expanded through each other, as GitLab does before a runner sees them.
//!
//! Source: GitLab, `lib/expand_variables.rb` and `lib/gitlab/ci/variables/collection.rb`.

use crate::job::JobVariable;
use std::collections::{BTreeMap, BTreeSet};

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
