//! Settings under which long polls starve runners or slow down the start of jobs: said once, at the start.

use crate::id::RunnerId;
use crate::settings::Settings;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bottleneck {
    /// `concurrent` is smaller than the number of runners: one idle poll can take another runner's turn for as long as a server holds it.
    WorkerStarvation { concurrent: u32, runners: usize },
    /// One poll at a time: while it hangs, no other job is asked for.
    Request { runners: Vec<RunnerId> },
    /// The same, and a small `limit` with it.
    BuildLimit { runners: Vec<RunnerId> },
}

/// The patterns that GitLab's runner warns of, in its order.
pub fn bottlenecks(settings: &Settings) -> Vec<Bottleneck> {
    let runners = &settings.runners;
    let one_poll = |id: &&RunnerId| runners[*id].request_concurrency() == 1;
    let request: Vec<RunnerId> = runners.keys().filter(one_poll).cloned().collect();
    let build_limit: Vec<RunnerId> = request.iter().filter(|id| (1..=2).contains(&runners[*id].limit)).cloned().collect();
    let starves = usize::try_from(settings.concurrent).is_ok_and(|concurrent| concurrent < runners.len());
    let mut found = Vec::new();
    if starves {
        found.push(Bottleneck::WorkerStarvation { concurrent: settings.concurrent, runners: runners.len() });
    }
    if !request.is_empty() {
        found.push(Bottleneck::Request { runners: request });
    }
    if !build_limit.is_empty() {
        found.push(Bottleneck::BuildLimit { runners: build_limit });
    }
    found
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |runners: &[RunnerId]| runners.iter().map(RunnerId::as_str).collect::<Vec<_>>().join(", ");
        match self {
            Self::WorkerStarvation { concurrent, runners } => {
                write!(
                    f,
                    "Worker starvation bottleneck: `concurrent` is {concurrent} and there are {runners} runners; set it to at least {runners}"
                )
            }
            Self::Request { runners } => {
                write!(f, "Request bottleneck: one poll at a time for {}; set `request_concurrency` to 2 or more", names(runners))
            }
            Self::BuildLimit { runners } => {
                write!(f, "Build limit bottleneck: a `limit` of 1 or 2 and one poll at a time for {}; raise one of them", names(runners))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RunnerSettings;
    use crate::testing::{id, runner};

    /// Runners by what is set for them: `request_concurrency`, `limit`.
    fn settings(concurrent: u32, runners: &[(u32, u32)]) -> Settings {
        let runners = (0..).zip(runners).map(|(number, (request_concurrency, limit))| {
            (id(&format!("r{number}")), RunnerSettings { request_concurrency: *request_concurrency, limit: *limit, ..runner(1) })
        });
        Settings { concurrent, runners: runners.collect(), ..Settings::default() }
    }

    fn kinds(settings: &Settings) -> Vec<String> {
        bottlenecks(settings).iter().map(|found| found.to_string().split(':').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn runner_50_one_poll_at_a_time_is_a_request_bottleneck() {
        assert_eq!(kinds(&settings(4, &[(1, 0), (1, 0)])), ["Request bottleneck"]);
    }

    #[test]
    fn runner_51_a_small_limit_with_it_is_a_build_limit_bottleneck() {
        assert_eq!(kinds(&settings(4, &[(1, 2), (1, 1)])), ["Request bottleneck", "Build limit bottleneck"]);
    }

    #[test]
    fn runner_53_enough_of_everything_is_no_bottleneck() {
        assert_eq!(bottlenecks(&settings(6, &[(3, 10), (2, 5)])), []);
        assert_eq!(bottlenecks(&settings(3, &[(2, 0), (2, 0), (2, 0)])), []);
    }

    #[test]
    fn fewer_workers_than_runners_starve_some() {
        assert_eq!(kinds(&settings(1, &[(2, 0), (2, 0)])), ["Worker starvation bottleneck"]);
    }
}
