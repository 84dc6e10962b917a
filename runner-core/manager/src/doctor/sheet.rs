//! What was found out about one runner, and how it is told.

use anstyle::AnsiColor;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;
use step_console::complaint::plain;

/// What is looked at, in this order. A server and an environment can be wrong each by itself.
pub const CHECKS: [(&str, Chain); 8] = [
    ("entry", Chain::Entry),
    ("server", Chain::Server),
    ("token", Chain::Server),
    ("plugin", Chain::Environment),
    ("instance", Chain::Environment),
    ("login", Chain::Environment),
    ("agent", Chain::Environment),
    ("job", Chain::Environment),
];

/// What follows from what: in one of these nothing can be tried after something that does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    Entry,
    Server,
    Environment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Good(String),
    Bad(Trouble),
    /// Not tried, and why.
    Skipped(String),
}

/// What is wrong, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub why: String,
    pub hint: String,
}

impl Trouble {
    pub fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }
}

impl Check {
    /// `  ok       server     https://gitlab.example answers`
    pub fn line(&self) -> String {
        let (good, bad, odd) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default().bold(), AnsiColor::Yellow.on_default());
        let (word, style, text) = match &self.outcome {
            Outcome::Good(what) => ("ok", good, what),
            Outcome::Bad(trouble) => ("FAILED", bad, &trouble.why),
            Outcome::Skipped(why) => ("skipped", odd, why),
        };
        // Messages of others may have several lines.
        let mut lines = text.lines().map(plain);
        let mut out = format!("  {style}{word:<8}{style:#} {:<9} {}\n", self.name, lines.next().unwrap_or_default());
        lines.for_each(|line| _ = writeln!(out, "{:21}{line}", ""));
        if let Outcome::Bad(trouble) = &self.outcome {
            let _ = writeln!(out, "{:20} hint: {}", "", plain(&trouble.hint));
        }
        out
    }
}

/// Everything about one runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    pub runner: String,
    pub url: String,
    pub executor: String,
    pub checks: Vec<Check>,
}

impl Sheet {
    pub fn has_failed(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.outcome, Outcome::Bad(_)))
    }

    /// What is not tried any more: all of a chain after what does not work, or was not tried, in it. An entry that is wrong has no environment.
    pub fn skipped(&self) -> Vec<Check> {
        let stopped = |chain: Chain| {
            let is_of = |check: &&Check| CHECKS.iter().any(|(name, of)| *name == check.name && (*of == chain || *of == Chain::Entry));
            self.checks.iter().filter(is_of).find(|check| !matches!(check.outcome, Outcome::Good(_)))
        };
        let missing = CHECKS.iter().filter(|(name, _)| !self.checks.iter().any(|check| check.name == *name));
        let skipped = missing.filter_map(|(name, chain)| {
            let why = format!("because of `{}`", stopped(*chain)?.name);
            Some(Check { name, outcome: Outcome::Skipped(why), took: Duration::ZERO })
        });
        skipped.collect()
    }
}

/// The last line for people.
pub fn summary(sheets: &[Sheet]) -> String {
    let failed = sheets.iter().filter(|sheet| sheet.has_failed()).count();
    let of = |count: usize| if count == 1 { "1 runner".to_owned() } else { format!("{count} runners") };
    match failed {
        0 => format!("{}: all that was tried works\n", of(sheets.len())),
        _ => format!("{}: {} not work\n", of(sheets.len()), if failed == 1 { "1 does".to_owned() } else { format!("{failed} do") }),
    }
}

pub fn json(sheets: &[Sheet]) -> Value {
    let check = |check: &Check| {
        let (outcome, what, hint) = match &check.outcome {
            Outcome::Good(what) => ("ok", what, None),
            Outcome::Bad(trouble) => ("failed", &trouble.why, Some(&trouble.hint)),
            Outcome::Skipped(why) => ("skipped", why, None),
        };
        json!({"check": check.name, "outcome": outcome, "what": what, "hint": hint, "milliseconds": u64::try_from(check.took.as_millis()).unwrap_or(u64::MAX)})
    };
    let runner = |sheet: &Sheet| {
        let checks: Vec<Value> = sheet.checks.iter().map(check).collect();
        json!({"runner": sheet.runner, "url": sheet.url, "executor": sheet.executor, "works": !sheet.has_failed(), "checks": checks})
    };
    json!({"works": !sheets.iter().any(Sheet::has_failed), "runners": sheets.iter().map(runner).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, outcome: Outcome) -> Check {
        Check { name, outcome, took: Duration::from_millis(5) }
    }

    fn good(name: &'static str) -> Check {
        check(name, Outcome::Good("fine".to_owned()))
    }

    fn bad(name: &'static str) -> Check {
        check(name, Outcome::Bad(Trouble::new("it is broken\nin two lines", "mend it")))
    }

    fn names(checks: &[Check]) -> Vec<&str> {
        checks.iter().map(|check| check.name).collect()
    }

    #[test]
    fn a_server_that_is_away_hides_nothing_about_the_environment_and_an_entry_that_is_wrong_has_none() {
        let sheet = Sheet { checks: vec![good("entry"), bad("server")], ..Sheet::default() };
        assert_eq!(names(&sheet.skipped()), ["token"]);
        let sheet = Sheet { checks: vec![good("entry"), good("server"), good("token"), bad("plugin")], ..Sheet::default() };
        assert_eq!(names(&sheet.skipped()), ["instance", "login", "agent", "job"]);
        let sheet = Sheet { checks: vec![bad("entry")], ..Sheet::default() };
        assert_eq!(sheet.skipped().len(), 7);
        assert_eq!(sheet.skipped()[0].outcome, Outcome::Skipped("because of `entry`".to_owned()));
    }

    #[test]
    fn a_check_is_a_line_and_a_trouble_has_its_way_out() {
        let text: String = [good("server"), bad("plugin"), check("job", Outcome::Skipped("because of `plugin`".to_owned()))]
            .iter()
            .map(Check::line)
            .collect();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text), @r"
          ok       server    fine
          FAILED   plugin    it is broken
                             in two lines
                             hint: mend it
          skipped  job       because of `plugin`
        ");
    }

    #[test]
    fn the_last_line_counts_runners() {
        let (well, ill) = (Sheet { checks: vec![good("job")], ..Sheet::default() }, Sheet { checks: vec![bad("job")], ..Sheet::default() });
        assert_eq!(summary(std::slice::from_ref(&well)), "1 runner: all that was tried works\n");
        assert_eq!(summary(&[well.clone(), ill.clone()]), "2 runners: 1 does not work\n");
        assert_eq!(summary(&[ill.clone(), ill.clone()]), "2 runners: 2 do not work\n");
        let json = json(&[well, ill]);
        assert_eq!((json["works"].as_bool(), json["runners"][0]["works"].as_bool()), (Some(false), Some(true)));
        assert_eq!(json["runners"][1]["checks"][0]["hint"], "mend it");
    }
}
