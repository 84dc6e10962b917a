//! Runs the mutants of a definition through its cases, until one notices.

use crate::mutant::{Mutant, mutants};
use crate::suite_file::{SuiteFile, resolve};
use crate::workers::{Grounds, Performance, Settings, side_by_side};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// By the case of this name.
    Noticed { case: Arc<str> },
    /// No case fails.
    Unnoticed,
    /// No case fails, and the file says why none needs to.
    Tolerated { reason: Arc<str> },
    /// It is no definition that could run: `check` notices it.
    Unsound,
}

/// A mutant and its fate.
#[derive(Debug)]
pub struct Judged {
    pub mutant: Mutant,
    pub fate: Fate,
}

/// The mutants of the definition that a file tests, and names of tolerated ones that do not exist, or that a case notices.
#[derive(Debug, Default)]
pub struct Judgement {
    pub mutants: Vec<Judged>,
    /// Positions in `tolerated`, and why each is no use.
    pub useless: Vec<(usize, String)>,
}

/// Judges all mutants. The cases of the file pass without a change, else a mutant would be noticed for the wrong reason.
pub fn judge(file: &SuiteFile, settings: &Settings, grounds: &Grounds) -> Judgement {
    let mutants = mutants(&file.subject.document);
    let mut judgement = Judgement::default();
    let mut fates = Vec::with_capacity(mutants.len());
    side_by_side(settings.workers, mutants.len(), |number| fate(file, &mutants[number], settings, grounds), |_, fate| fates.push(fate));
    for (index, tolerated) in file.suite.tolerated.iter().enumerate() {
        match mutants.iter().position(|mutant| *mutant.name == *tolerated.mutant.it) {
            None => judgement.useless.push((index, format!("there is no mutant `{}`", tolerated.mutant.it))),
            Some(position) => match &fates[position] {
                Fate::Unnoticed => fates[position] = Fate::Tolerated { reason: Arc::clone(&tolerated.reason) },
                Fate::Noticed { case } => {
                    judgement.useless.push((index, format!("the mutant `{}` is noticed by the case `{case}`", tolerated.mutant.it)));
                }
                Fate::Tolerated { .. } => judgement.useless.push((index, format!("`{}` stands twice", tolerated.mutant.it))),
                Fate::Unsound => judgement.useless.push((index, format!("the mutant `{}` could never run", tolerated.mutant.it))),
            },
        }
    }
    judgement.mutants = mutants.into_iter().zip(fates).map(|(mutant, fate)| Judged { mutant, fate }).collect();
    judgement
}

fn fate(file: &SuiteFile, mutant: &Mutant, settings: &Settings, grounds: &Grounds) -> Fate {
    let mut has_run = false;
    for case in file.suite.cases.iter().filter(|case| case.skip.is_none()) {
        if settings.cancelled.load(Ordering::Relaxed) {
            break;
        }
        let Ok(planned) = resolve(&file.subject, &mutant.document, case, &settings.builtins) else { continue };
        has_run = true;
        let performance = Performance {
            subject: &file.subject,
            document: &mutant.document,
            planned: &planned,
            case,
            test_dir: file.dir(),
            ignores_exit: mutant.ignores_exit,
        };
        if !grounds.perform(&performance, settings).findings.is_empty() {
            return Fate::Noticed { case: Arc::clone(&case.name) };
        }
    }
    if has_run || file.suite.cases.is_empty() { Fate::Unnoticed } else { Fate::Unsound }
}
