//! Texts that are nearly right: most faults of readers lie there, and not in noise.

use proptest::prelude::*;

/// One thing that happens to a text. Places are fractions, so that they mean something for every text.
#[derive(Debug, Clone)]
pub enum Mutation {
    Remove(f64, usize),
    Insert(f64, &'static str),
    InsertCharacter(f64, char),
    Repeat(f64, usize, usize),
    Truncate(f64),
    Swap(f64, f64),
    Indent(f64, usize),
}

/// What confuses readers of YAML, JSON, expressions and shells.
const TOKENS: [&str; 58] = [
    "${{",
    "}}",
    "{{",
    "\\${{",
    "${{ inputs.a }}",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    ":",
    ": ",
    "- ",
    "? ",
    "---\n",
    "...\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!!binary ",
    "|\n",
    ">-\n",
    "#",
    "@",
    "`",
    "%",
    "null",
    "~",
    "true",
    "1e999",
    "-0",
    "0x7fffffffffffffff",
    ".inf",
    ".nan",
    "99999999999999999999",
    "\u{feff}",
    "\u{202e}",
    "é",
    "👩‍👩‍👧",
    "run:",
    "spec:",
    "exec:",
    "step:",
    "func:",
    "[MASKED X]",
    "builtin://",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = 0.0..1.0f64;
    prop_oneof![
        (place.clone(), 1..12usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        (place.clone(), prop::sample::select(&TOKENS[..])).prop_map(|(at, token)| Mutation::Insert(at, token)),
        (place.clone(), any::<char>()).prop_map(|(at, character)| Mutation::InsertCharacter(at, character)),
        (place.clone(), 1..20usize, 2..40usize).prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        place.clone().prop_map(Mutation::Truncate),
        (place.clone(), place.clone()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (place, 1..5usize).prop_map(|(at, count)| Mutation::Indent(at, count)),
    ]
}

/// One of `fixtures`, with up to eight mutations; sometimes pure noise.
pub fn mutated(fixtures: Vec<String>) -> impl Strategy<Value = String> {
    let nearly = (prop::sample::select(fixtures), prop::collection::vec(mutation(), 0..8))
        .prop_map(|(text, mutations)| mutations.iter().fold(text, |text, mutation| apply(&text, mutation)));
    prop_oneof![9 => nearly, 1 => any::<String>()]
}

fn apply(text: &str, mutation: &Mutation) -> String {
    let characters: Vec<char> = text.chars().collect();
    let index = |fraction: f64| ((characters.len() as f64) * fraction) as usize;
    let joined = |parts: &[&[char]]| parts.iter().flat_map(|part| part.iter()).collect::<String>();
    match *mutation {
        Mutation::Remove(at, count) => {
            let at = index(at);
            joined(&[&characters[..at], &characters[(at + count).min(characters.len())..]])
        }
        Mutation::Insert(at, token) => insert(&characters, index(at), token),
        Mutation::InsertCharacter(at, character) => insert(&characters, index(at), &character.to_string()),
        Mutation::Repeat(at, length, times) => {
            let at = index(at);
            let piece: String = characters[at..(at + length).min(characters.len())].iter().collect();
            insert(&characters, at, &piece.repeat(times))
        }
        Mutation::Truncate(at) => characters[..index(at)].iter().collect(),
        Mutation::Swap(a, b) => {
            let mut swapped = characters.clone();
            if !swapped.is_empty() {
                swapped.swap(index(a).min(characters.len() - 1), index(b).min(characters.len() - 1));
            }
            swapped.into_iter().collect()
        }
        Mutation::Indent(at, count) => {
            let at = index(at);
            let line = characters[..at].iter().rposition(|character| *character == '\n').map_or(0, |newline| newline + 1);
            insert(&characters, line, &" ".repeat(count))
        }
    }
}

fn insert(characters: &[char], at: usize, text: &str) -> String {
    characters[..at].iter().copied().chain(text.chars()).chain(characters[at..].iter().copied()).collect()
}

/// How many texts each target tries: enough for a push in seconds, more where PROPTEST_CASES says so.
pub fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(cases), failure_persistence: None, ..ProptestConfig::default() }
}
