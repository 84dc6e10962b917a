//! Cases of the original, end to end: RUN, RES and CLI of `tests/cases`.

use crate::bench::Bench;
use serde_json::{Value, json};

/// The result of a job, without the level that `run` puts around it.
fn result(bench: &Bench, arguments: &[&str], code: i32) -> (Value, String) {
    let arguments: Vec<&str> =
        ["run", "--level", "0.12", "--step-results-file", "r.json"].into_iter().chain(arguments.iter().copied()).collect();
    let finished = bench.run(&arguments).exits(code);
    let result = bench.json("r.json");
    assert_eq!(result["status"], if code == 0 { "success" } else { "failure" });
    (result["subStepResults"][0].clone(), finished.stderr + &finished.stdout)
}

fn job(bench: &Bench, definition: &str, code: i32) -> (Value, String) {
    bench.job(definition);
    result(bench, &["./job"], code)
}

/// The names of sub-results.
fn names(result: &Value) -> Vec<&str> {
    let steps = result["subStepResults"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().map(|step| step["step"]["name"].as_str().unwrap_or_default()).collect()
}

#[test]
fn run_01_greet_without_inputs() {
    let (result, _) = result(&Bench::with_greet(), &["./steps/greet"], 0);
    assert_eq!((&result["outputs"], &result["exports"]), (&json!({"name": "ann"}), &json!({"NAME": "ann"})));
}

#[test]
fn run_02_greet_with_a_name() {
    let (result, _) = result(&Bench::with_greet(), &["./steps/greet", "--inputs", "name=bo"], 0);
    assert_eq!((&result["outputs"], &result["exports"]), (&json!({"name": "bo"}), &json!({"NAME": "bo"})));
}

#[test]
fn run_04_only_exec_steps_have_a_line_and_structs_are_printed_as_compact_json() {
    let bench = Bench::with_greet();
    bench.file(
        "steps/both/step.yml",
        "spec: {outputs: {first: {type: string}, second: {type: string}}}\n---\nrun:\n  - {name: one, step: ../greet, inputs: {name: sam}}\n  - {name: two, step: ../greet, inputs: {name: kim, age: 2}}\noutputs: {first: \"${{ steps.one.outputs.name }}\", second: \"${{ steps.two.outputs.name }}\"}\n",
    );
    let job_text = "run:\n  - {name: alone, step: ../steps/greet}\n  - {name: both, step: ../steps/both}\n  - name: last\n    step: ../steps/greet\n    inputs:\n      likes: {chars: [\"${{ steps.both.outputs.first }}\", \"${{ steps.both.outputs.second }}\"]}\n";
    let (result, log) = job(&bench, job_text, 0);
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("Running step")).collect();
    assert_eq!(lines, ["Running step \"alone\"", "Running step \"one\"", "Running step \"two\"", "Running step \"last\""]);
    assert!(log.contains("ann is 1 (hungry: false) and likes {\"chars\":[\"sam\",\"kim\"]}"), "{log}");
    assert_eq!(names(&result), ["alone", "both", "last"]);
}

#[test]
fn run_05_an_output_is_the_input_of_a_later_step() {
    let job_text = "run:\n  - {name: a, step: ../steps/greet, inputs: {name: sam}}\n  - {name: b, step: ../steps/greet, inputs: {name: \"${{ steps.a.outputs.name }}\"}}\n";
    let (result, _) = job(&Bench::with_greet(), job_text, 0);
    assert_eq!(result["subStepResults"][1]["outputs"], json!({"name": "sam"}));
}

#[test]
fn run_07_a_step_inside_an_earlier_sequence_is_not_visible() {
    let bench = Bench::with_greet();
    bench.file("steps/outer/step.yml", "{}\n---\nrun:\n  - {name: inner, step: ../greet}\n");
    let job_text = "run:\n  - {name: a, step: ../steps/outer}\n  - {name: b, step: ../steps/greet, inputs: {name: \"${{ steps.inner.outputs.name }}\"}}\n";
    bench.job(job_text);
    let finished = bench.run(&["run", "--level", "0.12", "./job"]).exits(3);
    finished.says("\nerror: step \"b\": failed to load: expand input \"name\": steps.inner.outputs.name: the \"inner\" was not found\n");
}

#[test]
fn run_08_a_sequence_has_outputs() {
    let bench = Bench::with_greet();
    bench.file("job/step.yml", "spec: {outputs: {n: {type: string}}}\n---\nrun: [{name: s, script: \"true\"}]\noutputs: {n: Foo}\n");
    let (result, _) = result(&bench, &["./job"], 0);
    assert_eq!(result["outputs"], json!({"n": "Foo"}));
}

#[test]
fn run_10_a_delegate_of_a_delegate_gives_the_innermost_outputs() {
    let bench = Bench::with_greet();
    let delegating = |step: &str| format!("spec: {{outputs: delegate}}\n---\nrun:\n  - {{name: inner, step: {step}}}\ndelegate: inner\n");
    bench.file("steps/one/step.yml", delegating("../greet"));
    bench.file("job/step.yml", delegating("../steps/one"));
    let (result, _) = result(&bench, &["./job"], 0);
    assert_eq!(result["outputs"], json!({"name": "ann"}));
}

#[test]
fn run_11_a_script_is_a_step() {
    let (_, log) = job(&Bench::new(), "run: [{name: s, script: echo hi}]\n", 0);
    assert!(log.contains("\nhi\n") || log.starts_with("hi\n"), "{log}");
}

#[test]
fn run_13_an_exported_variable_may_name_a_step() {
    let bench = Bench::with_greet();
    bench.file(
        "steps/export/step.yml",
        "{}\n---\nexec: {command: [sh, -c, \"echo '{\\\"name\\\":\\\"REF\\\",\\\"value\\\":\\\"../steps/greet\\\"}' >${{ export_file }}\"]}\n",
    );
    let job_text = "run:\n  - {name: one, step: ../steps/export}\n  - {name: two, step: \"${{ env.REF }}\"}\n";
    let (result, log) = job(&bench, job_text, 0);
    assert!(log.contains("ann is 1"), "{log}");
    assert_eq!(result["subStepResults"][1]["outputs"], json!({"name": "ann"}));
}

#[test]
fn run_14_outputs_have_the_declared_type() {
    for (kind, written, expected) in
        [("string", "\\\"x\\\"", json!("x")), ("number", "1.5e3", json!(1500.0)), ("boolean", "true", json!(true))]
    {
        let bench = Bench::new();
        let command = format!("sh, -c, \"echo '{{\\\"name\\\":\\\"o\\\",\\\"value\\\":{written}}}' >${{{{ output_file }}}}\"");
        bench.file("job/step.yml", format!("spec: {{outputs: {{o: {{type: {kind}}}}}}}\n---\nexec: {{command: [{command}]}}\n"));
        let (result, _) = result(&bench, &["./job"], 0);
        let output = &result["outputs"]["o"];
        assert!(*output == expected || output.as_f64() == expected.as_f64() && output.is_number(), "{kind}: {output}");
    }
}

#[test]
fn run_16_a_sequence_that_succeeds_has_a_result_of_its_step() {
    let (result, _) = job(&Bench::new(), "run: [{name: s, script: \"true\"}]\n", 0);
    assert_eq!((&result["status"], names(&result)), (&json!("success"), vec!["s"]));
    assert_eq!(result["subStepResults"][0]["status"], "success");
}

#[test]
fn run_17_a_sequence_passes_a_failure_on() {
    let (result, log) = job(&Bench::new(), "run: [{name: s, script: exit 4}, {name: never, script: \"true\"}]\n", 1);
    assert!(log.contains("error: step \"s\": exec: exit status 4\n"), "{log}");
    assert_eq!((&result["status"], names(&result)), (&json!("failure"), vec!["s"]));
    assert_eq!(result["subStepResults"][0]["execResult"]["exitCode"], 4);
}

#[test]
fn run_19_an_undeclared_input_is_refused() {
    let bench = Bench::with_greet();
    bench.job("run: [{name: s, step: ../steps/greet, inputs: {x: 1}}]\n");
    bench.run(&["run", "./job"]).exits(3).says("step does not accept input with name \"x\"").says("{name: s, step:");
}

#[test]
fn run_22_a_log_that_cannot_be_written_is_told() {
    let bench = Bench::with_greet();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let output = bench.command(&["run", "./steps/greet"]).stdout(full).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.to_lowercase().contains("writing to stdout: no space left on device"), "{said}");
}

#[test]
fn run_23_a_required_input_must_be_given() {
    let bench = Bench::new();
    bench.file("need/step.yml", "spec: {inputs: {x: {type: string}}}\n---\nexec: {command: [echo]}\n");
    bench.job("run: [{name: s, step: ../need}]\n");
    bench.run(&["run", "./job"]).exits(3).says("input \"x\" required, but not defined").says("{name: s, step:");
    bench.run(&["run", "./need"]).exits(3).says("input `x` is required, but not given").says("hint: `--input x=...`, a string");
}

#[test]
fn run_25_a_delegate_must_be_a_step() {
    let bench = Bench::new();
    bench.file("job/step.yml", "spec: {outputs: delegate}\n---\nrun: [{name: s, script: \"true\"}]\ndelegate: x\n");
    let finished = bench.run(&["run", "--level", "0.12", "./job"]).exits(3);
    finished.says("\nerror: outputs: delegate: could not find step with name \"x\"\n");
}

#[test]
fn run_26_a_command_that_is_not_there_is_told() {
    let bench = Bench::new();
    bench.job("exec: {command: [nope-nope]}\n");
    let (result, log) = result(&bench, &["./job"], 1);
    assert!(log.contains("exec: exec: \"nope-nope\": executable file not found in $PATH"), "{log}");
    assert_eq!(result["execResult"]["exitCode"], -1);
}

#[test]
fn run_28_a_text_for_a_number_is_warned_of_and_refused_when_strict() {
    let bench = Bench::with_greet();
    bench.job("run: [{name: s, step: ../steps/greet, inputs: {age: old}}]\n");
    bench.run(&["run", "./job"]).exits(0).says("warning").prints("ann is old");
    bench.run(&["run", "./job", "--strict"]).exits(3);
}

#[test]
fn res_05_without_a_name_the_report_is_step_results_json() {
    let bench = Bench::with_greet();
    bench.run(&["run", "./steps/greet", "--write-steps-results"]).exits(0);
    assert_eq!(bench.json("step-results.json")["status"], "success");
    bench.run(&["run", "./steps/greet", "--write-steps-results", "--step-results-format", "prototext"]).exits(0);
    let text = std::fs::read_to_string(bench.path("step-results.txtpb")).expect("a file");
    assert!(text.contains("status: success"), "{text}");
    let mode = std::os::unix::fs::MetadataExt::mode(&bench.path("step-results.json").metadata().expect("a file"));
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn cli_07_inputs_are_read_as_yaml() {
    let bench = Bench::new();
    bench.file("exit/step.yml", "spec: {inputs: {code: {type: number}}}\n---\nexec: {command: [sh, -c, \"exit ${{ inputs.code }}\"]}\n");
    let (result, _) = result(&bench, &["step: ./exit", "--inputs", "code=0"], 0);
    assert_eq!(result["step"]["inputs"]["code"].as_f64(), Some(0.0), "{result}");
}

#[test]
fn cli_08_a_failed_step_is_an_error_and_a_report() {
    let bench = Bench::new();
    bench.file("exit/step.yml", "spec: {inputs: {code: {type: number}}}\n---\nexec: {command: [sh, -c, \"exit ${{ inputs.code }}\"]}\n");
    let (result, log) = result(&bench, &["exit", "--inputs", "code=99"], 1);
    assert!(log.contains("exec: exit status 99"), "{log}");
    assert_eq!(result["execResult"]["exitCode"], 99);
}
