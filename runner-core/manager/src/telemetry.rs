//! What is counted over the life of a runner process, beside what it does at this moment: jobs, their ends and durations, and calls of the server. The
//! names are those of GitLab's runner, so that dashboards go on working.

use runner_gitlab::client::{Endpoint, Watch};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Of jobs, in seconds (GitLab Runner v19.4, commands/helpers/metrics).
const OF_JOBS: [f64; 11] = [30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 10800.0, 18000.0, 25200.0, 36000.0];
/// Of calls: those of Prometheus's client library.
const OF_CALLS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Counts. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Arc<Mutex<Counted>>);

/// Names, and in each its labels, as they are written.
#[derive(Debug, Default)]
struct Counted {
    counters: BTreeMap<&'static str, BTreeMap<String, u64>>,
    histograms: BTreeMap<&'static str, BTreeMap<String, Histogram>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Histogram {
    bounds: &'static [f64],
    /// Of each bound by itself; the last is of what is larger than all.
    counts: Vec<u64>,
    sum: f64,
}

/// Which runner something is counted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerLabels(String);

impl RunnerLabels {
    pub fn new(short_token: &str, name: &str, system_id: &str) -> Self {
        Self(format!("runner=\"{}\",runner_name=\"{}\",system_id=\"{}\"", escaped(short_token), escaped(name), escaped(system_id)))
    }

    fn with(&self, label: &str, value: &str) -> String {
        format!("{},{label}=\"{}\"", self.0, escaped(value))
    }
}

impl Telemetry {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job was taken of the server.
    pub fn job_taken(&self, runner: &RunnerLabels) {
        self.counted().count("gitlab_runner_jobs_total", runner.0.clone());
    }

    /// The server has the end of a job. `failure`: the reason that it was told.
    pub fn job_ended(&self, runner: &RunnerLabels, failure: Option<&str>, took: Duration) {
        let mut counted = self.counted();
        counted.observe("gitlab_runner_job_duration_seconds", runner.0.clone(), &OF_JOBS, took);
        if let Some(reason) = failure {
            counted.count("gitlab_runner_failed_jobs_total", runner.with("failure_reason", reason));
        }
    }

    /// Hears of every call that one entry makes.
    pub fn watch(&self, runner: RunnerLabels) -> Arc<dyn Watch> {
        Arc::new(OfEntry { telemetry: self.clone(), runner })
    }

    /// The text form of Prometheus, version 0.0.4.
    pub fn text(&self) -> String {
        let counted = self.counted();
        let mut text = String::new();
        for (name, series) in &counted.counters {
            let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} counter", help(name));
            series.iter().for_each(|(labels, count)| _ = writeln!(text, "{name}{{{labels}}} {count}"));
        }
        for (name, series) in &counted.histograms {
            let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} histogram", help(name));
            series.iter().for_each(|(labels, histogram)| histogram.write(&mut text, name, labels));
        }
        text
    }
}

impl Counted {
    fn count(&mut self, name: &'static str, labels: String) {
        *self.counters.entry(name).or_default().entry(labels).or_default() += 1;
    }

    fn observe(&mut self, name: &'static str, labels: String, bounds: &'static [f64], took: Duration) {
        let new = || Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 };
        self.histograms.entry(name).or_default().entry(labels).or_insert_with(new).observe(took.as_secs_f64());
    }
}

impl Histogram {
    fn observe(&mut self, seconds: f64) {
        let at = self.bounds.iter().position(|bound| seconds <= *bound).unwrap_or(self.bounds.len());
        self.counts[at] += 1;
        self.sum += seconds;
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) {
        let mut so_far = 0;
        for (bound, count) in self.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]).zip(&self.counts) {
            so_far += count;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {so_far}");
        }
        let _ = writeln!(text, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {so_far}", self.sum);
    }
}

struct OfEntry {
    telemetry: Telemetry,
    runner: RunnerLabels,
}

impl Watch for OfEntry {
    fn answered(&self, endpoint: Endpoint, status: Option<u16>, took: Duration) {
        let labels = self.runner.with("endpoint", endpoint.name());
        let mut counted = self.telemetry.counted();
        // GitLab's runner counts a call without an answer as -1.
        let status = status.map_or_else(|| "-1".to_owned(), |status| status.to_string());
        counted.count("gitlab_runner_api_request_statuses_total", format!("{labels},status=\"{status}\""));
        counted.observe("gitlab_runner_api_request_duration_seconds", labels, &OF_CALLS, took);
    }

    fn retried(&self, endpoint: Endpoint) {
        let labels = self.runner.with("endpoint", endpoint.name());
        self.telemetry.counted().count("gitlab_runner_api_request_retries_total", labels);
    }
}

fn help(name: &str) -> &'static str {
    match name {
        "gitlab_runner_jobs_total" => "Jobs that were taken.",
        "gitlab_runner_failed_jobs_total" => "Jobs that failed, by the reason that the server was told.",
        "gitlab_runner_job_duration_seconds" => "From the moment a job was received to its report.",
        "gitlab_runner_api_request_statuses_total" => "Answers of the server, by call and status.",
        "gitlab_runner_api_request_duration_seconds" => "How long the server took to answer.",
        "gitlab_runner_api_request_retries_total" => "Calls that were made again.",
        _ => "",
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_calls_are_counted_under_the_names_of_gitlabs_runner() {
        let (telemetry, runner) = (Telemetry::default(), RunnerLabels::new("abc", "my \"runner\"", "s_1"));
        telemetry.job_taken(&runner);
        telemetry.job_ended(&runner, Some("script_failure"), Duration::from_secs(45));
        telemetry.job_ended(&runner, None, Duration::from_secs(40_000));
        let watch = telemetry.watch(runner);
        watch.answered(Endpoint::RequestJob, Some(204), Duration::from_millis(7));
        watch.answered(Endpoint::RequestJob, None, Duration::from_secs(20));
        watch.retried(Endpoint::UpdateJob);
        let text = telemetry.text();
        let labels = r#"runner="abc",runner_name="my \"runner\"",system_id="s_1""#;
        for line in [
            format!("gitlab_runner_jobs_total{{{labels}}} 1"),
            format!("gitlab_runner_failed_jobs_total{{{labels},failure_reason=\"script_failure\"}} 1"),
            format!("gitlab_runner_job_duration_seconds_bucket{{{labels},le=\"30\"}} 0"),
            format!("gitlab_runner_job_duration_seconds_bucket{{{labels},le=\"60\"}} 1"),
            format!("gitlab_runner_job_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("gitlab_runner_job_duration_seconds_sum{{{labels}}} 40045"),
            format!("gitlab_runner_api_request_statuses_total{{{labels},endpoint=\"request_job\",status=\"204\"}} 1"),
            format!("gitlab_runner_api_request_statuses_total{{{labels},endpoint=\"request_job\",status=\"-1\"}} 1"),
            format!("gitlab_runner_api_request_duration_seconds_count{{{labels},endpoint=\"request_job\"}} 2"),
            format!("gitlab_runner_api_request_retries_total{{{labels},endpoint=\"update_job\"}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_process_that_did_nothing_yet_has_counted_nothing() {
        assert_eq!(Telemetry::default().text(), "");
    }
}
