//! Steps that are programs: builtin ones, and those that get steps handed over (docs/reference/step-programs.md).

use crate::world::Job;
use std::os::unix::fs::PermissionsExt as _;
use step_model::builtin::{Builtin, Builtins};
use step_model::result::Status;

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
