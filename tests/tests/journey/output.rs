//! What a person sees, and what a program sees: where each stream goes, and what is in it.

use ci_tests::workshop::{Ends, Workshop};
use serde_json::Value;

const NESTED: &str = "{}\n---\nrun:\n  - {name: outer, step: ../outer}\n  - {name: last, script: echo last}\n";
const OUTER: &str = "{}\n---\nrun:\n  - {name: inner, script: echo inner}\n";

fn nested() -> Workshop {
    let workshop = Workshop::new();
    workshop.file("outer/step.yml", OUTER);
    workshop.file("job/step.yml", NESTED);
    workshop
}

#[test]
fn standard_output_carries_what_the_steps_write_and_nothing_else() {
    let workshop = nested();
    let finished = workshop.step_runner(&["run", "./job"]).ends(0);
    assert_eq!(finished.stdout(), "inner\nlast\n");
    assert!(finished.stderr().contains("Running step"), "{finished}");
    assert!(!finished.stderr().contains('\u{1b}'), "colour without a terminal\n{finished}");
}

#[test]
fn the_level_decides_the_text() {
    let workshop = nested();
    workshop.step_runner(&["run", "./job", "--level", "0.12"]).ends(0).says("Running step \"inner\"");
    workshop.step_runner(&["run", "./job", "--level", "0.44"]).ends(0).says("Running step name=inner");
}

#[test]
fn quiet_says_nothing_but_errors() {
    let workshop = nested();
    let finished = workshop.step_runner(&["run", "./job", "--quiet"]).ends(0);
    assert_eq!((finished.stdout().as_str(), finished.stderr().as_str()), ("inner\nlast\n", ""));
    workshop.run_definition("{}\n---\nexec: {command: [sh, -c, exit 3]}\n", &["--quiet"]).ends(1).says("exit status 3");
}

#[test]
fn a_failure_shows_the_step_its_command_its_code_and_its_last_lines() {
    let workshop = Workshop::new();
    workshop.file("broken/step.yml", "{}\n---\nexec: {command: [sh, -c, \"echo the reason; exit 9\"]}\n");
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: fine, script: \"true\"}\n  - {name: breaks, step: ../broken}\n");
    workshop.step_runner(&["run", "./job"]).ends(1).says("breaks").says("exit status 9").says("the reason").says("sh -c");
}

#[test]
fn colour_follows_the_environment() {
    let workshop = nested();
    let escapes = |finished: &ci_tests::program::Finished| finished.stderr().contains('\u{1b}');
    assert!(escapes(&workshop.step_runner(&["run", "./job"]).env("CLICOLOR_FORCE", "1").env("TERM", "xterm").ends(0)));
    assert!(!escapes(&workshop.step_runner(&["run", "./job"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").ends(0)));
    assert!(escapes(&workshop.step_runner(&["run", "./job", "--color", "always"]).ends(0)));
}

#[test]
fn json_is_a_line_per_event_and_holds_the_output_with_its_stream() {
    let workshop = Workshop::new();
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: a, script: \"echo out; echo err >&2\"}\n");
    let finished = workshop.step_runner(&["run", "./job", "--output", "json"]).ends(0);
    let events: Vec<Value> = finished
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{finished}")))
        .collect();
    assert!(events.len() >= 3 && events.iter().all(Value::is_object), "{finished}");
    let text = finished.stdout();
    assert!(text.contains("out") && text.contains("err"), "{finished}");
    let streams = ["stdout", "stderr"];
    for stream in streams {
        assert!(
            events.iter().any(|event| event.as_object().is_some_and(|event| event.values().any(|value| value == stream))),
            "{stream}\n{finished}"
        );
    }
}

#[test]
fn json_also_tells_of_bad_input() {
    let workshop = Workshop::new();
    let finished = workshop.run_definition("{}\n---\nexec: {}\n", &["--output", "json"]).ends(3);
    for line in finished.stdout().lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}\n{finished}"));
    }
}

#[test]
fn check_reports_every_problem_of_every_file() {
    let workshop = Workshop::new();
    workshop.file("one/func.yml", "spec: {inputs: {a: {type: int}, b: {}}}\n---\nexec: {command: []}\n");
    workshop.file("two/func.yml", "{}\n---\nrun:\n  - {name: x, func: ./nope}\n  - {name: bad name, script: echo}\n");
    let finished = workshop.step_runner(&["check", "one", "two"]).ends(3);
    let all = finished.stdout() + &finished.stderr();
    for part in ["one/func.yml", "two/func.yml", "int", "bad name", "nope", "command"] {
        assert!(all.contains(part), "{part} is not named\n{all}");
    }
    let json = workshop.step_runner(&["check", "--output", "json", "one", "two"]).ends(3);
    for line in json.stdout().lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(value.is_object() || value.is_array());
    }
    workshop.file("good/func.yml", "{}\n---\nexec: {command: [echo]}\n");
    workshop.step_runner(&["check", "good"]).ends(0);
}

#[test]
fn show_prints_a_result_as_a_tree() {
    let workshop = nested();
    workshop.step_runner(&["run", "./job", "--result", "r.json"]).ends(0);
    let shown = workshop.step_runner(&["show", "r.json"]).ends(0).stdout();
    let at = |name: &str| shown.lines().position(|line| line.contains(name)).unwrap_or_else(|| panic!("{name} is not shown\n{shown}"));
    assert!(at("outer") < at("inner") && at("inner") < at("last"), "{shown}");
    workshop.file("broken.json", "{\"status\":");
    workshop.step_runner(&["show", "broken.json"]).ends(3).says("broken.json");
    workshop.step_runner(&["show", "missing.json"]).ends(3).says("missing.json");
}

#[test]
fn the_result_of_the_original_has_no_field_that_it_does_not_know() {
    let workshop = nested();
    workshop.step_runner(&["run", "./job", "--step-results-file", "theirs.json", "--result", "ours.json"]).ends(0);
    let known = ["step", "specDefinition", "status", "outputs", "exports", "env", "execResult", "subStepResults"];
    fn fields(node: &Value, found: &mut Vec<String>) {
        for (name, value) in node.as_object().into_iter().flatten() {
            found.push(name.clone());
            if name == "subStepResults" {
                value.as_array().into_iter().flatten().for_each(|child| fields(child, found));
            }
        }
    }
    let mut theirs = Vec::new();
    fields(&workshop.result("theirs.json"), &mut theirs);
    assert!(theirs.iter().all(|name| known.contains(&name.as_str())), "{theirs:?}");
    let mut ours = Vec::new();
    fields(&workshop.result("ours.json"), &mut ours);
    for name in ["startTime", "endTime", "digest", "usage"] {
        assert!(ours.iter().any(|field| field == name), "{name} is missing: {ours:?}");
    }
}

#[test]
fn a_local_step_records_its_commit_and_whether_it_was_changed() {
    let workshop = Workshop::new();
    workshop.file("inner/step.yml", "{}\n---\nexec: {command: [echo, hi]}\n");
    workshop.file("job/step.yml", "{}\n---\nrun:\n  - {name: inner, step: ../inner}\n");
    workshop
        .shell("git init -q . && git add job inner && git -c user.name=a -c user.email=a@b commit -qm a && git rev-parse HEAD >head")
        .finish();
    workshop.step_runner(&["run", "./job", "--result", "clean.json"]).ends(0);
    let clean = workshop.result("clean.json").to_string();
    assert!(clean.contains(workshop.read("head").trim()) && !clean.contains("\"dirty\":true"), "{clean}");
    workshop.file("inner/more", "changed");
    workshop.step_runner(&["run", "./job", "--result", "dirty.json"]).ends(0);
    let dirty = workshop.result("dirty.json").to_string();
    assert!(dirty.contains("\"dirty\":true"), "{dirty}");
}

#[test]
fn keep_leaves_the_files_and_says_where() {
    let workshop = nested();
    let finished = workshop.step_runner(&["run", "./job", "--keep"]).ends(0);
    let left = workshop.left_behind();
    assert!(!left.is_empty() && left.iter().any(|name| finished.stderr().contains(name.as_str())), "{left:?}\n{finished}");
}

#[test]
fn a_dry_run_prints_the_plan_and_runs_nothing() {
    let workshop = nested();
    let finished = workshop.step_runner(&["run", "./job", "--dry-run", "--env", "SECRET_NAME=secret-value"]).ends(0);
    let all = finished.stdout() + &finished.stderr();
    assert!(all.contains("outer") && all.contains("inner") && all.contains("SECRET_NAME") && !all.contains("secret-value"), "{all}");
    assert!(!all.contains("\ninner\nlast\n"), "{all}");
}
