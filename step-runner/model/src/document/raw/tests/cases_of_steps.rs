//! Table STP: definitions and the items of `run`.

use super::*;
use crate::document::Action;
use crate::reference::StepReference;

#[test]
fn stp_01_a_local_step_is_valid() {
    let reading = item("{name: s, step: ./here}");
    assert_valid(&reading);
    let document = reading.document.unwrap();
    assert!(matches!(sequence(&document).steps[0].action, Action::Reference(StepReference::Local(_))));
}

#[test]
fn stp_02_a_remote_step_is_valid() {
    assert_valid(&item("{name: s, step: host.example/o/p@v2}"));
}

#[test]
fn stp_04_a_git_reference_without_rev_is_refused() {
    assert_refused(&item("{name: s, step: {git: {url: host.example/p}}}"), "field rev in git: required");
}

#[test]
fn stp_05_a_git_reference_without_url_is_refused() {
    assert_refused(&item("{name: s, step: {git: {rev: v1}}}"), "field url in git: required");
}

#[test]
fn stp_07_a_git_reference_with_nothing_but_another_key_is_refused() {
    let reading = item("{name: s, step: {git: {extra: 1}}}");
    assert_refused(&reading, "field rev in git: required");
    assert_refused(&reading, "field url in git: required");
    assert!(shown(&reading.problems).contains("unknown key `extra` in `git`"));
}

#[test]
fn stp_08_a_script_is_valid() {
    let reading = item("{name: s, script: make}");
    assert_valid(&reading);
    let document = reading.document.unwrap();
    let Action::Script(script) = &sequence(&document).steps[0].action else { panic!("a script") };
    assert_eq!(script.source(), "make");
}

#[test]
fn stp_10_an_action_is_a_reference_to_the_runner_of_actions() {
    let reading = item("{name: s, action: owner/act@v3, inputs: {a: 1}}");
    assert_valid(&reading);
    let document = reading.document.unwrap();
    let step = &sequence(&document).steps[0];
    let Action::Reference(StepReference::Git(git)) = &step.action else { panic!("git") };
    assert_eq!((git.url.source(), &*git.revision), ("https://gitlab.com/components/action-runner", "main"));
    assert_eq!((&git.path, &git.file), (&vec![], &None));
    let names: Vec<_> = step.inputs.iter().map(|(name, _)| name.source()).collect();
    assert_eq!(names, ["action", "inputs"]);
}

#[test]
fn stp_11_an_exec_is_valid() {
    assert_valid(&definition_of("exec: {command: [prog]}"));
}

#[test]
fn stp_13_an_exec_with_an_empty_command_is_refused() {
    assert_refused(&definition_of("exec: {command: []}"), "minimum 1 items required");
    assert_refused(&definition_of("exec: {}"), "missing properties: 'command'");
}

#[test]
fn stp_14_an_exec_has_a_work_directory() {
    let reading = definition_of("exec: {command: [prog], work_dir: sub}");
    assert_valid(&reading);
    assert_eq!(exec(&reading.document.unwrap()).work_dir.as_ref().unwrap().source(), "sub");
}

#[test]
fn stp_16_script_and_action_exclude_each_other() {
    assert_refused(&item("{name: s, script: x, action: a@v1}"), "the `script` keyword cannot be used with the `action` keyword");
}

#[test]
fn stp_17_step_and_action_exclude_each_other() {
    assert_refused(&item("{name: s, step: ./a, action: a@v1}"), "the `action` keyword cannot be used with the `step` keyword");
}

#[test]
fn stp_19_step_and_run_exclude_each_other() {
    assert_refused(&item("{name: s, step: ./a, run: [{step: ./b}]}"), "a step of `run` cannot hold `run`");
    assert_refused(&definition_of("step: ./a\nrun: [{step: ./b}]"), "`step` is not allowed beside `run`");
}

#[test]
fn stp_20_script_and_exec_exclude_each_other() {
    assert_refused(&item("{name: s, script: x, exec: {command: [b]}}"), "a step of `run` cannot hold `exec`");
    assert_refused(&definition_of("script: x\nexec: {command: [b]}"), "`script` is not allowed beside `exec`");
}

#[test]
fn stp_22_action_and_exec_exclude_each_other() {
    assert_refused(&item("{name: s, action: a@v1, exec: {command: [b]}}"), "a step of `run` cannot hold `exec`");
}

#[test]
fn stp_23_action_and_run_exclude_each_other() {
    assert_refused(&item("{name: s, action: a@v1, run: [{step: ./b}]}"), "a step of `run` cannot hold `run`");
    assert_refused(&definition_of("action: a@v1\nrun: [{step: ./b}]"), "`action` is not allowed beside `run`");
}

#[test]
fn stp_25_an_item_of_run_is_one_thing_too() {
    let reading = item("{name: s, step: ./a, exec: {command: [b]}, run: [{step: ./b}]}");
    assert_refused(&reading, "a step of `run` cannot hold `exec`");
    assert_refused(&reading, "a step of `run` cannot hold `run`");
}

#[test]
fn stp_26_the_name_of_a_step_is_an_identifier() {
    assert_refused(&item("{name: has space, script: x}"), "the step name `has space` is not a name");
}

#[test]
fn stp_28_the_name_of_a_sequence_output_is_an_identifier() {
    assert_refused(&definition_of("run: [{name: s, script: x}]\noutputs: {bad key: 1}"), "additionalProperties 'bad key' not allowed");
}

#[test]
fn stp_29_an_oci_reference_is_valid() {
    let reading = item("{name: s, step: {oci: {registry: r.example, repository: g/i, tag: v1, dir: a/b, file: f.yml}}}");
    assert_valid(&reading);
}

#[test]
fn stp_31_an_oci_reference_with_the_old_url_is_refused() {
    let reading = item("{name: s, step: {oci: {url: r.example/g/i}}}");
    for key in ["tag", "registry", "repository"] {
        assert_refused(&reading, &format!("field {key} in oci: required"));
    }
    assert!(shown(&reading.problems).contains("`url` is now `registry` and `repository`"));
}

#[test]
fn stp_32_an_empty_reference_is_refused() {
    assert_refused(&item("{name: s, step: {}}"), "field git: or oci: required");
}
