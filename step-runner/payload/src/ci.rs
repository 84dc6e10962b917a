//! `.gitlab-ci.yml` with its local includes: reads it file by file, and turns one job of it into steps.
//!
//! ```text
//! start -> need() = Some(pattern) -> on_files(found) -> ... -> need() = None -> job(name)
//! ```
//!
//! What GitLab decides for a whole pipeline (`rules`, `needs`, ...) is not applied here: whoever names a job wants it to run. It is said, though.

mod assemble;
mod include;
mod job;
mod keywords;
mod read;
mod tree;

pub use include::Need;

use crate::{Here, Translation};
use assemble::{Assembled, Fault};
use include::{Include, Includes};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use step_model::diagnostic::{Lines, Problem};
use step_model::expression::nearest;
use tree::{At, Map, Tree};

/// Files in one configuration, and how deep they may include each other: GitLab's limit for both (`ci_max_includes`).
const MAXIMUM_FILES: usize = 150;

/// Top-level keys that are no jobs.
const RESERVED: [&str; 11] =
    ["default", "include", "before_script", "image", "services", "after_script", "variables", "stages", "cache", "workflow", "spec"];

/// The configuration as far as it has been read.
#[derive(Debug)]
pub struct Configuration {
    files: Vec<File>,
    /// What every need stood for: positions in `files`.
    answers: BTreeMap<Arc<str>, Vec<usize>>,
    open: VecDeque<Need>,
    /// With the file that they are about.
    problems: Vec<(usize, Problem)>,
    /// Includes that are not local, as a person would name them.
    not_fetched: Vec<String>,
    /// Local includes that GitLab would include under some condition only.
    unconditional: Vec<String>,
}

#[derive(Debug)]
struct File {
    name: Arc<str>,
    text: Arc<str>,
    root: Tree,
    includes: Vec<Include>,
}

/// The problems of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileProblems {
    /// As it was named: `.gitlab-ci.yml`, `ci/build.yml`.
    pub file: Arc<str>,
    pub text: Arc<str>,
    pub problems: Vec<Problem>,
}

impl Configuration {
    /// Begins with the outermost file. `name` is for messages.
    pub fn start(name: &str, text: &str) -> Self {
        let mut configuration = Self {
            files: Vec::new(),
            answers: BTreeMap::new(),
            open: VecDeque::new(),
            problems: Vec::new(),
            not_fetched: Vec::new(),
            unconditional: Vec::new(),
        };
        configuration.add_file(name, text);
        configuration
    }

    /// What is to be given next with [`Configuration::on_files`]. `None`: complete.
    pub fn need(&self) -> Option<&Need> {
        self.open.front()
    }

    /// The files (path and text) that the need stands for; none of them if there are none.
    pub fn on_files(&mut self, mut found: Vec<(String, String)>) {
        let Some(need) = self.open.pop_front() else { return };
        found.sort();
        if found.is_empty() && !need.is_pattern() {
            self.fault(need.at, format!("Local file `{}` does not exist!", need.pattern), None);
        }
        let mut positions = Vec::new();
        for (path, text) in found {
            let known = self.files.iter().skip(1).position(|file| *file.name == *path).map(|position| position + 1);
            match known {
                Some(position) => positions.push(position),
                None if self.files.len() >= MAXIMUM_FILES => {
                    self.fault(need.at, format!("Maximum of {MAXIMUM_FILES} nested includes are allowed!"), None);
                    break;
                }
                None => positions.push(self.add_file(&path, &text)),
            }
        }
        self.answers.insert(need.pattern, positions);
    }

    /// The jobs that can be run, in the order in which they were written; hidden ones are left out.
    pub fn job_names(&self) -> Vec<Arc<str>> {
        let root = self.merged(0, &mut Vec::new(), &mut BTreeMap::new(), &mut Vec::new());
        root.as_map().into_iter().flat_map(|map| &map.0).filter(|(name, value)| is_job(name, value)).map(|(name, _)| name.clone()).collect()
    }

    /// One job as steps.
    /// # Errors
    /// Every problem of every file; an unknown name, with the nearest known one.
    pub fn job(&self, name: &str, here: &Here, supplied: &BTreeMap<String, String>) -> Result<Translation, Vec<FileProblems>> {
        let mut faults = Vec::new();
        let assembled = Assembled { root: self.merged(0, &mut Vec::new(), &mut BTreeMap::new(), &mut faults) };
        let mut problems = self.problems.clone();
        let is_known = assembled.root.get(name).is_some_and(|value| is_job(name, value));
        let is_readable = !problems.iter().any(|(_, problem)| problem.is_error());
        if !is_known && (is_readable || !self.job_names().is_empty()) {
            problems.push((0, self.unknown(name, &assembled)));
        }
        let wanted = is_known.then(|| job::read(&assembled, name, &mut faults)).flatten();
        problems.extend(faults.into_iter().map(|fault| (fault.at.file, self.problem(fault))));
        let Some(wanted) = wanted.filter(|_| !problems.iter().any(|(_, problem)| problem.is_error())) else {
            return Err(self.by_file(problems));
        };
        let file = wanted.at.file;
        let place_of = |path: &str| {
            let at = wanted.places.get(path).copied().filter(|at| at.file == file)?;
            Some(self.place(at))
        };
        let mut translation = wanted
            .translated(here, supplied, &place_of)
            .map_err(|found| self.by_file(problems.iter().cloned().chain(found.into_iter().map(|problem| (file, problem))).collect()))?;
        keywords::name_includes(&self.not_fetched, &self.unconditional, &mut translation.not_done);
        translation.problems.extend(problems.into_iter().map(|(file, problem)| self.in_its_file(file, problem)));
        Ok(translation)
    }

    fn add_file(&mut self, name: &str, text: &str) -> usize {
        let position = self.files.len();
        let parsed = tree::parse(text, position);
        self.problems.extend(parsed.problems.into_iter().map(|problem| (position, problem)));
        let root = match parsed.root {
            Some(root) if root.as_map().is_some() => root,
            Some(root) if root.is_null() && position > 0 => Tree::map(Map::default(), root.at),
            root => {
                let at = At { file: position, ..root.as_ref().map(|root| root.at).unwrap_or_default() };
                let found = root.as_ref().map_or("nothing", Tree::kind_name);
                if root.is_some() || text.trim().is_empty() {
                    let message = format!("a configuration is a map of jobs and settings, and this is {found}");
                    self.problems.push((position, Problem::error("not-a-map", message, None)));
                }
                Tree::map(Map::default(), at)
            }
        };
        let read = Includes::of(&root);
        self.files.push(File { name: name.into(), text: text.into(), root, includes: read.includes });
        for fault in read.faults {
            self.fault(fault.at, fault.message, fault.hint);
        }
        self.not_fetched.extend(read.not_fetched);
        self.unconditional.extend(read.unconditional);
        if parsed.header.as_ref().and_then(|header| header.get("spec")).is_some() {
            let message = "the inputs of this file are not filled in: `$[[ inputs.NAME ]]` stays as it is";
            self.problems.push((position, Problem::warning("inputs-not-filled", message, None)));
        }
        for need in read.needs {
            let is_new = !self.answers.contains_key(&need.pattern) && !self.open.iter().any(|open| open.pattern == need.pattern);
            if is_new {
                self.open.push_back(need);
            }
        }
        position
    }

    /// A file over all that it includes; what is included later comes over what was included before.
    fn merged(&self, position: usize, path: &mut Vec<usize>, known: &mut BTreeMap<usize, Tree>, faults: &mut Vec<Fault>) -> Tree {
        if let Some(merged) = known.get(&position) {
            return merged.clone();
        }
        let file = &self.files[position];
        path.push(position);
        let mut merged = Tree::map(Map::default(), file.root.at);
        for include in &file.includes {
            for included in self.answers.get(&include.pattern).into_iter().flatten() {
                if path.contains(included) {
                    let names = path.iter().skip_while(|step| *step != included).chain([included]).map(|step| &*self.files[*step].name);
                    let message = format!("the file includes itself: {}", names.collect::<Vec<_>>().join(" -> "));
                    faults.push(Fault { at: include.at, message, hint: None });
                    continue;
                }
                merged = merged.merged_with(&self.merged(*included, path, known, faults));
            }
        }
        path.pop();
        let merged = merged.merged_with(&file.root);
        known.insert(position, merged.clone());
        merged
    }

    fn unknown(&self, name: &str, assembled: &Assembled) -> Problem {
        let names = self.job_names();
        if name.starts_with('.') && assembled.root.get(name).is_some() {
            let problem = Problem::error("hidden-job", format!("`{name}` is hidden: it is there for other jobs to use"), None);
            return problem.with_hint(listed(&names));
        }
        let problem = Problem::error("unknown-job", format!("there is no job `{name}`"), None);
        match nearest(name, names.iter().map(|name| &**name)) {
            Some(near) => problem.with_hint(format!("did you mean `{near}`? {}", listed(&names))),
            None if self.not_fetched.is_empty() => problem.with_hint(listed(&names)),
            None => problem.with_hint(format!(
                "{}; includes that are not fetched may hold others: {}",
                listed(&names),
                self.not_fetched.join(", ")
            )),
        }
    }

    fn fault(&mut self, at: At, message: String, hint: Option<String>) {
        let problem = self.problem(Fault { at, message, hint });
        self.problems.push((at.file, problem));
    }

    fn problem(&self, fault: Fault) -> Problem {
        Problem { hint: fault.hint, ..Problem::error("bad-configuration", fault.message, Some(self.place(fault.at))) }
    }

    fn place(&self, at: At) -> step_model::diagnostic::Place {
        let text = &self.files[at.file].text;
        let range = at.span.range();
        let end = text.get(range.clone()).and_then(|slice| slice.find('\n')).map_or(range.end, |newline| range.start + newline);
        Lines::of(text).place(text, range.start..end)
    }

    /// Warnings go with the translation, which does not know files.
    fn in_its_file(&self, file: usize, problem: Problem) -> Problem {
        if file == 0 {
            return problem;
        }
        let name = &self.files[file].name;
        let message = match &problem.place {
            Some(place) => format!("`{name}`, line {}, column {}: {}", place.line, place.column, problem.message),
            None => format!("`{name}`: {}", problem.message),
        };
        Problem { message, place: None, ..problem }
    }

    fn by_file(&self, problems: Vec<(usize, Problem)>) -> Vec<FileProblems> {
        let mut files: BTreeMap<usize, Vec<Problem>> = BTreeMap::new();
        for (file, problem) in problems {
            let of_file = files.entry(file).or_default();
            if !of_file.contains(&problem) {
                of_file.push(problem);
            }
        }
        let files = files.into_iter().map(|(file, mut problems)| {
            problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.span.start));
            FileProblems { file: self.files[file].name.clone(), text: self.files[file].text.clone(), problems }
        });
        files.collect()
    }
}

fn is_job(name: &str, value: &Tree) -> bool {
    !name.starts_with('.') && !RESERVED.contains(&name) && value.as_map().is_some()
}

fn listed(names: &[Arc<str>]) -> String {
    const SHOWN: usize = 20;
    if names.is_empty() {
        return "the configuration has no jobs".to_owned();
    }
    let shown = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let rest = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("the jobs are {shown}{rest}")
}

#[cfg(test)]
mod tests;
