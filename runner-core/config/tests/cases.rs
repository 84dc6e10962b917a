//! What GitLab's runner does with a configuration: the rows of `tests/cases/configuration.md`, each a test of its name.

use runner_config::settings::Settings;
use runner_config::{Parsed, parse};
use std::collections::BTreeMap;

fn read(text: &str) -> Parsed {
    parse(text, &BTreeMap::new())
}

fn settings(text: &str) -> Settings {
    read(text).settings.expect("the file can be used")
}

fn entry(number: usize, keys: &str) -> String {
    format!("[[runners]]\nname = \"r{number}\"\nurl = \"https://x\"\ntoken = \"glrt-{number}\"\nexecutor = \"shell\"\n{keys}\n")
}

fn long_polling(text: &str) -> Vec<String> {
    let problems = read(text).problems;
    problems.iter().filter(|problem| problem.code == "long-polling").map(|problem| problem.message.clone()).collect()
}

#[test]
fn cfg_01_a_limit_of_zero_is_none() {
    assert_eq!(settings(&entry(1, "limit = 0")).runners[0].limit, None);
}

#[test]
fn cfg_02_no_request_at_once_counts_as_one() {
    assert_eq!(settings(&entry(1, "request_concurrency = 0")).runners[0].request_concurrency, 1);
}

#[test]
fn cfg_03_a_token_of_blanks_is_no_token() {
    for blank in ["", " ", "   ", "\\t", "\\n", " \\t\\n "] {
        let parsed = settings(&format!("[[runners]]\nurl = \"https://x\"\nexecutor = \"shell\"\ntoken = \"{blank}\"\n"));
        assert_eq!(parsed.refused[0].reasons, ["it has no `token`"], "{blank:?}");
    }
}

#[test]
fn cfg_04_two_runners_that_ask_for_one_job_at_a_time_are_warned_of() {
    let text = format!("concurrent = 2\n{}{}", entry(1, ""), entry(2, "request_concurrency = 1"));
    assert_eq!(long_polling(&text), ["request bottleneck: runner `r1`, runner `r2` may ask for one job at a time"]);
}

#[test]
fn cfg_05_small_limits_with_one_request_are_warned_of() {
    let text = format!("concurrent = 2\n{}{}", entry(1, "limit = 2"), entry(2, "limit = 1"));
    assert_eq!(
        long_polling(&text)[1],
        "build limit bottleneck: runner `r1`, runner `r2` may run two jobs at most and ask for one at a time"
    );
}

#[test]
fn cfg_06_fewer_workers_than_runners_are_warned_of() {
    let text = format!("concurrent = 1\n{}{}", entry(1, "request_concurrency = 2"), entry(2, "request_concurrency = 2"));
    assert_eq!(long_polling(&text), ["worker starvation: 2 runners share `concurrent = 1`"]);
}

#[test]
fn cfg_07_enough_of_everything_is_not_warned_of() {
    let two = format!("{}{}", entry(1, "request_concurrency = 3\nlimit = 10"), entry(2, "request_concurrency = 2\nlimit = 5"));
    assert_eq!(long_polling(&format!("concurrent = 6\n{two}")), [""; 0]);
    let three: String = (0..3).map(|number| entry(number, "request_concurrency = 2")).collect();
    assert_eq!(long_polling(&format!("concurrent = 3\n{three}")), [""; 0]);
}

#[test]
fn cfg_08_a_listen_address_gets_its_port() {
    let listens = |address: &str| settings(&format!("listen_address = \"{address}\"")).global.listen_address;
    assert_eq!(listens("localhost").as_deref(), Some("localhost:9252"));
    assert_eq!(listens(":1234").as_deref(), Some(":1234"));
    assert_eq!(listens("localhost:1234").as_deref(), Some("localhost:1234"));
    assert_eq!(listens(""), None);
    assert!(read("listen_address = \"localhost::1234\"").settings.is_none());
}

fn advertised(keys: &str) -> Option<String> {
    let settings = read(&format!("[session_server]\nlisten_address = \"0.0.0.0:8093\"\n{keys}\n")).settings?;
    settings.global.session_server.map(|server| server.advertise_address)
}

#[test]
fn cfg_09_what_is_advertised_is_what_is_listened_on() {
    assert_eq!(advertised("").as_deref(), Some("https://0.0.0.0:8093"));
    assert_eq!(advertised("advertise_address = \"\"").as_deref(), Some("https://0.0.0.0:8093"));
    assert_eq!(advertised("advertise_address = \"runner.example\"").as_deref(), Some("https://runner.example"));
}

#[test]
fn cfg_10_an_advertised_address_has_no_scheme() {
    for wrong in ["%^*", "http://runner.example", "https://runner.example"] {
        assert_eq!(advertised(&format!("advertise_address = \"{wrong}\"")), None, "{wrong}");
    }
}

#[test]
fn cfg_11_a_runner_with_a_number_is_the_same_after_its_token_changed() {
    let identity = |text: &str| settings(text).runners[0].identity();
    let with = |token: &str, id: u64| entry(1, &format!("id = {id}")).replace("glrt-1", token);
    assert_eq!(identity(&with("glrt-a", 7)), identity(&with("glrt-b", 7)));
    assert_ne!(identity(&with("glrt-a", 0)), identity(&with("glrt-b", 0)));
}

fn autoscaler(keys: &str) -> String {
    format!("[[runners]]\nurl = \"https://x\"\ntoken = \"glrt-1\"\nexecutor = \"instance\"\n[runners.autoscaler]\nplugin = \"x\"\n{keys}\n")
}

#[test]
fn tsc_14_a_capacity_of_nothing_is_refused() {
    for capacity in ["0", "-1"] {
        let parsed = read(&autoscaler(&format!("capacity_per_instance = {capacity}")));
        assert!(parsed.problems.iter().any(|problem| problem.code == "no-capacity"), "{:?}", parsed.problems);
    }
}

#[test]
fn tsc_18_a_policy_with_idle_slots_is_preemptive_unless_it_says_otherwise() {
    let mode = |keys: &str| {
        let settings = settings(&autoscaler(&format!("[[runners.autoscaler.policy]]\n{keys}")));
        settings.runners[0].autoscaler.as_ref().expect("an autoscaler").policies[0].preemptive_mode
    };
    assert_eq!(["idle_count = 0", "idle_count = 1", "idle_count = 1\npreemptive_mode = false"].map(mode), [false, true, false]);
}

#[test]
fn tsc_51_a_period_that_makes_no_sense_is_an_error() {
    for period in ["invalid", "* * * * * *", "61 * * * *"] {
        let parsed = read(&autoscaler(&format!("[[runners.autoscaler.policy]]\nperiods = [\"{period}\"]")));
        assert!(parsed.has_findings(), "{period}: {:?}", parsed.problems);
    }
}
