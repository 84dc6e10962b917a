//! Tokens, entries and their comments: what a change touches and what it leaves.

use super::*;
use proptest::prelude::*;

const TEXT: &str = r#"# Ours.
concurrent = 4   # four

# The first.
[[runners]]
  name = "one"
  url = "https://gitlab.example/"
  token = "glrt-one"     # from the vault
  executor = "shell"
  [runners.docker]
    image = 'x'
  # commented = out

[[runners]]
name = "two"
url = "https://gitlab.example"
token = "glrt-two"
token_expires_at = 0001-01-01T00:00:00Z
executor = "shell"

[session_server]
session_timeout = 1800

[runners.cache]
Path = "p"

# The end.
"#;

fn runners(text: &str) -> Vec<Runner> {
    let settings = parse(text, &BTreeMap::new()).settings.expect("settings");
    settings.entries().into_iter().cloned().collect()
}

fn token(text: &str) -> NewToken {
    NewToken { token: Secret::new(text), obtained_at: Timestamp::from_nanoseconds(1_700_000_000_500_000_000), expires_at: None }
}

fn lines_that_differ(old: &str, new: &str) -> String {
    let removed = old.split_inclusive('\n').filter(|line| !new.contains(line)).map(|line| format!("-{line}"));
    let added = new.split_inclusive('\n').filter(|line| !old.contains(line)).map(|line| format!("+{line}"));
    removed.chain(added).collect()
}

#[test]
fn a_new_token_takes_the_place_of_the_old_one() {
    let new = with_token(TEXT, &runners(TEXT)[0], &token("glrt-new"), &BTreeMap::new()).expect("a new text");
    insta::assert_snapshot!(lines_that_differ(TEXT, &new), @r#"
    -  token = "glrt-one"     # from the vault
    +  token = "glrt-new"     # from the vault
    +  token_obtained_at = 2023-11-14T22:13:20Z
    +  token_expires_at = 0001-01-01T00:00:00Z
    "#);
    let new = with_token(TEXT, &runners(TEXT)[1], &token("glrt-new"), &BTreeMap::new()).expect("a new text");
    insta::assert_snapshot!(lines_that_differ(TEXT, &new), @r#"
    -token = "glrt-two"
    +token = "glrt-new"
    +token_obtained_at = 2023-11-14T22:13:20Z
    "#);
}

#[test]
fn a_runner_in_braces_gets_its_token_too() {
    let text = "runners = [{url = \"https://x\", token = \"a\", executor = \"shell\"}]";
    let new = with_token(text, &runners(text)[0], &token("b"), &BTreeMap::new()).expect("a new text");
    assert_eq!(
        new,
        "runners = [{url = \"https://x\", token = \"b\", token_obtained_at = 2023-11-14T22:13:20Z, token_expires_at = 0001-01-01T00:00:00Z, executor = \"shell\"}]"
    );
    assert_eq!(unregister(text, &runners(text)[0], &BTreeMap::new()), Err(EditFault::Inline));
    assert_eq!(register(text, &new_runner()), Err(EditFault::Inline));
}

#[test]
fn a_token_of_the_environment_gives_way_to_the_new_one() {
    let text = "[[runners]]\nurl = \"https://x\"\nexecutor = \"shell\"\ntoken = \"$T\"";
    let variables = BTreeMap::from([("T".to_owned(), "old".to_owned())]);
    let runner = parse(text, &variables).settings.expect("settings").runners.remove(0);
    let new = with_token(text, &runner, &token("new"), &variables).expect("a new text");
    assert!(new.starts_with("[[runners]]\nurl = \"https://x\"\nexecutor = \"shell\"\ntoken = \"new\"\ntoken_obtained_at ="), "{new}");
}

#[test]
fn an_entry_goes_with_its_tables_and_its_comment() {
    let new = unregister(TEXT, &runners(TEXT)[0], &BTreeMap::new()).expect("a new text");
    let first = TEXT.find("# The first").expect("there");
    let second = TEXT.find("[[runners]]\nname = \"two\"").expect("there");
    assert_eq!(new, format!("{}{}", &TEXT[..first], &TEXT[second..]));
    // Tables of an entry may stand elsewhere; the comment at the end belongs to the file.
    let new = unregister(TEXT, &runners(TEXT)[1], &BTreeMap::new()).expect("a new text");
    assert!(new.ends_with("[session_server]\nsession_timeout = 1800\n\n# The end.\n") && !new.contains("two"), "{new}");
}

#[test]
fn what_is_gone_cannot_be_changed() {
    let mut gone = runners(TEXT)[0].clone();
    gone.token = Secret::new("glrt-other");
    assert_eq!(unregister(TEXT, &gone, &BTreeMap::new()), Err(EditFault::NoEntry("runner `one`".to_owned())));
    assert!(matches!(unregister("a = ", &gone, &BTreeMap::new()), Err(EditFault::Grammar(_))));
}

fn new_runner() -> NewRunner {
    NewRunner {
        name: "it's \"new\"\n\u{7f}".to_owned(),
        url: "https://gitlab.example".to_owned(),
        id: 7,
        token: token("glrt-three"),
        executor: "docker".to_owned(),
        more: vec![
            ("docker".to_owned(), serde_json::json!({"image": "rust:1", "volumes": ["/a:/b"], "privileged": false})),
            ("limit".to_owned(), serde_json::json!(3)),
        ],
    }
}

#[test]
fn a_registered_runner_stands_at_the_end() {
    let new = register(TEXT, &new_runner()).expect("a new text");
    insta::assert_snapshot!(new.strip_prefix(TEXT).expect("nothing else changed"), @r#"

    [[runners]]
      name = "it's \"new\"\n\u007f"
      url = "https://gitlab.example"
      id = 7
      token = "glrt-three"
      token_obtained_at = 2023-11-14T22:13:20Z
      token_expires_at = 0001-01-01T00:00:00Z
      executor = "docker"
      limit = 3
      [runners.docker]
        image = "rust:1"
        privileged = false
        volumes = ["/a:/b"]
    "#);
    let runner = &runners(&new)[2];
    assert_eq!((runner.id, runner.limit, runner.token_expires_at), (7, Some(3), None));
    assert!(register("", &new_runner()).expect("a new file").starts_with("concurrent = 1\n\n[[runners]]\n"));
}

#[test]
fn an_entry_that_is_no_toml_is_not_written() {
    let mut runner = new_runner();
    runner.more.push(("two words".to_owned(), serde_json::json!(1)));
    assert!(matches!(register(TEXT, &runner), Err(EditFault::BadEntry(_))));
}

/// A file with some runners, in the odd ways in which people write.
fn file() -> impl Strategy<Value = (String, usize)> {
    let noise = prop::sample::select(vec!["", "# a note", "  # token = \"glrt-9\"", "\t", "# ü"]);
    let entry = (prop::collection::vec(noise.clone(), 0..3), prop::collection::vec(noise, 0..3), any::<[bool; 5]>());
    (prop::collection::vec(entry, 1..5), any::<[bool; 3]>()).prop_map(|(entries, [is_crlf, has_end, has_global])| {
        let mut lines: Vec<String> = Vec::new();
        if has_global {
            lines.push("concurrent=3 #c".to_owned());
        }
        let count = entries.len();
        for (number, (above, below, [is_indented, has_table, has_times, has_other, is_single])) in entries.into_iter().enumerate() {
            let indent = if is_indented { "  " } else { "" };
            lines.extend(above.iter().map(|line| (*line).to_owned()));
            lines.push("[[runners]] # header".to_owned());
            lines.push(format!("{indent}url=\"https://gitlab.example\""));
            let quote = if is_single { '\'' } else { '"' };
            lines.push(format!("{indent}token   = {quote}glrt-{number}{quote} # note"));
            if has_times {
                lines.push(format!("{indent}token_obtained_at = 2020-01-01T00:00:00Z"));
            }
            lines.extend(below.iter().map(|line| (*line).to_owned()));
            lines.push(format!("{indent}executor = \"shell\""));
            if has_table {
                lines.push(format!("{indent}[runners.docker]"));
                lines.push(format!("{indent}  image = \"i{number}\""));
            }
            if has_other {
                lines.push(format!("[x{number}]"));
                lines.push("y = 1".to_owned());
            }
        }
        let end = if is_crlf { "\r\n" } else { "\n" };
        (lines.join(end) + if has_end { end } else { "" }, count)
    })
}

proptest! {
    #[test]
    fn a_new_token_touches_three_lines_only((text, count) in file(), chosen in any::<prop::sample::Index>()) {
        let runner = &runners(&text)[chosen.index(count)];
        let new = with_token(&text, runner, &token("glrt-new"), &BTreeMap::new()).expect("a new text");
        let is_touched = |line: &&str| line.contains("token_") || line.contains("glrt-new") || line.contains(runner.token.expose());
        let rest = |text: &str| text.split('\n').filter(|line| !is_touched(line)).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(rest(&text), rest(&new));
        let (old, new) = (runners(&text), runners(&new));
        for (old, new) in old.iter().zip(&new) {
            prop_assert_eq!(&old.docker, &new.docker);
            prop_assert_eq!(old.token == new.token, old.index != runner.index);
        }
    }

    #[test]
    fn an_entry_that_goes_leaves_the_others_as_they_were((text, count) in file(), chosen in any::<prop::sample::Index>()) {
        let runner = &runners(&text)[chosen.index(count)];
        let new = unregister(&text, runner, &BTreeMap::new()).expect("a new text");
        let mut old_lines = text.split_inclusive('\n');
        for line in new.split_inclusive('\n') {
            prop_assert!(old_lines.any(|old| old == line), "a line is new or moved: {line:?}");
        }
        let expected: Vec<Secret> = runners(&text).into_iter().filter(|other| other.index != runner.index).map(|runner| runner.token).collect();
        let left: Vec<Secret> = runners(&new).into_iter().map(|runner| runner.token).collect();
        prop_assert_eq!(expected, left);
        prop_assert_eq!(text.matches("[x").count(), new.matches("[x").count());
    }

    #[test]
    fn what_is_registered_can_be_taken_away_again((text, count) in file()) {
        let new = register(&text, &new_runner()).expect("a new text");
        prop_assert!(new.starts_with(&text));
        let back = unregister(&new, &runners(&new)[count], &BTreeMap::new()).expect("a new text");
        prop_assert_eq!(back.trim_end(), text.trim_end());
    }
}
