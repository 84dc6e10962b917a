//! Cases written in Rust: the same text as a case of `step_test.yml`, the outcome as a value.
//!
//! ```no_run
//! use step_testing::scenario::Scenario;
//!
//! let outcome = Scenario::of("steps/greet").given("inputs: {who: Ann}\nstubs: {curl: {stdout: ok}}").run()?;
//! assert_eq!(outcome.output("greeting").and_then(|value| value.as_str()), Some("hello Ann"));
//! assert_eq!(outcome.calls.len(), 1);
//! # Ok::<(), step_testing::scenario::Refusal>(())
//! ```

use crate::outcome::Outcome;
use crate::suite_file::{Refused, SuiteFile};
use crate::workers::{Grounds, Performance, Settings};
use std::path::{Path, PathBuf};

/// A step, and what one run of it is given.
#[derive(Debug, Clone)]
pub struct Scenario {
    step: PathBuf,
    given: String,
    settings: Settings,
}

/// Why a scenario did not run.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Every problem, with its file and place.
    #[error("{0}")]
    Problems(String),
    #[error("could not make a temporary directory: {0}")]
    NoPlace(#[from] std::io::Error),
}

impl Scenario {
    /// A definition file, or the directory of one.
    pub fn of(step: impl Into<PathBuf>) -> Self {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
        Self { step: step.into(), given: String::new(), settings: Settings::new(path) }
    }

    /// The keys of a case but its name, as YAML: `inputs`, `env`, `files`, `fakes`, `stubs`, `timeout`. What it expects can be said too; it is told in
    /// [`Scenario::findings`].
    pub fn given(mut self, case: &str) -> Self {
        self.given = case.to_owned();
        self
    }

    /// Nothing real may run.
    pub fn hermetic(mut self) -> Self {
        self.settings.hermetic = true;
        self
    }

    /// Runs the step once.
    /// # Errors
    /// The definition or what is given has problems, or there is no place to run.
    pub fn run(&self) -> Result<Outcome, Refusal> {
        Ok(self.report()?.outcome)
    }

    /// Runs the step once: what is not as `expect` says, a line each.
    /// # Errors
    /// As for [`Scenario::run`].
    pub fn findings(&self) -> Result<Vec<String>, Refusal> {
        Ok(self.report()?.findings.into_iter().map(|finding| finding.message).collect())
    }

    fn report(&self) -> Result<crate::workers::Report, Refusal> {
        let step = self.step.canonicalize().unwrap_or_else(|_| self.step.clone());
        let indented: String = self.given.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!("step: {:?}\ncases:\n  - name: scenario\n{indented}", step.to_string_lossy());
        let path = step.parent().unwrap_or(Path::new("/")).join("scenario_test.yml");
        let file = SuiteFile::of_text(&path, "the scenario", text, &self.settings.builtins)
            .map_err(|refused| Refusal::Problems(in_lines(&refused)))?;
        let grounds = Grounds::new()?;
        let [case] = &file.suite.cases[..] else { return Err(Refusal::Problems("a scenario is one case, without a table".into())) };
        let performance = Performance {
            subject: &file.subject,
            document: &file.subject.document,
            planned: &file.plans[0],
            case,
            test_dir: file.dir(),
            ignores_exit: false,
        };
        Ok(grounds.perform(&performance, &self.settings))
    }
}

fn in_lines(refused: &Refused) -> String {
    let lines = refused.files.iter().flat_map(|(name, _, problems)| problems.iter().map(move |problem| format!("{name}: {problem}")));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let text = "spec: {inputs: {who: {type: string}}, outputs: {id: {type: string}}}\n---\nrun:\n  - {name: a, func: host.example/o/p@v1, inputs: {who: \"${{ inputs.who }}\"}}\noutputs: {id: \"${{ steps.a.outputs.id }}\"}\n";
        std::fs::write(dir.path().join("func.yml"), text).unwrap();
        dir
    }

    #[test]
    fn a_scenario_gives_its_outcome_as_a_value() {
        let dir = step();
        let scenario = Scenario::of(dir.path()).hermetic();
        let outcome = scenario.clone().given("inputs: {who: Ann}\nfakes: {a: {outputs: {id: \"id of ${{ inputs.who }}\"}}}").run().unwrap();
        assert_eq!((outcome.succeeded, outcome.processes, outcome.steps.len()), (true, 0, 2));
        assert_eq!(outcome.output("id").and_then(|value| value.as_str()), Some("id of Ann"));
        let findings = scenario.given("inputs: {who: Ann}\nfakes: {a: {exit: 3}}\nexpect: {exit: 4}").findings().unwrap();
        assert_eq!(findings, ["the step failed with another exit code: step \"a\": exec: exit status 3"]);
    }

    #[test]
    fn a_scenario_with_problems_names_them_all() {
        let dir = step();
        let refusal = Scenario::of(dir.path()).given("inputs: {hwo: Ann}\nstubs: {a/b: }").run().unwrap_err().to_string();
        assert!(refusal.contains("does not accept an input `hwo`") && refusal.contains("no name of a program"), "{refusal}");
    }
}
