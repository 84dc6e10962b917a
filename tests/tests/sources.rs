//! What the sources must and must not hold: a test for every case, short files, honest names, no silenced lint.

use ci_tests::{cases, repository};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_case_has_a_test_of_its_name() {
    let tests = test_names();
    let has_test = |case: &cases::Case| tests.keys().any(|name| name.starts_with(&case.test_prefix()));
    let missing: Vec<String> = cases::all().into_iter().filter(|case| !has_test(case)).map(|case| case.id).collect();
    assert!(missing.is_empty(), "{} cases have no test: {}", missing.len(), missing.join(" "));
}

#[test]
fn every_test_that_is_named_after_a_case_has_one() {
    let known: BTreeSet<String> = cases::all().iter().map(cases::Case::test_prefix).collect();
    let tables: BTreeSet<&str> = known.iter().filter_map(|prefix| prefix.split('_').next()).collect();
    let unknown: Vec<String> = test_names()
        .into_iter()
        .filter(|(name, _)| {
            let mut parts = name.split('_');
            let (table, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let named_after = tables.contains(table) && (2..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
            named_after && !known.contains(&format!("{table}_{number}_"))
        })
        .map(|(name, place)| format!("{place}: {name}"))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn case_ids_are_unique() {
    let mut seen = BTreeSet::new();
    for case in cases::all() {
        assert!(seen.insert(case.id.clone()), "{} stands twice", case.id);
    }
    assert!(seen.len() > 200, "the tables were not read: {} cases", seen.len());
}

#[test]
fn every_difference_is_explained() {
    let explained = repository::read("docs/compatibility.md");
    let missing: Vec<String> =
        cases::all().into_iter().filter(|case| case.differs && !explained.contains(&case.id)).map(|case| case.id).collect();
    assert!(missing.is_empty(), "docs/compatibility.md does not name {missing:?}");
    let unmarked: Vec<String> = cases::all()
        .into_iter()
        .filter(|case| !case.differs && explained.contains(&format!("| {} |", case.id)))
        .map(|case| case.id)
        .collect();
    assert!(unmarked.is_empty(), "the case tables do not say that ours differs in {unmarked:?}");
}

#[test]
fn files_are_short() {
    let long: Vec<String> = repository::rust_files()
        .iter()
        .map(|file| (file.text.lines().count(), &file.path))
        .filter(|(lines, _)| *lines > 500)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "over 500 lines, tests included: split into foo.rs and foo/: {long:#?}");
}

#[test]
fn names_do_not_hide_two_things() {
    let hiding = ["utils", "util", "common", "helpers", "helper", "misc", "errors", "error", "types", "prelude", "mod"];
    let found: Vec<String> = repository::rust_files()
        .iter()
        .filter(|file| {
            let name = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
            hiding.contains(&name) || file.path.split('/').any(|part| ["utils", "common", "helpers"].contains(&part))
        })
        .map(|file| file.path.clone())
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_is_silenced_or_left_open() {
    // Put together here, so that this file does not hold what it looks for.
    let unwanted = [
        ["#[al", "low("].concat(),
        ["#![al", "low("].concat(),
        ["to", "do!("].concat(),
        ["unimple", "mented!("].concat(),
        ["#[ig", "nore"].concat(),
        ["FIX", "ME"].concat(),
        ["../sha", "red"].concat(),
    ];
    let found: Vec<String> = repository::files_ending_in(&[".rs", ".md", ".sh", ".toml", ".yml", "test", "run", "bench", "bundle"])
        .iter()
        .flat_map(|file| {
            let hits = file.text.lines().enumerate().filter(|(_, line)| unwanted.iter().any(|unwanted| line.contains(unwanted)));
            hits.map(|(number, line)| format!("{}:{}: {}", file.path, number + 1, line.trim())).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_rust_file_says_what_it_is() {
    let silent: Vec<String> = repository::rust_files()
        .iter()
        .filter(|file| !file.path.contains("/tests") && !file.path.ends_with("build.rs"))
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| file.path.clone())
        .collect();
    assert!(silent.is_empty(), "a file starts with a sentence that says what it is: {silent:#?}");
}

#[test]
fn comments_name_only_documents_and_sections_that_exist() {
    let original = repository::read("docs/reference/original.md");
    let exists = |section: &str| original.contains(&format!("\n### {section} ")) || original.contains(&format!("\n## {section}. "));
    let mut wrong = Vec::new();
    for file in repository::rust_files() {
        for (number, line) in file.text.lines().enumerate() {
            let mut complain = |what: &str| wrong.push(format!("{}:{}: {what}", file.path, number + 1));
            for named in line.split("original.md ").skip(1).filter_map(section_of) {
                if !exists(&named) {
                    complain(&format!("original.md has no section {named}"));
                }
            }
            // Put together here, so that this file does not name what is not there.
            for gone in ["agent", "observed", "decisions", "runner"] {
                // Not the end of another name, such as that of a guide.
                let is_part = |before: char| before.is_alphanumeric() || before == '-';
                if line.match_indices(&[gone, ".md"].concat()).any(|(at, _)| !line[..at].ends_with(is_part)) {
                    complain(&format!("there is no {gone}.md"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `C.7`, `0.1`, `S 2.3`: the section at the beginning of a text, if it begins with one.
fn section_of(text: &str) -> Option<String> {
    let mut words = text.split([' ', ',', ')', ';', ':']);
    let first = words.next()?.trim_end_matches('.');
    let section = if first == "S" { format!("S {}", words.next()?.trim_end_matches('.')) } else { first.to_owned() };
    section.starts_with(|c: char| c.is_ascii_uppercase() || c == '0').then_some(section)
}

/// The names of all test functions of the workspace and where each stands.
fn test_names() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in repository::rust_files() {
        let mut is_test = false;
        for line in file.text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            }
            let function = line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ");
            if let Some(rest) = function {
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if is_test {
                    found.insert(name, file.path.clone());
                }
                is_test = false;
            } else if line.ends_with('}') {
                is_test = false;
            }
        }
    }
    found
}
