//! What follows the beginning of a token.

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Input};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use step_model::masking::MASK;

/// Those that every runner masks (`FF_MASK_ALL_DEFAULT_TOKENS`, which is on).
pub const DEFAULT_PREFIXES: [&str; 14] = [
    "glpat-",
    "gloas-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glrtr-",
    "glptt-",
    "glft-",
    "glimt-",
    "glagent-",
    "glsoat-",
    "glffct-",
    "_gitlab_session=",
    "gltok-",
];

/// As many as GitLab's runner uses; ours uses all.
const MOST_OF_THE_ORIGINAL: usize = 15;

/// Beginnings of tokens, in one search. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Prefixes {
    /// Finds the prefix that ends first.
    search: AhoCorasick,
    /// Says faster whether there is any, where the processor can.
    any: Option<Searcher>,
    longest: usize,
}

impl Prefixes {
    /// Those that every runner masks, and those of the job.
    pub fn new(of_job: &[String]) -> Self {
        Self::of(sorted(of_job))
    }

    /// No more than GitLab's runner takes: the shortest fifteen. For comparison.
    pub fn as_original(of_job: &[String]) -> Self {
        Self::of(sorted(of_job).into_iter().take(MOST_OF_THE_ORIGINAL).collect())
    }

    fn of(prefixes: Vec<String>) -> Self {
        let longest = prefixes.iter().map(String::len).max().unwrap_or(0);
        // It fails only for more patterns or bytes than a 32-bit number counts: then nothing is sought but the usual.
        let search =
            AhoCorasick::new(&prefixes).or_else(|_| AhoCorasick::new(DEFAULT_PREFIXES)).expect("fifteen short texts make a search");
        // Looks at many bytes at once. The other one stops at each `g`, of which a log is full.
        let any = packed::Config::new().builder().extend(&prefixes).build();
        Self { search, any, longest }
    }

    /// Whether a whole prefix stands in a text.
    pub fn occur_in(&self, text: &[u8]) -> bool {
        match &self.any {
            Some(any) => any.find(text).is_some(),
            None => self.search.is_match(text),
        }
    }
}

/// Trimmed, each once, the shortest first.
fn sorted(of_job: &[String]) -> Vec<String> {
    let own = of_job.iter().map(|prefix| prefix.trim()).filter(|prefix| !prefix.is_empty());
    let all: BTreeSet<(usize, &str)> = DEFAULT_PREFIXES.into_iter().chain(own).map(|prefix| (prefix.len(), prefix)).collect();
    all.into_iter().map(|(_, prefix)| prefix.to_owned()).collect()
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'=')
}

/// Where in a token a stream of text is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// A prefix ended with the last byte.
    is_behind_prefix: bool,
    /// The mask is written, the token is not.
    is_in_token: bool,
    /// The last bytes, in which a prefix may have begun.
    tail: Vec<u8>,
}

impl Tokens {
    pub fn end_line(&mut self) {
        (self.is_behind_prefix, self.is_in_token) = (false, false);
        self.tail.clear();
    }

    /// Whether text in which no whole prefix stands comes out as it is. It is remembered then.
    pub(super) fn pass(&mut self, text: &[u8], prefixes: &Prefixes) -> bool {
        // What was before may end in the beginning of a prefix, or of a token.
        let is_fresh = self.tail.is_empty() && !self.is_behind_prefix && !self.is_in_token;
        if is_fresh {
            self.remember(text, prefixes.longest);
        }
        is_fresh
    }

    /// Appends what may be read of `text`.
    pub fn push(&mut self, mut text: &[u8], prefixes: &Prefixes, out: &mut Vec<u8>) {
        while !text.is_empty() {
            if self.is_behind_prefix {
                self.is_behind_prefix = false;
                if is_of_token(text[0]) {
                    out.extend_from_slice(MASK.as_bytes());
                    self.is_in_token = true;
                    self.tail.clear();
                }
            }
            if self.is_in_token {
                let end = text.iter().position(|byte| !is_of_token(*byte));
                self.is_in_token = end.is_none();
                text = &text[end.unwrap_or(text.len())..];
                continue;
            }
            let end = self.end_of_prefix(text, prefixes);
            self.is_behind_prefix = end.is_some();
            let (shown, rest) = text.split_at(end.unwrap_or(text.len()));
            out.extend_from_slice(shown);
            self.remember(shown, prefixes.longest);
            text = rest;
        }
    }

    /// Where in `text` the first prefix ends, also one that began before it.
    fn end_of_prefix(&self, text: &[u8], prefixes: &Prefixes) -> Option<usize> {
        let here = prefixes.search.find(text).map(|found| found.end());
        if self.tail.is_empty() {
            return here;
        }
        let mut joined = self.tail.clone();
        joined.extend_from_slice(&text[..text.len().min(prefixes.longest)]);
        let across =
            prefixes.search.find_overlapping_iter(Input::new(&joined)).map(|found| found.end()).filter(|end| *end > self.tail.len()).min();
        let across = across.map(|end| end - self.tail.len());
        match (across, here) {
            (Some(across), Some(here)) => Some(across.min(here)),
            (across, here) => across.or(here),
        }
    }

    fn remember(&mut self, shown: &[u8], longest: usize) {
        let most = longest.saturating_sub(1);
        if shown.len() >= most {
            self.tail.clear();
            self.tail.extend_from_slice(&shown[shown.len() - most..]);
        } else {
            self.tail.extend_from_slice(shown);
            let excess = self.tail.len().saturating_sub(most);
            self.tail.drain(..excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(prefixes: &Prefixes, pieces: &[&str]) -> String {
        let (mut tokens, mut out) = (Tokens::default(), Vec::new());
        pieces.iter().for_each(|piece| tokens.push(piece.as_bytes(), prefixes, &mut out));
        String::from_utf8(out).expect("text")
    }

    fn masked(pieces: &[&str]) -> String {
        with(&Prefixes::new(&[]), pieces)
    }

    #[test]
    fn runner_117_what_follows_a_prefix_is_masked() {
        assert_eq!(masked(&["glpat-imperdiet in"]), "glpat-[MASKED] in");
        assert_eq!(masked(&["a glpat- b glpat-!"]), "a glpat- b glpat-!");
    }

    #[test]
    fn runner_119_a_prefix_inside_a_token_is_of_the_token() {
        assert_eq!(masked(&["glpat-impglpat-erdiet L"]), "glpat-[MASKED] L");
    }

    #[test]
    fn runner_120_it_may_be_split_anywhere() {
        assert_eq!(masked(&["glpat", "-imperdiet"]), "glpat-[MASKED]");
        assert_eq!(masked(&["gl", "pat-imp"]), "glpat-[MASKED]");
        let text = "x _gitlab_session=abc.def; y glrt-t1_abc\n";
        for split in 0..text.len() {
            let (head, tail) = text.split_at(split);
            assert_eq!(masked(&[head, tail]), "x _gitlab_session=[MASKED]; y glrt-[MASKED]\n", "{head}|{tail}");
        }
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(masked(&bytes.iter().map(String::as_str).collect::<Vec<_>>()), "x _gitlab_session=[MASKED]; y glrt-[MASKED]\n");
    }

    #[test]
    fn runner_122_a_job_may_have_prefixes_of_its_own() {
        let prefixes = Prefixes::new(&["tok-".to_owned(), " ".to_owned()]);
        assert_eq!(with(&prefixes, &["amt", "ok-t"]), "amtok-[MASKED]");
    }

    #[test]
    fn runner_123_ours_uses_all_prefixes_and_the_original_the_fifteen_shortest() {
        let own: Vec<String> = (1..=11).map(|number| format!("mask{number}-")).collect();
        let text = "mask1-a mask5-a glpat-a mask7-a mask9-a mask10-a mask11-a _gitlab_session=a";
        assert_eq!(
            with(&Prefixes::new(&own), &[text]),
            "mask1-[MASKED] mask5-[MASKED] glpat-[MASKED] mask7-[MASKED] mask9-[MASKED] mask10-[MASKED] mask11-[MASKED] _gitlab_session=[MASKED]"
        );
        let theirs = with(&Prefixes::as_original(&own), &[text]);
        assert!(theirs.starts_with("mask1-[MASKED] mask5-[MASKED] glpat-[MASKED] "), "{theirs}");
        assert!(theirs.ends_with(" mask10-a mask11-a _gitlab_session=a"), "{theirs}");
    }
}
