//! The page about scenarios, held against what is read.

use runner_mock_gitlab::Scenario;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/reference/mock-gitlab.md");

fn scenario() -> &'static str {
    PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario")
}

#[test]
fn the_scenario_of_the_page_is_read() {
    let scenario = Scenario::parse(scenario()).expect("it is one");
    assert_eq!((scenario.cells.len(), scenario.runners.len(), scenario.bursts[0].count, scenario.faults.len()), (2, 2, 100, 1));
}

#[test]
fn the_defaults_of_the_page_are_those_of_the_program() {
    let said = Scenario::parse(&scenario()[..scenario().find("[[cell]]").expect("after them")]).expect("settings");
    assert_eq!(said, Scenario::parse("").expect("nothing"));
}

#[test]
fn every_key_stands_on_the_page() {
    // What is unknown is answered with all that is known.
    let known = |text: &str| {
        let why = Scenario::parse(text).expect_err("unknown").to_string();
        let names: BTreeSet<String> = why.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        names
    };
    let mut keys = known("zzz = 1");
    for table in ["[[cell]]\nzzz = 1", "[[runner]]\nzzz = 1", "[[jobs]]\nzzz = 1", "[[jobs]]\ncancel = { zzz = 1 }", "[[fault]]\nzzz = 1"] {
        keys.extend(known(table));
    }
    assert!(keys.len() > 30, "{keys:?}");
    let missing: Vec<&String> =
        keys.iter().filter(|key| !scenario().contains(key.as_str()) && !PAGE.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
