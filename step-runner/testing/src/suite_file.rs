//! Test files: found below directories, read, and checked against the definition that they test.

use crate::check;
use crate::plan::{stand_ins, with_all_inputs};
use crate::subject::{NoSubject, Subject, in_words};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_agent::definitions::Loader;
use step_engine::effect::Effect;
use step_engine::resolve::{DocumentProblems, Resolver};
use step_model::builtin::Builtins;
use step_model::diagnostic::Problem;
use step_model::document::StepDocument;
use step_model::plan::PlannedDocument;
use step_model::testing::read::read;
use step_model::testing::suite::{Case, Fake, Suite};

/// The name of a test of the definition beside it; `NAME_test.yml` tests `NAME.yml`.
pub const FILE: &str = "step_test.yml";
const SUFFIX: &str = "_test.yml";

/// Directories that hold no tests of ours.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "vendor"];

/// A test file that can be run.
#[derive(Debug)]
pub struct SuiteFile {
    /// As the reader would name it.
    pub name: String,
    pub path: PathBuf,
    pub text: String,
    pub suite: Suite,
    pub subject: Subject,
    /// For each case.
    pub plans: Vec<Arc<PlannedDocument>>,
}

/// A test file that cannot be run.
#[derive(Debug)]
pub struct Refused {
    /// Each with the name of its file and its text.
    pub files: Vec<(String, Option<String>, Vec<Problem>)>,
}

/// Every test file below `path`, in order, or the file that it names.
/// # Errors
/// There is no such path, or no test in it, in words.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| format!("could not read `{shown}`: {}", in_words(&error)))?;
    if metadata.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(SUFFIX) {
            return Ok(vec![path.to_path_buf()]);
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let beside = if matches!(stem.as_str(), "func" | "step") { FILE.to_owned() } else { format!("{stem}{SUFFIX}") };
        let test = path.with_file_name(&beside);
        return if test.is_file() { Ok(vec![test]) } else { Err(format!("`{shown}` has no test: there is no `{beside}` beside it")) };
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found).map_err(|error| format!("could not read `{shown}`: {}", in_words(&error)))?;
    found.sort();
    Ok(found)
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && depth < 64 && !name.starts_with('.') && !PASSED_OVER.contains(&name.as_str()) {
            walk(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() && name.ends_with(SUFFIX) && is_test(dir, &name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Other programs name their tests alike.
fn is_test(dir: &Path, name: &str) -> bool {
    name == FILE || dir.join(format!("{}.yml", name.trim_end_matches(SUFFIX))).is_file()
}

impl SuiteFile {
    /// Reads a test and what it tests. `name`: as the reader would name the file.
    /// # Errors
    /// Every problem of the test and of the definitions.
    pub fn read(path: &Path, name: &str, builtins: &Builtins) -> Result<Self, Refused> {
        let whole = |code, message: String| Refused { files: vec![(name.to_owned(), None, vec![Problem::error(code, message, None)])] };
        let text = fs::read(path).map_err(|error| whole("unreadable", format!("could not read the test: {}", in_words(&error))))?;
        let text = String::from_utf8(text).map_err(|_| whole("not-utf-8", "the test is not UTF-8".into()))?;
        Self::of_text(path, name, text, builtins)
    }

    /// As [`SuiteFile::read`] for a text that is at hand.
    /// # Errors
    /// Every problem of the test and of the definitions.
    pub fn of_text(path: &Path, name: &str, text: String, builtins: &Builtins) -> Result<Self, Refused> {
        let reading = read(&text);
        let mut refused = Refused { files: Vec::new() };
        let mut problems = reading.problems;
        let subject = match subject_of(path, &reading.suite) {
            Ok(subject) => Some(subject),
            Err(NoSubject::Problems { file, text, problems }) => {
                refused.files.push((file, Some(text.to_string()), problems));
                None
            }
            Err(other) => {
                let place = reading.suite.step.as_ref().map(|step| step.place.clone());
                problems.push(Problem::error("no-step", other.to_string(), place));
                None
            }
        };
        let mut plans = Vec::new();
        if let Some(subject) = &subject {
            problems.extend(check::suite(&reading.suite, &subject.document));
            // Most cases have the same fakes, or none.
            let mut known: Vec<(&[Fake], Arc<PlannedDocument>)> = Vec::new();
            for case in &reading.suite.cases {
                if let Some((_, planned)) = known.iter().find(|(fakes, _)| *fakes == case.fakes) {
                    problems.extend(check::planned(case, planned));
                    plans.push(Arc::clone(planned));
                    continue;
                }
                match resolve(subject, &subject.document, case, builtins) {
                    Ok(planned) => {
                        problems.extend(check::planned(case, &planned));
                        known.push((&case.fakes, Arc::clone(&planned)));
                        plans.push(planned);
                    }
                    Err(found) => refused.add(subject, found),
                }
            }
        }
        problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
        problems.dedup();
        if !problems.is_empty() {
            refused.files.insert(0, (name.to_owned(), Some(text.clone()), problems));
        }
        match subject {
            Some(subject) if refused.files.is_empty() => {
                Ok(Self { name: name.into(), path: path.into(), text, suite: reading.suite, subject, plans })
            }
            _ => Err(refused),
        }
    }

    /// The directory of the test.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

fn subject_of(path: &Path, suite: &Suite) -> Result<Subject, NoSubject> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tested = match &suite.step {
        Some(step) => dir.join(&*step.it),
        None if file == FILE => dir.to_path_buf(),
        None => dir.join(format!("{}.yml", file.trim_end_matches(SUFFIX))),
    };
    Subject::read(&tested)
}

/// The plan of a case, as far as it can be known before it runs.
/// # Errors
/// The problems of all definitions that were reached; warnings too.
pub fn resolve(
    subject: &Subject,
    document: &Arc<StepDocument>,
    case: &Case,
    builtins: &Builtins,
) -> Result<Arc<PlannedDocument>, Vec<DocumentProblems>> {
    let mut loader = Loader::new(&subject.boundary, false);
    let (resolver, effects) = Resolver::start(Arc::new(with_all_inputs(document)), Arc::clone(&subject.dir), builtins.clone());
    let mut resolver = resolver.with_stand_ins(stand_ins(case));
    let mut open = VecDeque::from(effects);
    while let Some(effect) = open.pop_front() {
        if let Effect::Load { load, from, reference } = effect {
            open.extend(resolver.on_loaded(load, loader.load(&from, &reference)));
        }
    }
    match resolver.finish() {
        Ok((planned, problems)) if problems.iter().all(|document| document.problems.is_empty()) => Ok(planned),
        Ok((_, problems)) | Err(problems) => Err(problems),
    }
}

impl Refused {
    fn add(&mut self, subject: &Subject, found: Vec<DocumentProblems>) {
        for DocumentProblems { file, text, problems } in found {
            let (name, text) = if file.is_empty() {
                (subject.path().display().to_string(), Some(subject.text.to_string()))
            } else {
                (file.to_string(), text.map(|text| text.to_string()))
            };
            match self.files.iter_mut().find(|(known, ..)| *known == name) {
                Some((.., known)) => {
                    for problem in problems {
                        if !known.contains(&problem) {
                            known.push(problem);
                        }
                    }
                }
                None => self.files.push((name, text, problems)),
            }
        }
    }
}
