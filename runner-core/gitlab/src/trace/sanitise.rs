//! What must not be read in a trace: values of parameters in addresses, and what follows the beginnings of tokens.
//!
//! The values of masked variables are masked where they are written, by the agent. What is sought here has no value that anybody knows.
//! Nothing is ever held back: an address is shown up to its `=`, a token up to the end of its prefix, and the mask stands for what comes then.

mod parameters;
#[cfg(test)]
mod phrases;
mod prefixes;

pub use parameters::Parameters;
pub use prefixes::{DEFAULT_PREFIXES, Prefixes, Tokens};

use serde::{Deserialize, Serialize};

/// Sanitises one stream of text, in pieces of any size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sanitiser {
    parameters: Parameters,
    tokens: Tokens,
}

impl Sanitiser {
    /// Appends what may be read of `text`. `scratch` is room to work in.
    pub fn push(&mut self, text: &[u8], prefixes: &Prefixes, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.parameters.leaves_alone(text) {
            return self.tokens.push(text, prefixes, out);
        }
        scratch.clear();
        self.parameters.push(text, scratch);
        self.tokens.push(scratch, prefixes, out);
    }

    /// Passes on text in which no prefix stands, when nothing else is to be sought in it. `false`: there is, and nothing was done.
    pub fn pass(&mut self, text: &[u8], prefixes: &Prefixes, out: &mut Vec<u8>) -> bool {
        let is_plain = self.parameters.leaves_alone(text) && self.tokens.pass(text, prefixes);
        if is_plain {
            out.extend_from_slice(text);
        }
        is_plain
    }

    /// A line has ended: what comes next has nothing to do with it.
    pub fn end_line(&mut self) {
        self.parameters = Parameters::default();
        self.tokens.end_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sanitised(text: &str) -> String {
        let prefixes = Prefixes::new(&[]);
        // Wherever it is split, the same comes out.
        let splits: Vec<String> = (0..=text.len())
            .map(|split| {
                let (mut sanitiser, mut scratch, mut out) = (Sanitiser::default(), Vec::new(), Vec::new());
                let (head, tail) = text.as_bytes().split_at(split);
                sanitiser.push(head, &prefixes, &mut scratch, &mut out);
                sanitiser.push(tail, &prefixes, &mut scratch, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            })
            .collect();
        assert!(splits.windows(2).all(|pair| pair[0] == pair[1]), "{splits:#?}");
        splits[0].clone()
    }

    #[test]
    fn both_are_found_beside_and_inside_each_other() {
        assert_eq!(sanitised("a?private_token=glpat-abc b"), "a?private_token=[MASKED] b");
        assert_eq!(sanitised("glpat-abc?private_token=x&y glpat-z"), "glpat-[MASKED]?private_token=[MASKED]&y glpat-[MASKED]");
        assert_eq!(sanitised("nothing to see: a?b=c&d=e"), "nothing to see: a?b=c&d=e");
    }
}
