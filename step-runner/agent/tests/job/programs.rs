//! Steps that are programs: builtin ones, and those that get steps handed over (docs/reference/step-programs.md).

use crate::world::Job;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use step_agent::handover::{self, Inside};
use step_client::wire::result::{clear_json, tree_message};
use step_model::builtin::{Builtin, Builtins};
use step_model::plan::Places;
use step_model::result::{Status, StepId};
use step_model::value::Value;

const DEFINITION: &str = "spec:\n  inputs:\n    who: {type: string}\n    count: {type: number, default: 2}\n    token: {type: string, sensitive: true, default: s3cret-token}\n  outputs:\n    said: {type: string}\n---\nexec: {command: [greet]}\n";

/// A job of one step that calls a builtin whose command is this script.
fn builtin_job(script: &str) -> Job {
    let definition = DEFINITION.to_owned();
    Job::new("run:\n- {name: a, step: \"builtin://greet\", inputs: {who: world}}\n").changed(|job| {
        let command = vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()];
        job.builtins = Builtins::new([Builtin { name: "greet".into(), definition, command }]).unwrap();
    })
}

#[test]
fn a_builtin_step_finds_its_inputs_in_a_file_and_writes_its_outputs_into_one() {
    let script = "cat $STEP_RUNNER_INPUTS; stat -c ' %a' $STEP_RUNNER_INPUTS; echo handover=${STEP_RUNNER_HANDOVER-none}; \
                  echo '{\"name\":\"said\",\"value\":\"hi\"}' > $STEP_RUNNER_OUTPUT_FILE; \
                  echo '{\"name\":\"GREETED\",\"value\":true}' > $STEP_RUNNER_EXPORT_FILE";
    let outcome = builtin_job(script).run();
    assert_eq!((outcome.status, &*outcome.message), (Status::Success, ""));
    let expected = "{\"count\":2,\"token\":\"[MASKED]\",\"who\":\"world\"} 600\nhandover=none\n";
    assert_eq!(outcome.text(), expected);
    assert_eq!(outcome.output_value("a", "said"), Some("hi".into()));
}

#[test]
fn the_files_of_a_program_are_gone_when_it_has_ended_and_its_clean_up_commands_were_run() {
    let job = builtin_job("echo '{\"argv\":[\"false\"]}' >> $STEP_RUNNER_CLEANUP; exit 3");
    let outcome = job.run();
    assert_eq!(outcome.log.said.last().unwrap(), "warning: the clean-up `false` failed: exit status: 1");
    assert_eq!(outcome.message, "step \"a\": exec: exit status 3");
    let left: std::collections::BTreeSet<_> = std::fs::read_dir(job.files_dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(Vec::from_iter(left), ["cleaned", "cleanup"]);
    let cleanup = job.files_dir().join("cleanup");
    assert_eq!(cleanup.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(cleanup).unwrap(), "{\"argv\":[\"false\"]}\n");
}

#[test]
fn a_builtin_step_that_this_program_does_not_have_is_refused_with_those_that_it_has() {
    let job = builtin_job("true").changed(|job| job.builtins = Builtins::default());
    let problems = job.refused();
    assert_eq!(
        problems,
        [
            "step \"a\": failed to load: there is no builtin step `greet` in this program; this program has only `script`, `script_legacy`; `step-runner` has more"
        ]
    );
}

const OVER: &str = "spec:\n  inputs:\n    inputs: {type: struct, default: {}}\n    run: {type: array, template: true}\n    outputs: {type: struct, template: true, default: {}}\n  outputs: delegate\n---\nexec: {command: [over]}\n";

/// A job that hands two steps over to a program that is this script.
fn handover_job(script: &str) -> Job {
    let run = "run:\n- name: over\n  func: builtin://over\n  inputs:\n    inputs: {who: \"${{ vars.WHO }}\"}\n    run:\n    - {name: say, func: ./say, inputs: {who: \"${{ inputs.who }}\"}}\n    - {name: fail, script: \"cat $KEY; exit ${{ inputs.code || 0 }}\", env: {KEY: \"${{ vars.KEY }}\"}}\n    outputs: {said: \"${{ steps.say.outputs.said }}\"}\n";
    let say = "spec: {inputs: {who: {type: string}}, outputs: {said: {type: string}}}\n---\nexec: {command: [sh, -c, 'echo hello $0; echo \"{\\\"name\\\":\\\"said\\\",\\\"value\\\":\\\"hello $0\\\"}\" > $1', \"${{ inputs.who }}\", \"${{ output_file }}\"]}\n";
    Job::new(run).with_file("say/func.yml", say).changed(|job| {
        let command = vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()];
        job.builtins = Builtins::new([Builtin { name: "over".into(), definition: OVER.into(), command }]).unwrap();
        job.variables = [("WHO", Value::from("the-masked-world").sensitive()), ("KEY", "/nowhere/KEY".into())]
            .map(|(name, value)| (name.into(), value))
            .into();
        job.file_variables = [("KEY".into(), "what the file holds\n".into())].into();
    })
}

/// What a second agent makes of the bytes that were handed over: its result, as the program would write it.
fn run_inside(job: &Job, bytes: &[u8]) -> (String, String) {
    let plan = step_client::wire::plan::decode(bytes).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| -> Arc<str> {
        let path = directory.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().into()
    };
    let places = Places { work_dir: path("work"), build_dir: path("work"), files_dir: path("files") };
    // The workspace is there by another path, as it may be in a container.
    let definition = std::fs::read(job.work_dir.join("say/func.yml")).unwrap();
    std::fs::create_dir(Path::new(&*path("work")).join("say")).unwrap();
    std::fs::write(Path::new(&*path("work")).join("say/func.yml"), definition).unwrap();
    let inside = Inside { places, variables_dir: PathBuf::from(&*path("variables")), process_env: job.env.clone() };
    let (plan, secrets) = handover::take_in(plan, inside).unwrap();
    let outcome = Job::new("run: [{name: unused, script: x}]").changed(|job| job.settings.secrets = secrets).run_plan(plan);
    let tree = tree_message(&outcome.ended.run.result(), StepId::ROOT);
    (outcome.text(), clear_json(tree).to_string())
}

#[test]
fn steps_that_are_handed_over_run_elsewhere_and_their_result_is_the_steps_own() {
    // The program is an agent in another world, acted in two parts: first it keeps what it is given, then it has the result.
    let kept = tempfile::tempdir().unwrap();
    let keep = format!(
        "cp $STEP_RUNNER_HANDOVER {0}/plan; cp $STEP_RUNNER_INPUTS {0}/inputs; echo '{{}}' > $STEP_RUNNER_OUTPUT_FILE",
        kept.path().display()
    );
    let job = handover_job(&keep);
    job.run();
    assert_eq!(std::fs::read_to_string(kept.path().join("inputs")).unwrap(), "{\"inputs\":{\"who\":\"the-masked-world\"}}");
    let (log, result) = run_inside(&job, &std::fs::read(kept.path().join("plan")).unwrap());
    assert_eq!(log, "hello [MASKED]\n[MASKED]\n", "the inner agent masks what was masked outside");
    std::fs::write(kept.path().join("result"), result).unwrap();
    let outcome = handover_job(&format!("cat {}/result > $STEP_RUNNER_OUTPUT_FILE; exit 0", kept.path().display())).run();
    assert_eq!((outcome.status, &*outcome.message), (Status::Success, ""));
    assert_eq!(outcome.output_value("over", "said"), Some("hello the-masked-world".into()));
    assert_eq!(outcome.log.order, ["start ", "start over", "start say", "end say", "start fail", "end fail", "end over", "end "]);
    let say = &outcome.log.ended[0].0;
    assert_eq!((&*say.name, say.depth, say.exit_code, say.start.is_some()), ("say", 2, Some(0), true));
}

#[test]
fn a_program_whose_result_is_wrong_says_where() {
    let said = |result: &str| handover_job(&format!("echo '{result}' > $STEP_RUNNER_OUTPUT_FILE")).run().message;
    let prefix = "step \"over\": output file: delegate: reading output_file as a step result: ";
    let reason = |result: &str| said(result).strip_prefix(prefix).map(str::to_owned).unwrap_or_else(|| said(result));
    assert_eq!(reason("{\"status\":\"fine\"}"), "its status is none of success, failure and cancelled");
    let nested = reason("{\"status\":\"success\",\"subStepResults\":[{\"status\":true}]}");
    assert!(nested.starts_with("`result.subStepResults[0]` is not what a result has there: "), "{nested}");
    assert_eq!(reason("oops"), "expected value at column 1");
    assert_eq!(reason("{\"status\":\"failure\"}"), "step \"over\": its result says that it failed, and not why");
}
