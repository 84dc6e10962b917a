use super::*;
use proptest::prelude::*;

const FULL: &str = include_str!("../../fixtures/full.json");
const MERGE_REQUEST: &str = include_str!("../../fixtures/merge-request.json");

/// Every problem as a line, with what is underlined.
fn problems(text: &str) -> String {
    let problems = read(text).expect_err("problems");
    let lines = problems.iter().map(|problem| {
        let shown = problem.place.as_ref().map(|place| text[place.span.clone()].to_owned()).unwrap_or_default();
        let hint = problem.hint.as_ref().map(|hint| format!("\n hint: {hint}")).unwrap_or_default();
        format!("{problem} <{shown}>{hint}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_full_payload_is_read() {
    let job = read(FULL).expect("a job");
    assert_eq!(job.id, Some(7_391_455_520));
    assert_eq!(job.timeout, Some(Duration::from_hours(1)));
    assert_eq!(
        job.variables.iter().filter(|variable| variable.key == "MODE").map(|variable| &*variable.value).collect::<Vec<_>>(),
        ["release"]
    );
    assert_eq!(job.steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["script", "release", "after_script"]);
    assert_eq!(job.services[0].aliases, ["db", "database"]);
    assert_eq!(job.services[0].variables["POSTGRES_PASSWORD"], "x");
    assert_eq!(job.image.expect("an image").user, "1000");
    assert_eq!(job.secrets[0], Secret { name: "DATABASE_PASSWORD".into(), provider: "vault".into(), file: false });
    assert_eq!(job.policy.as_deref(), Some("compliance"));
    assert!(job.git.expect("git").allow_fetch);
}

#[test]
fn the_environment_of_a_merge_request_is_read_whole() {
    let job = read(MERGE_REQUEST).expect("a job");
    let value = |key: &str| job.variable(key).expect("a variable").value.clone();
    assert_eq!(value("MULTI_LINE"), "first\n\n  third, indented\n\ttab\r\nlast without newline");
    assert_eq!(value("LONG").len(), 131_072);
    assert_eq!((value("EMPTY"), value("ÜMLAUT")), (String::new(), "u".to_owned()));
    assert!(job.run.starts_with("[{\"name\": \"compile\""));
}

#[test]
fn every_bad_field_is_named_with_its_place() {
    let text = "{\n \"id\": \"7\",\n \"variables\": [{\"key\": \"A\", \"value\": 1, \"masked\": \"yes\"}, {\"value\": \"x\"}, 3],\n \"steps\": {\"name\": \"script\"},\n \"runner_info\": {\"timeout\": \"1h\"},\n \"artifacts\": [{\"when\": \"sometimes\", \"paths\": [\"a\", 2]}],\n \"run\": [{\"name\": \"a\"}]\n}";
    insta::assert_snapshot!(problems(text), @r#"
    line 2, column 8: `id` is a string, expected a whole number <"7">
    line 3, column 38: `variables[0].value` is a number, expected a string <1>
    line 3, column 51: `variables[0].masked` is a string, expected true or false <"yes">
    line 3, column 59: `variables[1]` has no key <{"value": "x"}>
    line 3, column 75: `variables[2]` is a number, expected an object <3>
    line 4, column 11: `steps` is an object, expected an array <{"name": "script"}>
    line 5, column 29: `runner_info.timeout` is a string, expected a whole number <"1h">
    line 6, column 25: `artifacts[0].when` is none of `on_success`, `on_failure`, `always` <"sometimes">
    line 6, column 53: `artifacts[0].paths[1]` is a number, expected a string <2>
    line 7, column 9: `run` is an array, expected a string that holds the list as JSON <[{"name": "a"}]>
    "#);
}

#[test]
fn inputs_are_refused_in_the_words_of_the_original() {
    let text = r#"{"inputs": [{"value": {}}, {"key": "a", "value": {"type": "string", "content": null}}, {"key": "b", "value": {"type": "date", "content": "x"}}, {"key": "c", "value": {"type": "number", "content": "1"}}]}"#;
    insta::assert_snapshot!(problems(text), @r#"
    line 1, column 13: input without key <{"value": {}}>
    line 1, column 50: input "a" is null, must have valid value <{"type": "string", "content": null}>
    line 1, column 119: invalid type "date" for input "b": type is unknown <"date">
    line 1, column 197: mismatching type of input "c". Announced "number", but got "string" <"1">
    "#);
}

#[test]
fn options_that_no_executor_knows_are_refused_in_the_words_of_the_original() {
    let text = r#"{"image": {"name": "a", "executor_opts": {"docker": {"privileged": true, "user": "me"}, "podman": {}}}}"#;
    insta::assert_snapshot!(problems(text), @r#"
    line 1, column 42: Unsupported "image" options [podman] for "executor_opts"; supported options are [docker kubernetes] <{"docker": {"privileged": true, "user": "me"}, "podman": {}}>
    line 1, column 53: Unsupported "image" options [privileged] for "docker executor"; supported options are [platform user] <{"privileged": true, "user": "me"}>
    "#);
}

#[test]
fn a_text_that_is_no_json_is_shown_where_it_breaks() {
    insta::assert_snapshot!(problems("{\"id\": 1,\n \"tokené\": x}"), @"line 2, column 12: the payload is not JSON: expected value <>");
    insta::assert_snapshot!(problems("{\"id\": 1,\n \"steps\": [{\"name\": \"scr"), @r"
    line 2, column 24: the payload is cut off <>
     hint: the file ends in the middle: save the whole answer of `jobs/request`
    ");
    insta::assert_snapshot!(problems(""), @"the payload is empty <>");
    insta::assert_snapshot!(problems("[]"), @"line 1, column 1: the payload is an array, expected an object <[]>");
    insta::assert_snapshot!(problems(&format!("{{\"a\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000))), @"line 1, column 133: the payload nests deeper than 127 levels <>");
}

#[test]
fn null_is_nothing_and_unknown_fields_are_passed_over() {
    let job =
        read(r#"{"id": 1, "steps": null, "run": null, "image": null, "variables": null, "new": [1], "services": [null]}"#).expect("a job");
    assert_eq!(job, Job { id: Some(1), timeout: Some(DEFAULT_TIMEOUT), ..Job::default() });
}

#[test]
fn a_text_cut_off_anywhere_is_cut_off() {
    for end in (1..FULL.len() - 1).filter(|end| FULL.is_char_boundary(*end)) {
        let problems = read(&FULL[..end]).expect_err("cut off");
        assert_eq!(problems[0].code, "cut-off", "{end}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn any_value_in_place_of_another_is_read_without_a_panic(at in 0usize..FULL.len(), value in "null|true|-1|1e400|\"é\"|\\[\\]|\\{\\}|\\[\\{\\}\\]") {
        if let Some((before, after)) = FULL.split_at_checked(at)
            && let Some(rest) = after.find([',', '}', ']']) {
            let text = format!("{before}{value}{}", &after[rest..]);
            if let Err(problems) = read(&text) {
                prop_assert!(problems.iter().all(|problem| problem.place.is_none() || problem.place.as_ref().is_some_and(|place| text.get(place.span.clone()).is_some())));
            }
        }
    }
}
