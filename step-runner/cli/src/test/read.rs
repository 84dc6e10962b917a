//! The test files below some paths, and what is wrong with those that cannot be run.

use crate::builtins;
use crate::complain;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use step_console::exit::Stop;
use step_testing::suite_file::{Refused, SuiteFile, find};

pub struct Tests {
    pub files: Vec<SuiteFile>,
    pub refused: Vec<Refused>,
    here: PathBuf,
}

impl Tests {
    /// # Errors
    /// A path is not there, or there is no test at all.
    pub fn read(paths: &[PathBuf], here: &Path) -> Result<Self, Stop> {
        let mut tests = Self { files: Vec::new(), refused: Vec::new(), here: here.to_path_buf() };
        let mut seen = BTreeSet::new();
        for path in paths {
            for found in find(path).map_err(Stop::bad_input)? {
                if !seen.insert(found.canonicalize().unwrap_or_else(|_| found.clone())) {
                    continue;
                }
                let name = found.strip_prefix(".").unwrap_or(&found).display().to_string();
                match SuiteFile::read(&found, &name, &builtins::all()) {
                    Ok(file) => tests.files.push(file),
                    Err(refused) => tests.refused.push(refused),
                }
            }
        }
        if seen.is_empty() {
            let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let stop = Stop::bad_input(format!("there is no `step_test.yml` below `{}`", shown.join("`, `")));
            return Err(stop.with_hint("write one beside the definition; `step-runner new NAME` makes a step with a test"));
        }
        Ok(tests)
    }

    /// Tells every problem of the files that cannot be run. Whether there are some.
    /// # Errors
    /// The stream cannot be written.
    pub fn tell_refused(&mut self, out: &mut dyn Write) -> Result<bool, Stop> {
        let mut told = BTreeSet::new();
        for (name, text, problems) in self.refused.iter().flat_map(|refused| &refused.files) {
            let name = Path::new(name).strip_prefix(&self.here).map_or_else(|_| name.clone(), |near| near.display().to_string());
            for problem in problems {
                // Two tests of one definition find the same problem.
                if told.insert((name.clone(), problem.to_string())) {
                    writeln!(out, "{}", complain::shown(problem, &name, text.as_deref(), true)).map_err(super::not_written)?;
                }
            }
        }
        Ok(!self.refused.is_empty())
    }
}
