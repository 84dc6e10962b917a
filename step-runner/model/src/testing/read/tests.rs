use super::*;
use crate::testing::suite::{Target, TextCondition};

fn shown(text: &str) -> Vec<String> {
    let problems = read(text).problems;
    problems.iter().map(|problem| format!("{problem}; {}", problem.hint.as_deref().unwrap_or("-"))).collect()
}

#[test]
fn the_simplest_case_is_a_name_and_what_comes_out() {
    let reading = read("cases:\n  - name: it greets\n    inputs: {who: Ann}\n    expect: {outputs: {greeting: hello Ann}, log: hello}\n");
    assert_eq!(reading.problems, []);
    let case = &reading.suite.cases[0];
    assert_eq!((&*case.name, case.place.line, case.inputs.len(), case.expect.outputs.len()), ("it greets", 2, 1, 1));
    assert!(matches!(&case.expect.log.as_ref().unwrap().conditions[0].it, TextCondition::Contains(_)));
}

#[test]
fn a_row_of_a_table_is_a_case() {
    let text = "cases:\n  - name: greets\n    table:\n      - {who: Ann, times: 2}\n      - {who: Bob, times: 1}\n    inputs: {who: \"${{ row.who }}\", times: \"${{ row.times }}\", dir: \"${{ work_dir }}/${{ row.who }}\"}\n";
    let reading = read(text);
    assert_eq!(reading.problems, []);
    let names: Vec<&str> = reading.suite.cases.iter().map(|case| &*case.name).collect();
    assert_eq!(names, ["greets [Ann]", "greets [Bob]"]);
    let inputs: Vec<String> = reading.suite.cases[0].inputs.iter().map(|input| format!("{:?}", input.value)).collect();
    assert!(inputs[0].contains("\"Ann\"") && inputs[1].contains("Number(2.0)") && inputs[2].contains("${{ work_dir }}/Ann"), "{inputs:#?}");
    assert_eq!(reading.suite.cases[1].place.line, 5);
}

#[test]
fn a_fake_is_named_by_its_step_or_by_its_reference() {
    let text =
        "cases:\n  - name: a\n    fakes:\n      build/link: {outputs: {path: x}}\n      ./notify: {exit: 3}\n      builtin://docker:\n";
    let reading = read(text);
    assert_eq!(reading.problems, []);
    let fakes = &reading.suite.cases[0].fakes;
    assert!(matches!(&fakes[0].of, Target::Step(path) if path.len() == 2));
    assert!(matches!(&fakes[1].of, Target::Reference(crate::reference::StepReference::Local(_))) && fakes[1].exit == 3);
    assert!(matches!(&fakes[2].of, Target::Reference(crate::reference::StepReference::Builtin { .. })));
}

#[test]
fn defaults_are_taken_where_a_case_says_nothing() {
    let text = "defaults: {env: {A: '1', B: '2'}, stubs: {docker: }, timeout: 2s}\ncases:\n  - {name: a, env: {B: '3'}}\n  - {name: b, stubs: {docker: {exit: 1}}, timeout: 500ms}\n";
    let reading = read(text);
    assert_eq!(reading.problems, []);
    let [first, second] = &reading.suite.cases[..] else { panic!("two cases") };
    assert_eq!(first.env.iter().map(|given| given.value.source()).collect::<Vec<_>>(), ["3", "1"]);
    assert!(first.stubs[0].optional && !second.stubs[0].optional && second.stubs[0].answers[0].exit == 1);
    assert_eq!((first.timeout, second.timeout), (Some(std::time::Duration::from_secs(2)), Some(std::time::Duration::from_millis(500))));
}

#[test]
fn what_is_wrong_in_five_places_is_told_at_once() {
    let text = "cases:\n  - name: a\n    inptus: {who: x}\n    timeout: 5 minutes\n  - expect: {exit: many}\n  - name: c\n    expect:\n      steps: {build: done}\n      files: {../x: y}\n      that: outputs. > 1\n  - {name: a}\n  - {name: r, inputs: {x: \"${{ row.x }}\"}}\n";
    insta::assert_snapshot!(shown(text).join("\n"), @r"
    line 3, column 5: unknown key `inptus` in a case; did you mean `inputs`?
    line 4, column 14: `5 minutes` is no length of time; write `500ms`, `10s` or `2m`
    line 5, column 5: a case has a `name`; say what it shows: `- name: it greets the world`
    line 5, column 20: `exit` is a whole number from 0 to 255, not `many`; -
    line 8, column 22: `done` is no status; write `success`, `failure` or `skipped`
    line 9, column 15: `../x` leads out of the work directory; -
    line 10, column 13: `outputs. > 1` is no expression: expected a name, found `>`; -
    line 11, column 5: two cases have the name `a`; names tell cases apart: in reports, and in `--filter`
    line 12, column 27: there is no row: the case has no `table`; add `table:` to the case
    ");
}

#[test]
fn a_file_without_a_case_says_so() {
    insta::assert_snapshot!(shown("").join("\n"), @"the text is empty, but a test has cases; write `cases:` and below it `- name: it works`");
    insta::assert_snapshot!(shown("cases: []\n").join("\n"), @"line 1, column 1: a test has cases; write `cases:` and below it `- name: it works`");
    assert_eq!(shown("cases: [").len(), 1);
}

#[test]
fn a_row_that_lacks_what_the_case_reads_is_named() {
    let shown = shown("cases:\n - name: t\n   table: [{a: 1}]\n   inputs: {x: \"${{ row.b }}\"}\n");
    assert!(shown.len() == 1 && shown[0].starts_with("line 4, column 16: row 1: "), "{shown:?}");
}
