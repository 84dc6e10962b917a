//! A config.toml becomes settings: every documented key, its verdict, and writing back. Pure.

mod check;
mod checked;
pub mod edit;
mod gather;
mod given;
mod go_text;
pub mod location;
pub mod machines;
mod problem;
mod raw;
pub mod reference;
pub mod reload;
mod report;
mod scalar;
pub mod secret;
pub mod settings;
mod show;
pub mod tables;

pub use gather::{Fate, Finding};
pub use given::{Given, Shown};
pub use problem::{Problem, Severity};
pub use report::Counts;
pub use runner_control::taskscaler::schedule;
pub use settings::Settings;
pub use show::Look;

use std::collections::BTreeMap;
use std::ops::Range;

/// A file that was read: what it says, and all that is to be said about it.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// `None`: the file cannot be used, and the problems say why.
    pub settings: Option<Settings>,
    /// In the order of the file; those of the whole file first.
    pub problems: Vec<Problem>,
    /// What becomes of each key, in the order of the file.
    pub findings: Vec<Finding>,
    /// Values of the text that hold no secret; nothing else of it is quoted.
    shown: Vec<Range<usize>>,
    /// Where the grammar was broken.
    torn: Vec<usize>,
    /// How messages call the entries of `[[runners]]`.
    names: Vec<String>,
}

/// The largest file that is read; a real one has some kilobytes.
pub const LARGEST: usize = 4 << 20;

/// Reads a configuration file. `variables` is the environment, for what the file takes from there.
pub fn parse(text: &str, variables: &BTreeMap<String, String>) -> Parsed {
    let mut gather = gather::Gather::of(text);
    if text.len() > LARGEST {
        let hint = "a configuration has some kilobytes: is it the right file?";
        gather.refuse("too-large", format!("the file has {} bytes; at most {LARGEST} are read", text.len()), None, hint);
        return Parsed {
            settings: None,
            problems: gather.problems,
            findings: Vec::new(),
            shown: Vec::new(),
            torn: Vec::new(),
            names: Vec::new(),
        };
    }
    let (root, faults) = raw::read(text);
    let torn = faults.iter().map(|fault| fault.span.start).collect();
    for fault in faults {
        gather.torn(fault.message, fault.span);
    }
    let file = check::file(&root, &mut gather);
    let settings = settings::of(&file, variables, &mut gather);
    let names = settings.entries().into_iter().map(settings::Runner::phrase).collect();
    let gather::Gather { mut problems, mut findings, shown, .. } = gather;
    let start = |place: Option<&step_model::diagnostic::Place>| place.map(|place| place.span.start);
    problems.sort_by_key(|problem| start(problem.place.as_ref()));
    findings.sort_by_key(|finding| finding.place.span.start);
    let shown = gather::merged(shown);
    let is_usable = problems.iter().all(|problem| problem.severity != Severity::Error);
    Parsed { settings: is_usable.then_some(settings), problems, findings, shown, torn, names }
}
