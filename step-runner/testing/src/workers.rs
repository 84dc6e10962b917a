//! Runs cases side by side, each in a directory of its own.

use crate::compare::{Against, Comparison, Finding, compare};
use crate::outcome::Outcome;
use crate::plan::{Directories, Surroundings, plan, scope};
use crate::process::adopt;
use crate::stage::{Stage, perform};
use crate::subject::Subject;
use crate::suite_file::SuiteFile;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use step_model::builtin::Builtins;
use step_model::document::StepDocument;
use step_model::plan::PlannedDocument;
use step_model::testing::suite::Case;

/// How long a case may take that says nothing about it.
pub const LIMIT: Duration = Duration::from_secs(10);

/// How cases are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Side by side. At least one.
    pub workers: usize,
    pub timeout: Duration,
    pub hermetic: bool,
    /// The PATH of the programs that cases start.
    pub path: String,
    /// Steps that are compiled into the program.
    pub builtins: Builtins,
    /// Set by whoever wants to end: what runs is killed, what has not begun does not begin.
    pub cancelled: Arc<AtomicBool>,
}

/// How a case went.
#[derive(Debug, Clone)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Golden files with their new text.
    pub updates: BTreeMap<Arc<str>, String>,
    pub outcome: Outcome,
}

/// One run of one case.
#[derive(Debug)]
pub struct Performance<'a> {
    pub subject: &'a Subject,
    /// The definition, or a mutant of it.
    pub document: &'a Arc<StepDocument>,
    pub planned: &'a PlannedDocument,
    pub case: &'a Case,
    pub test_dir: &'a Path,
    /// For mutants: see [`Stage::ignores_exit`].
    pub ignores_exit: bool,
}

impl Settings {
    /// As many workers as the machine has processors.
    pub fn new(path: String) -> Self {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { workers, timeout: LIMIT, hermetic: false, path, builtins: Builtins::default(), cancelled: Arc::default() }
    }
}

/// A place for the directories of cases. Removed at the end.
#[derive(Debug)]
pub struct Grounds {
    dir: tempfile::TempDir,
    used: AtomicUsize,
}

impl Grounds {
    /// # Errors
    /// There is no place for temporary files.
    pub fn new() -> io::Result<Self> {
        adopt();
        let dir = tempfile::Builder::new().prefix("step-test-").tempdir()?;
        Ok(Self { dir, used: AtomicUsize::new(0) })
    }

    /// Runs a case and compares what comes out.
    pub fn perform(&self, performance: &Performance<'_>, settings: &Settings) -> Report {
        let Performance { subject, document, planned, case, test_dir, ignores_exit } = performance;
        let top = self.dir.path().join(self.used.fetch_add(1, Ordering::Relaxed).to_string());
        let directories = Directories::below(&top.to_string_lossy());
        let around =
            Surroundings { directories: &directories, path: &settings.path, timeout: settings.timeout, builtins: &settings.builtins };
        let plan = match plan(subject, document, planned, case, &around) {
            Ok(plan) => plan,
            Err(faults) => {
                let finding = |fault: crate::plan::NoValue| Finding {
                    place: fault.place.clone(),
                    message: fault.to_string(),
                    difference: None,
                    hint: None,
                };
                return Report {
                    findings: faults.into_iter().map(finding).collect(),
                    updates: BTreeMap::new(),
                    outcome: Outcome::default(),
                };
            }
        };
        let hermetic = settings.hermetic || case.hermetic;
        let ignores_exit = *ignores_exit;
        let stage = Stage {
            case,
            directories: &directories,
            top: &top,
            test_dir,
            step_dir: &subject.dir,
            hermetic,
            ignores_exit,
            cancelled: &settings.cancelled,
        };
        if settings.cancelled.load(Ordering::Relaxed) {
            return Report { findings: Vec::new(), updates: BTreeMap::new(), outcome: Outcome::default() };
        }
        let outcome = perform(&stage, plan);
        let goldens = goldens(case, test_dir);
        let replaced = [(Arc::clone(&directories.work), "<work_dir>"), (Arc::clone(&subject.dir), "<func_dir>")];
        let scope = scope(&directories.work, &subject.dir);
        let Comparison { findings, updates } = compare(case, &outcome, &Against { scope: &scope, goldens: &goldens, replaced: &replaced });
        // What cannot be removed goes with the grounds.
        let _later = fs::remove_dir_all(&top);
        Report { findings, updates, outcome }
    }
}

fn goldens(case: &Case, test_dir: &Path) -> BTreeMap<Arc<str>, Option<String>> {
    let named = case.expect.texts().flat_map(|text| text.goldens()).map(|golden| Arc::clone(golden.it));
    named.map(|path| (Arc::clone(&path), fs::read_to_string(test_dir.join(&*path)).ok())).collect()
}

/// Does `work` for all numbers below `count`, on `workers` threads. `done` gets each outcome in the order of the numbers, as soon as all
/// before it are there.
pub fn side_by_side<T: Send>(workers: usize, count: usize, work: impl Fn(usize) -> T + Sync, mut done: impl FnMut(usize, T)) {
    if workers <= 1 || count <= 1 {
        return (0..count).for_each(|number| done(number, work(number)));
    }
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = channel();
    std::thread::scope(|threads| {
        for _ in 0..workers.min(count) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            threads.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || sender.send((number, work(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut first = 0;
        for (number, outcome) in outcomes {
            waiting.insert(number, outcome);
            while let Some(outcome) = waiting.remove(&first) {
                done(first, outcome);
                first += 1;
            }
        }
    });
}

/// Runs the chosen cases of test files, `(file, case)` by position. `done` gets each report in order.
pub fn run(files: &[SuiteFile], chosen: &[(usize, usize)], settings: &Settings, grounds: &Grounds, mut done: impl FnMut(usize, Report)) {
    let work = |number: usize| {
        let (file, case) = chosen[number];
        let file = &files[file];
        let performance = Performance {
            subject: &file.subject,
            document: &file.subject.document,
            planned: &file.plans[case],
            case: &file.suite.cases[case],
            test_dir: file.dir(),
            ignores_exit: false,
        };
        grounds.perform(&performance, settings)
    };
    side_by_side(settings.workers, chosen.len(), work, &mut done);
}
