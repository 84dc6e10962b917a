//! What `config check` prints: each key and what becomes of it, all problems, three counts.

use crate::gather::{Fate, Finding};
use crate::problem::Severity;
use crate::tables::Standing;
use crate::{Look, Parsed};
use std::fmt::Write;

/// How many keys stand in a file, by what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub honoured: usize,
    pub mapped: usize,
    /// Not yet, replaced by something else, or unknown.
    pub without_effect: usize,
}

impl Parsed {
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            match finding.fate {
                Fate::Known(Standing::Honoured) => counts.honoured += 1,
                Fate::Known(Standing::Mapped(_) | Standing::OldNameOf(_)) => counts.mapped += 1,
                Fate::Known(Standing::NotYet(_) | Standing::WithoutEffect(_)) | Fate::Unknown => counts.without_effect += 1,
            }
        }
        counts
    }

    /// Whether `config check` ends with exit code 1: something is wrong or unknown. What has no effect yet is said, and is no finding.
    pub fn has_findings(&self) -> bool {
        self.problems.iter().any(crate::Problem::is_finding)
    }

    /// Problems first as they stand in the file, then every key, then the counts.
    pub fn report(&self, file: &str, text: &str, look: Look) -> String {
        let mut report = String::new();
        // What a key's own line says is not said twice.
        let said_below = ["not-yet", "without-effect"];
        for problem in self.problems.iter().filter(|problem| !said_below.contains(&problem.code)) {
            report += &self.show(problem, file, text, look);
            report.push('\n');
        }
        let width = self.findings.iter().map(|finding| finding.place.line.to_string().len()).max().unwrap_or(0);
        for finding in &self.findings {
            // Writing to a string cannot fail.
            let _ = writeln!(report, "{:>width$}  {}", finding.place.line, line(finding));
        }
        if !self.findings.is_empty() {
            report.push('\n');
        }
        report + &self.summary()
    }

    fn summary(&self) -> String {
        let Counts { honoured, mapped, without_effect } = self.counts();
        let total = honoured + mapped + without_effect;
        let mut summary = format!("{total} keys: {honoured} honoured, {mapped} mapped, {without_effect} without effect\n");
        let of = |severity: Severity| self.problems.iter().filter(|problem| problem.severity == severity).count();
        let refused = self.settings.as_ref().map_or(0, |settings| settings.refused.len());
        let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
        let served = self.settings.as_ref().map_or(0, |settings| settings.runners.len());
        match &self.settings {
            None => {
                let _ = writeln!(summary, "the file cannot be used: {}, {}", plural(errors, "error"), plural(warnings, "warning"));
            }
            Some(_) => {
                let _ = writeln!(
                    summary,
                    "{}: {served} can be served, {refused} refused; {}",
                    plural(served + refused, "runner"),
                    plural(warnings, "warning")
                );
            }
        }
        summary
    }
}

fn line(finding: &Finding) -> String {
    let path = &finding.path;
    match finding.fate {
        Fate::Known(Standing::Honoured) => format!("honoured   {path}"),
        Fate::Known(Standing::Mapped(to)) => format!("mapped     {path}: {to}"),
        Fate::Known(Standing::OldNameOf(name)) => format!("mapped     {path}: an old name of `{name}`"),
        Fate::Known(Standing::NotYet(missing)) => format!("not yet    {path}: {missing}"),
        Fate::Known(Standing::WithoutEffect(instead)) => format!("no effect  {path}: {instead}"),
        Fate::Unknown => format!("unknown    {path}"),
    }
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn ten_mistakes_are_ten_problems_at_once() {
        let text = r#"concurrent = 0
check_intervall = 3
log_level = "verbose"
listen_address = "a:b:c"
[[runners]]
name = "one"
url = "gitlab.example"
token = "glrt-one"
executor = "shell"
limit = "3"
unhealthy_interval = "1 hour"
[runners.docker]
pull_policy = "sometimes"
[[runners.machine.autoscaling]]
Periods = ["* * 9-17 * * mon-fri"]
Timezone = "Europe/Berln"
"#;
        let parsed = crate::parse(text, &BTreeMap::new());
        let findings: Vec<String> = parsed.problems.iter().filter(|problem| problem.is_finding()).map(ToString::to_string).collect();
        insta::assert_snapshot!(findings.join("\n"), @r"
        line 1, column 14: `concurrent` is 0, so no job would ever run
        line 2, column 1: unknown key `check_intervall` in the global section is ignored
        line 3, column 13: `log_level` = `verbose` has to be one of `panic`, `fatal`, `error`, `warning`, `info`, `debug`
        line 4, column 18: `listen_address` = `a:b:c` has too many colons
        line 7, column 7: `url` = `gitlab.example` is no address
        line 10, column 9: `limit` is a string, but has to be an integer
        line 11, column 22: `unhealthy_interval` = `1 hour` is no duration: the unit is unknown
        line 13, column 15: `pull_policy` = `sometimes` has to be one of `always`, `if-not-present`, `never`
        line 15, column 12: `* * 9-17 * * mon-fri` is no period: it has 6 fields, not 7
        line 16, column 12: `Timezone` = `Europe/Berln` is no time zone
        ");
        assert!(parsed.has_findings() && parsed.settings.is_none());
    }

    #[test]
    fn every_key_has_its_line_and_the_counts_close_the_report() {
        let text = "concurrent = 2\nsentry_dsn = \"https://secret@sentry\"\nconcurent = 3\n[session_server]\nlisten_address = \"[::]:8093\"\n[[runners]]\n\
            name = \"one\"\nurl = \"https://gitlab.example\"\ntoken = \"glrt-one\"\nrequest_concurrency = 2\nexecutor = \"docker\"\n[runners.docker]\nimage = \"x\"\n";
        let parsed = crate::parse(text, &BTreeMap::new());
        insta::assert_snapshot!(parsed.report("config.toml", text, Look::Plain), @r"
        warning: unknown key `concurent` in the global section is ignored
         --> config.toml:3:1
          |
        3 | concurent = …
          | ^^^^^^^^^
          |
          = hint: did you mean `concurrent`?

         1  honoured   concurrent
         2  no effect  sentry_dsn: spans and the metrics of errors take its place
         3  unknown    concurent
         5  not yet    session_server.listen_address: there is no session server yet
         7  honoured   runners[0].name
         8  honoured   runners[0].url
         9  honoured   runners[0].token
        10  honoured   runners[0].request_concurrency
        11  honoured   runners[0].executor
        13  mapped     runners[0].docker.image: inputs of the docker step and of service steps

        10 keys: 6 honoured, 1 mapped, 3 without effect
        1 runner: 1 can be served, 0 refused; 1 warning
        ");
    }

    #[test]
    fn what_the_documentation_shows_has_no_findings() {
        let text = include_str!("../tests/fixtures/autoscale/complete.toml");
        let parsed = crate::parse(text, &BTreeMap::new());
        assert!(!parsed.has_findings());
        insta::assert_snapshot!(parsed.report("config.toml", text, Look::Plain), @r"
        notice: request bottleneck: runner `autoscale-runner` may ask for one job at a time
        --> config.toml
         = hint: an idle request is held by the server for up to 50 s; raise `concurrent` or `request_concurrency`

         1  honoured   concurrent
         4  honoured   runners[0].url
         5  honoured   runners[0].token
         6  honoured   runners[0].name
         7  honoured   runners[0].executor
         8  honoured   runners[0].limit
        10  mapped     runners[0].docker.image: inputs of the docker step and of service steps
        12  honoured   runners[0].machine.IdleCount
        13  honoured   runners[0].machine.IdleTime
        14  honoured   runners[0].machine.MaxBuilds
        15  mapped     runners[0].machine.MachineName: the plugin `docker-machine`
        16  mapped     runners[0].machine.MachineDriver: the plugin `docker-machine`
        17  mapped     runners[0].machine.MachineOptions: the plugin `docker-machine`
        27  honoured   runners[0].machine.autoscaling[0].Periods
        28  honoured   runners[0].machine.autoscaling[0].IdleCount
        29  honoured   runners[0].machine.autoscaling[0].IdleTime
        30  honoured   runners[0].machine.autoscaling[0].Timezone
        32  honoured   runners[0].machine.autoscaling[1].Periods
        33  honoured   runners[0].machine.autoscaling[1].IdleCount
        34  honoured   runners[0].machine.autoscaling[1].IdleTime
        35  honoured   runners[0].machine.autoscaling[1].Timezone
        37  honoured   runners[0].cache.Type
        39  honoured   runners[0].cache.s3.ServerAddress
        40  honoured   runners[0].cache.s3.AccessKey
        41  honoured   runners[0].cache.s3.SecretKey
        42  honoured   runners[0].cache.s3.BucketName
        43  honoured   runners[0].cache.s3.Insecure

        27 keys: 23 honoured, 4 mapped, 0 without effect
        1 runner: 1 can be served, 0 refused; 0 warnings
        ");
    }
}
