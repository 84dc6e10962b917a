//! A file that holds every key of the tables, written from them: nothing in it is unknown, of a wrong type, or lost.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use runner_config::tables::{Default, FEATURE_FLAGS, GLOBAL, Key, Kind, Table};
use runner_config::{Look, parse};
use std::collections::BTreeMap;

/// A value of the type that a key wants, on one line.
fn value(key: &Key) -> String {
    let quoted = |text: &str| format!("{text:?}");
    match (key.name, key.kind, key.default) {
        ("executor", ..) => quoted("instance"),
        ("url" | "clone_url" | "address", ..) => quoted("https://gitlab.example"),
        ("slot_cgroup_template", ..) => quoted("slot-${slot}"),
        ("MachineName", ..) => quoted("m-%s"),
        ("MachineOptionsWithName", ..) => "[\"a=%s\"]".to_owned(),
        ("environment", ..) => "[\"A=b\"]".to_owned(),
        ("advertise_address" | "listen_address", ..) => quoted("localhost:80"),
        ("protocol_port" | "max_use_count", ..) => "1".to_owned(),
        ("memory" | "memory_swap" | "memory_reservation" | "service_memory" | "service_memory_swap" | "service_memory_reservation", ..) => {
            quoted("5m")
        }
        ("dns", ..) => "[\"10.0.0.1\"]".to_owned(),
        ("ulimit", ..) => "{nofile = \"1:2\"}".to_owned(),
        ("log_options", ..) => "{env = \"A\"}".to_owned(),
        (_, Kind::Text, Default::Is(text)) => quoted(text),
        (_, Kind::Text | Kind::Secret | Kind::Script | Kind::Address, _) => quoted("x"),
        (_, Kind::Flag, _) => "true".to_owned(),
        (_, Kind::Whole | Kind::Seconds, Default::Is(text)) => text.to_owned(),
        (_, Kind::Whole | Kind::Seconds, _) => "3".to_owned(),
        (_, Kind::Number, _) => "1.5".to_owned(),
        (_, Kind::Duration, _) => quoted("1h30m"),
        (_, Kind::Time, _) => "2026-01-01T00:00:00Z".to_owned(),
        (_, Kind::Texts | Kind::SecretTexts, _) => "[\"x\", \"y\"]".to_owned(),
        (_, Kind::Wholes, _) => "[1, 2]".to_owned(),
        (_, Kind::Numbers, _) => "[1, 2.5]".to_owned(),
        (_, Kind::OneOf(choices), _) => quoted(choices[0]),
        (_, Kind::SomeOf(choices), _) => format!("[{}]", choices.iter().map(|choice| quoted(choice)).collect::<Vec<_>>().join(", ")),
        (_, Kind::Map | Kind::SecretMap, _) => "{a = \"b\"}".to_owned(),
        (_, Kind::Flags, _) => format!("{{{} = true}}", FEATURE_FLAGS[0].name),
        (_, Kind::Lists, _) => "{a = [\"b\"]}".to_owned(),
        (_, Kind::Counts, _) => "{a = 1}".to_owned(),
        (_, Kind::Periods(runner_config::schedule::Form::Five), _) => "[\"* 8-15 * * mon-fri\"]".to_owned(),
        (_, Kind::Periods(runner_config::schedule::Form::Seven), _) => "[\"* * 9-17 * * mon-fri *\"]".to_owned(),
        (_, Kind::Zone, _) => quoted("Europe/Berlin"),
        (_, Kind::Free, _) => "{a = {b = [1, \"x\"]}}".to_owned(),
        (_, Kind::Table(_) | Kind::Tables(_), _) => unreachable!("tables are written with headers"),
    }
}

/// How many keys a table and those inside it have.
fn write(table: &Table, path: &str, text: &mut String) -> usize {
    let mut count = 0;
    for key in table.keys.iter().filter(|key| !matches!(key.kind, Kind::Table(_) | Kind::Tables(_))) {
        *text += &format!("{} = {}\n", key.name, value(key));
        count += 1;
    }
    for key in table.keys {
        if let Kind::Table(inner) | Kind::Tables(inner) = key.kind {
            let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
            *text += &if inner.is_list { format!("\n[[{path}]]\n") } else { format!("\n[{path}]\n") };
            count += write(inner, &path, text);
        }
    }
    count
}

fn file() -> (String, usize) {
    let mut text = String::new();
    let count = write(&GLOBAL, "", &mut text);
    (text, count)
}

#[test]
fn a_file_with_every_key_is_served() {
    let (text, count) = file();
    let parsed = parse(&text, &BTreeMap::new());
    let findings: Vec<String> = parsed.problems.iter().filter(|problem| problem.is_finding()).map(ToString::to_string).collect();
    // What two keys that exclude each other are told.
    let expected = ["the Off Peak settings have no effect beside `[[runners.machine.autoscaling]]`"];
    assert!(findings.iter().all(|finding| expected.iter().any(|known| finding.ends_with(known))), "{findings:#?}");
    let counts = parsed.counts();
    // The feature flag that is given has a line of its own.
    assert_eq!(counts.honoured + counts.mapped + counts.without_effect, count + 1);
    let settings = parsed.settings.expect("settings");
    assert_eq!((settings.runners.len(), settings.refused.len()), (1, 0));
    assert!(count > 500, "{count} keys");
}

#[test]
fn every_key_is_found_in_other_letters() {
    let (text, count) = file();
    let upper: String = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((key, value)) => format!("{} = {value}\n", key.to_uppercase()),
            None => format!("{line}\n"),
        })
        .collect();
    let parsed = parse(&upper, &BTreeMap::new());
    assert_eq!(parsed.problems.iter().filter(|problem| problem.code == "unknown-key").count(), 0);
    let noticed = parsed.problems.iter().filter(|problem| problem.code == "letter-case").count();
    assert_eq!(noticed, count);
}

proptest! {
    // The same files each time: damage can also turn a secret into the value of a key that holds none.
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is cut out of a file, put into it or doubled: it is read, every problem can be shown, and no secret is in it.
    #[test]
    fn a_damaged_file_is_read_and_tells_no_secret(
        pieces in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, "[\\[\\]{}=\"'#,.\\\\ \n\ra-z0-9ü]{0,6}"), 1..5),
    ) {
        let mut text = SMALL.to_owned();
        for (at, length, piece) in pieces {
            let mut from = at.index(text.len().max(1)).min(text.len());
            while !text.is_char_boundary(from) { from -= 1; }
            let mut to = (from + length).min(text.len());
            while !text.is_char_boundary(to) { to -= 1; }
            text.replace_range(from..to.max(from), &piece);
        }
        let parsed = parse(&text, &BTreeMap::new());
        let report = parsed.report("config.toml", &text, Look::Plain);
        let debug = format!("{parsed:?}");
        let told: Vec<&str> = report.lines().chain([debug.as_str()]).filter(|line| line.contains("S3CRET")).collect();
        prop_assert!(told.is_empty(), "{text}\n{told:#?}");
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}") {
        let parsed = parse(&text, &BTreeMap::new());
        parsed.report("config.toml", &text, Look::Plain);
    }
}

const SMALL: &str = r#"concurrent = 4
log_level = "info"
# a comment with S3CRET
[[runners]]
  name = "one"
  url = "https://gitlab.example"
  executor = "docker+machine"
  token = "glrt-S3CRET"
  environment = ["A=S3CRET", "B=x"]
  pre_build_script = """
    login --with S3CRET
  """
  [runners.cache]
    Type = "s3"
    [runners.cache.s3]
      SecretKey = 'S3CRET'
      BucketName = "b"
  [runners.machine]
    MachineOptions = [
      "x-token=S3CRET",
    ]
  [runners.autoscaler.plugin_config]
    password = "S3CRET"
"#;
