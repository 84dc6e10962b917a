//! What a server does, as a TOML file says it. Everything has a default: an empty file is a server without jobs.
//!
//! Times are seconds, `0.5` is half of one. Unknown keys are errors.

mod fault;

pub use fault::{CallKind, Fault, Wrong};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A scenario, as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// A job waits until the runner accepts it, as on GitLab.com. Else it runs from the moment it is handed out.
    pub two_phase: bool,
    /// How long a job waits to be accepted, from the last beat on.
    pub beat: Seconds,
    /// How long a request for a job is held while there is none and the runner has seen so already.
    pub long_poll: Seconds,
    /// The `X-GitLab-Trace-Update-Interval` of every answer, in whole seconds. Zero: the server has no wish.
    pub trace_interval: Seconds,
    /// What a trace may have, in bytes. A job with more is failed.
    pub trace_limit: u64,
    /// For how long after its last update a job's trace is still being put together: 202 until then.
    pub archive: Seconds,
    /// For `POST runners`. Empty: registration tokens are switched off (410).
    pub registration_token: String,
    /// For what users may do.
    pub user_token: String,
    /// Servers that share this address. Without any there is one, number 1.
    #[serde(rename = "cell")]
    pub cells: Vec<Cell>,
    #[serde(rename = "runner")]
    pub runners: Vec<Runner>,
    #[serde(rename = "jobs")]
    pub bursts: Vec<Burst>,
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            two_phase: true,
            beat: Seconds(120.0),
            long_poll: Seconds(50.0),
            trace_interval: Seconds(3.0),
            trace_limit: 100 << 20,
            archive: Seconds(0.0),
            registration_token: "GR1348941registration".to_owned(),
            user_token: "glpat-user".to_owned(),
            cells: Vec::new(),
            runners: Vec::new(),
            bursts: Vec::new(),
            faults: Vec::new(),
        }
    }
}

/// A duration in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub f64);

impl Seconds {
    pub fn duration(self) -> Duration {
        Duration::try_from_secs_f64(self.0).unwrap_or(Duration::ZERO)
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    pub id: u64,
}

/// A runner that the server knows from the start.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    pub token: String,
    #[serde(default)]
    pub id: u64,
    #[serde(default = "first")]
    pub cell: u64,
    /// Gets no jobs.
    #[serde(default)]
    pub paused: bool,
}

fn first() -> u64 {
    1
}

/// Jobs that come together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Burst {
    pub count: u64,
    /// When the first of them comes.
    pub at: Seconds,
    /// The time between one and the next.
    pub every: Seconds,
    pub cell: u64,
    /// Only for this runner's token.
    pub runner: Option<String>,
    pub name: String,
    pub script: Vec<String>,
    pub variables: BTreeMap<String, String>,
    /// Whose values must not be logged.
    pub masked: BTreeMap<String, String>,
    pub timeout: Seconds,
    /// Taken into the payload as it is, over what stands there.
    pub payload: BTreeMap<String, toml::Value>,
    pub cancel: Option<Cancel>,
    /// Handed out this often before the server remembers that it was: the same job for two requests.
    pub offers: u64,
    /// One byte of the trace is stored wrongly, so that its checksum does not match: 412, once.
    pub corrupt: bool,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            count: 1,
            at: Seconds(0.0),
            every: Seconds(0.0),
            cell: 1,
            runner: None,
            name: "job".to_owned(),
            script: vec!["echo hello".to_owned()],
            variables: BTreeMap::new(),
            masked: BTreeMap::new(),
            timeout: Seconds(3600.0),
            payload: BTreeMap::new(),
            cancel: None,
            offers: 1,
            corrupt: false,
        }
    }
}

/// When somebody cancels a job, and how the server says so.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub when: CancelWhen,
    /// After this time. Counts from `when`.
    #[serde(default)]
    pub after: Seconds,
    /// `true`: `canceled` at once. `false`: `canceling`, and the job may end by itself.
    #[serde(default)]
    pub hard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelWhen {
    /// It was handed out, and nobody has accepted it.
    Offered,
    Running,
    /// The first bytes of its trace have come.
    Trace,
}

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadScenario {
    #[error("could not read the scenario: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("{place} is in cell {cell}, and there is no such cell: add `[[cell]]` with `id = {cell}`")]
    NoCell { place: String, cell: u64 },
    #[error("the jobs of `{name}` are for a runner with a token that no `[[runner]]` has")]
    NoRunner { name: String },
    #[error("two runners have the same token")]
    SameToken,
}

impl Scenario {
    /// # Errors
    /// It is no TOML, has unknown keys, or names what is not there.
    pub fn parse(text: &str) -> Result<Self, BadScenario> {
        let mut scenario: Self = toml::from_str(text)?;
        if scenario.cells.is_empty() {
            scenario.cells.push(Cell { id: 1 });
        }
        for (number, runner) in scenario.runners.iter_mut().enumerate().filter(|(_, runner)| runner.id == 0) {
            runner.id = number as u64 + 1;
        }
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), BadScenario> {
        let is_known = |cell: u64| self.cells.iter().any(|known| known.id == cell);
        for (number, runner) in self.runners.iter().enumerate() {
            if !is_known(runner.cell) {
                return Err(BadScenario::NoCell { place: format!("runner {}", runner.id), cell: runner.cell });
            }
            if self.runners[..number].iter().any(|other| other.token == runner.token) {
                return Err(BadScenario::SameToken);
            }
        }
        for burst in &self.bursts {
            if !is_known(burst.cell) {
                return Err(BadScenario::NoCell { place: format!("`{}`", burst.name), cell: burst.cell });
            }
            if burst.runner.as_ref().is_some_and(|token| !self.runners.iter().any(|runner| runner.token == *token)) {
                return Err(BadScenario::NoRunner { name: burst.name.clone() });
            }
        }
        Ok(())
    }

    /// One runner with this token, and as many jobs.
    pub fn with_jobs(token: &str, count: u64) -> Self {
        Self {
            cells: vec![Cell { id: 1 }],
            runners: vec![Runner { token: token.to_owned(), id: 1, cell: 1, paused: false }],
            bursts: vec![Burst { count, ..Burst::default() }],
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_a_server_without_jobs() {
        let scenario = Scenario::parse("").expect("a scenario");
        assert_eq!(scenario, Scenario { cells: vec![Cell { id: 1 }], ..Scenario::default() });
    }

    #[test]
    fn a_whole_scenario_is_read() {
        let scenario = Scenario::parse(
            r#"
            two_phase = false
            long_poll = 0.5
            [[cell]]
            id = 1
            [[cell]]
            id = 2
            [[runner]]
            token = "glrt-one"
            [[runner]]
            token = "glrt-two"
            cell = 2
            [[jobs]]
            count = 100
            at = 2
            cancel = { when = "trace", hard = true }
            [jobs.payload]
            image = { name = "ruby" }
            [[fault]]
            call = "trace"
            skip = 3
            times = 0
            kind = "status"
            status = 429
            headers = { retry-after = "1" }
            [[fault]]
            call = "final"
            kind = "lost"
            "#,
        )
        .expect("a scenario");
        assert_eq!((scenario.runners[1].id, scenario.bursts[0].count, scenario.long_poll.duration()), (2, 100, Duration::from_millis(500)));
        assert_eq!(scenario.bursts[0].cancel, Some(Cancel { when: CancelWhen::Trace, after: Seconds(0.0), hard: true }));
        assert!(matches!(&scenario.faults[0].what, Wrong::Status { status: 429, headers, .. } if headers["retry-after"] == "1"));
        assert_eq!((scenario.faults[1].call, &scenario.faults[1].what, scenario.faults[1].times), (CallKind::Final, &Wrong::Lost, 1));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let why = |text: &str| Scenario::parse(text).expect_err(text).to_string();
        assert!(why("long_pol = 1").contains("unknown field `long_pol`"), "{}", why("long_pol = 1"));
        assert_eq!(
            why("[[runner]]\ntoken = \"a\"\ncell = 7"),
            "runner 1 is in cell 7, and there is no such cell: add `[[cell]]` with `id = 7`"
        );
        assert!(why("[[jobs]]\nrunner = \"glrt-secret\"").starts_with("the jobs of `job` are for a runner"));
        assert_eq!(why("[[runner]]\ntoken = \"a\"\n[[runner]]\ntoken = \"a\""), "two runners have the same token");
    }
}
