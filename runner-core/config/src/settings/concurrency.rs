//! Figures that hold each other up: GitLab's three warnings about long polling.

use super::{Global, Runner};
use crate::gather::Gather;

const HINT: &str = "an idle request is held by the server for up to 50 s; raise `concurrent` or `request_concurrency`";

pub(super) fn check(global: &Global, runners: &[Runner], gather: &mut Gather<'_>) {
    let count = u64::try_from(runners.len()).unwrap_or(u64::MAX);
    if global.concurrent < count {
        let message = format!("worker starvation: {count} runners share `concurrent = {}`", global.concurrent);
        gather.note("long-polling", message, None, HINT);
    }
    let waits_alone = |runner: &&Runner| runner.request_concurrency == 1;
    let named = |chosen: Vec<&Runner>| chosen.iter().map(|runner| runner.phrase()).collect::<Vec<_>>().join(", ");
    let bottleneck: Vec<&Runner> = runners.iter().filter(waits_alone).collect();
    if !bottleneck.is_empty() {
        let message = format!("request bottleneck: {} may ask for one job at a time", named(bottleneck.clone()));
        gather.note("long-polling", message, None, HINT);
    }
    let limited: Vec<&Runner> = bottleneck.into_iter().filter(|runner| runner.limit.is_some_and(|limit| limit <= 2)).collect();
    if !limited.is_empty() {
        let message = format!("build limit bottleneck: {} may run two jobs at most and ask for one at a time", named(limited));
        gather.note("long-polling", message, None, HINT);
    }
}
