//! GitLab's published autoscaling examples load as they stand; each test is named after its file.

use runner_config::machines::{counting_at, most_machines};
use runner_config::schedule::NamedZone;
use runner_config::settings::{CacheStore, Executor, Machine, PeriodKind, Runner};
use runner_config::{Parsed, parse};
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::time::Timestamp;

fn read(text: &str) -> Parsed {
    parse(text, &BTreeMap::new())
}

/// Files without an entry of `[[runners]]` are parts of one.
fn in_an_entry(text: &str) -> String {
    format!("[[runners]]\nurl = \"https://gitlab.example\"\ntoken = \"glrt-abc\"\nexecutor = \"docker+machine\"\n{text}")
}

/// The only entry; most examples leave out what an entry needs to be served.
fn only(parsed: &Parsed) -> Runner {
    let settings = parsed.settings.as_ref().expect("the file can be used");
    let entries = settings.entries();
    assert_eq!(entries.len(), 1);
    entries[0].clone()
}

fn machine(parsed: &Parsed) -> Machine {
    only(parsed).machine.expect("machines")
}

#[test]
fn complete() {
    let parsed = read(include_str!("fixtures/autoscale/complete.toml"));
    let settings = parsed.settings.as_ref().expect("the file can be used");
    assert_eq!((settings.global.concurrent, settings.runners.len(), settings.refused.len()), (50, 1, 0));
    assert!(parsed.problems.iter().all(|problem| !problem.is_finding()), "{:#?}", parsed.problems);
    let runner = &settings.runners[0];
    assert_eq!(
        (runner.executor, runner.limit, runner.name.as_deref()),
        (Some(Executor::DockerMachine), Some(10), Some("autoscale-runner"))
    );
    assert_eq!(runner.docker.as_ref().and_then(|docker| docker.image.as_deref()), Some("ruby:2.6"));
    let machine = runner.machine.as_ref().expect("machines");
    assert_eq!((machine.idle.count, machine.idle.time, machine.max_builds), (5, Duration::from_secs(600), Some(100)));
    assert_eq!((machine.periods.len(), machine.options.len(), machine.name.as_str()), (2, 7, "auto-scale-%s"));
    let Some(CacheStore::S3(s3)) = runner.cache.as_ref().map(|cache| &cache.store) else { panic!("a cache in S3") };
    assert_eq!(s3.server_address.as_deref(), Some("s3-eu-west-1.amazonaws.com"));
}

#[test]
fn five_jobs() {
    let parsed = read(include_str!("fixtures/autoscale/five-jobs.toml"));
    let machine = machine(&parsed);
    assert_eq!((only(&parsed).limit, machine.idle.count, machine.idle.time), (Some(10), 2, Duration::from_secs(1800)));
}

#[test]
fn periods() {
    let machine = machine(&read(&in_an_entry(include_str!("fixtures/autoscale/periods.toml"))));
    let figures: Vec<(u64, u64)> = machine.periods.iter().map(|period| (period.idle.count, period.idle.time.as_secs())).collect();
    assert_eq!(figures, [(50, 3600), (5, 60)]);
    assert_eq!((machine.idle.count, machine.idle.time.as_secs()), (10, 1800));
}

#[test]
fn off_peak() {
    let parsed = read(&in_an_entry(include_str!("fixtures/autoscale/off-peak.toml")));
    let machine = machine(&parsed);
    let kinds: Vec<PeriodKind> = machine.periods.iter().map(|period| period.kind).collect();
    assert_eq!(kinds, [PeriodKind::OffPeak]);
    let with_sections = format!("{}\n[[runners.machine.autoscaling]]\n", in_an_entry(include_str!("fixtures/autoscale/off-peak.toml")));
    let parsed = read(&with_sections);
    assert!(parsed.problems.iter().any(|problem| problem.code == "off-peak" && problem.is_finding()));
    assert_eq!(only(&parsed).machine.expect("machines").periods.iter().filter(|period| period.kind == PeriodKind::OffPeak).count(), 0);
}

#[test]
fn cache() {
    let cache = only(&read(include_str!("fixtures/autoscale/cache.toml"))).cache.expect("a cache");
    assert_eq!((cache.path.as_str(), cache.shared), ("path/to/prefix", false));
    let CacheStore::S3(s3) = cache.store else { panic!("S3") };
    assert_eq!((s3.bucket_name.as_str(), s3.insecure, s3.access_key.expect("a key").expose()), ("runner", false, "access-key"));
}

#[test]
fn registry_mirror() {
    let machine = machine(&read(include_str!("fixtures/autoscale/registry-mirror.toml")));
    assert_eq!(machine.options[0].expose(), "engine-registry-mirror=http://10.11.12.13:12345");
}

fn most(parsed: &Parsed) -> (u64, String) {
    let settings = parsed.settings.as_ref().expect("the file can be used");
    let most = most_machines(&settings.global, settings.entries()[0]);
    (most.count, most.how.join("\n"))
}

#[test]
fn upper_limit_40() {
    let (count, how) = most(&read(include_str!("fixtures/autoscale/upper-limit-40.toml")));
    assert_eq!(count, 30);
    insta::assert_snapshot!(how, @r"
    at most 20 jobs at once: `concurrent` (`limit = 40`)
    10 idle beside 20 busy ones: `IdleCount` of [runners.machine]
    ");
}

#[test]
fn upper_limit_25() {
    let (count, how) = most(&read(include_str!("fixtures/autoscale/upper-limit-25.toml")));
    assert_eq!(count, 25);
    insta::assert_snapshot!(how, @r"
    at most 20 jobs at once: `concurrent` (`limit = 25`)
    10 idle beside 20 busy ones: `IdleCount` of [runners.machine]
    `limit = 25` counts machines too: in the worst case 20 busy and only 5 idle
    ");
}

/// What counts at a moment, in the words of `config check --at`.
fn counting(text: &str, at: &str) -> String {
    let at: jiff::Timestamp = at.parse().expect("a time");
    let at = Timestamp::from_nanoseconds(i64::try_from(at.as_nanosecond()).expect("of this century"));
    let counting = counting_at(&only(&read(&in_an_entry(text))), at, &NamedZone::utc()).expect("something counts");
    format!("{}: {}", counting.which, counting.figures)
}

#[test]
fn periods_count_at_their_time() {
    let at = |time: &str| counting(include_str!("fixtures/autoscale/periods.toml"), time);
    insta::assert_snapshot!(at("2026-03-02T09:00:00Z"), @"[[runners.machine.autoscaling]] 1 of 2 (`* * 9-17 * * mon-fri *`): 50 idle machines for 3600 s");
    insta::assert_snapshot!(at("2026-03-02T17:59:58Z"), @"[[runners.machine.autoscaling]] 1 of 2 (`* * 9-17 * * mon-fri *`): 50 idle machines for 3600 s");
    insta::assert_snapshot!(at("2026-03-02T17:59:59Z"), @"[runners.machine], since no period matches: 10 idle machines for 1800 s");
    insta::assert_snapshot!(at("2026-03-07T12:00:00Z"), @"[[runners.machine.autoscaling]] 2 of 2 (`* * * * * sat,sun *`): 5 idle machines for 60 s");
}

#[test]
fn off_peak_counts_at_its_time() {
    let text =
        format!("{}\n  OffPeakIdleCount = 1\n  OffPeakIdleTime = 60\n  IdleCount = 9\n", include_str!("fixtures/autoscale/off-peak.toml"));
    let is_off_peak = |time: &str| counting(&text, time).starts_with("OffPeakPeriods");
    // 2026-03-02 is a Monday.
    let times = ["2026-03-02T08:30:00Z", "2026-03-02T09:00:00Z", "2026-03-02T17:30:00Z", "2026-03-02T18:00:00Z", "2026-03-07T12:00:00Z"];
    assert_eq!(times.map(is_off_peak), [true, false, false, true, true]);
    insta::assert_snapshot!(counting(&text, "2026-03-07T12:00:00Z"), @"OffPeakPeriods (`* * 0-8,18-23 * * mon-fri *`, `* * * * * sat,sun *`): 1 idle machine for 60 s");
}
