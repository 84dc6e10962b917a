//! README and the guides are executed: their `console` blocks, in order, in one shell per document, in a copy of the repository.

use ci_tests::docker::Engine;
use ci_tests::document::{self, Command};
use ci_tests::program::Finished;
use ci_tests::repository;
use ci_tests::workshop::{Ends, Workshop};
use std::time::Duration;

#[test]
fn every_command_of_the_readme_prints_what_it_shows() {
    execute("README.md");
}

#[test]
fn every_command_of_the_guide_why_did_my_job_fail_prints_what_it_shows() {
    execute("docs/guide/why-did-my-job-fail.md");
}

#[test]
fn every_command_of_the_guide_testing_a_step_prints_what_it_shows() {
    execute("docs/guide/testing-a-step.md");
}

#[test]
fn every_command_of_the_guide_from_gitlabs_runner_prints_what_it_shows() {
    execute("docs/guide/from-gitlab-runner.md");
}

#[test]
fn the_steps_of_the_examples_pass_their_tests_and_every_mutant_is_noticed() {
    let workshop = copy_of_the_repository();
    let tested = workshop.step_runner(&["test", "examples", "--mutate", "--quiet"]).ends(0);
    assert_eq!(tested.stdout().matches("mutants of").count(), 4, "{tested}");
}

#[test]
fn every_flag_of_test_stands_in_its_reference() {
    let help = Workshop::new().step_runner(&["test", "--help"]).ends(0).stdout();
    let reference = repository::read("docs/reference/testing.md");
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    let flags = flags.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
    let missing: Vec<&str> = flags.filter(|flag| !matches!(*flag, "--help" | "--color") && !reference.contains(flag)).collect();
    assert!(missing.is_empty(), "docs/reference/testing.md does not name {missing:?}");
}

#[test]
fn every_command_of_the_guide_containers_prints_what_it_shows() {
    let Some(engine) = Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let agents = engine.agents();
    execute_with("docs/guide/containers.md", &[("DOCKER_HOST", &engine.host), ("STEP_RUNNER_AGENTS", &agents.to_string_lossy())]);
}

/// Whoever adds a document with commands adds a test for it.
#[test]
fn no_document_has_commands_that_nobody_runs() {
    let executed = [
        "README.md",
        "docs/guide/containers.md",
        "docs/guide/from-gitlab-runner.md",
        "docs/guide/testing-a-step.md",
        "docs/guide/why-did-my-job-fail.md",
    ];
    let forgotten: Vec<String> = repository::files_ending_in(&[".md"])
        .into_iter()
        .filter(|file| !document::commands(&file.text).is_empty() && !executed.contains(&file.path.as_str()))
        .map(|file| file.path)
        .collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

#[test]
fn every_flag_and_exit_code_of_run_stands_in_its_reference() {
    let workshop = Workshop::new();
    let help = workshop.step_runner(&["run", "--help"]).ends(0).stdout();
    let reference = repository::read("docs/reference/run.md");
    let flags = help
        .split_whitespace()
        .filter(|word| word.starts_with("--"))
        .map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
    let is_there = |flag: &str| {
        reference.contains(flag)
            || (flag.starts_with("--git-") && reference.contains("--git-*"))
            || (flag.starts_with("--oci-") && reference.contains("--oci-*"))
    };
    let missing: Vec<&str> = flags.filter(|flag| *flag != "--help" && !is_there(flag)).collect();
    assert!(missing.is_empty(), "docs/reference/run.md does not name {missing:?}");
    for code in ["0", "1", "2", "3", "4", "70", "124"] {
        assert!(help.contains(&format!("{code} ")) && reference.contains(&format!("| {code} |")), "exit code {code}");
    }
}

#[test]
fn every_definition_that_a_guide_shows_is_read_without_a_problem() {
    let guide = repository::read("docs/guide/writing-a-step.md");
    let definitions: Vec<&str> =
        guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).filter(|text| text.contains("\n---\n")).collect();
    assert!(definitions.len() >= 2, "the guide shows {} definitions", definitions.len());
    for text in definitions {
        let reading = step_model::document::raw::read(text, "func.yml");
        assert!(reading.document.is_some() && reading.problems.is_empty(), "{:?}\n{text}", reading.problems);
    }
}

#[test]
fn every_field_of_ours_stands_in_the_reference_of_the_result() {
    let reference = repository::read("docs/reference/result.md");
    let proto = repository::files_ending_in(&[".proto"])
        .into_iter()
        .map(|file| file.text)
        .find(|text| text.contains("message StepResult {"))
        .expect("the message");
    let message = proto.split("message StepResult {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("its fields");
    let mut found = 0;
    for line in message.lines() {
        let Some((field, number)) = line.trim().trim_end_matches(';').split_once(" = ") else { continue };
        if number.parse::<u32>().is_ok_and(|number| number >= 1000) {
            found += 1;
            let name = field.split_whitespace().last().expect("a field has a name");
            assert!(reference.contains(number), "field {number}, {name}, is not in docs/reference/result.md");
        }
    }
    assert!(found >= 9, "{found} fields were found");
}

fn execute(name: &str) {
    execute_with(name, &[]);
}

fn execute_with(name: &str, env: &[(&str, &str)]) {
    let workshop = copy_of_the_repository();
    let commands: Vec<Command> =
        document::commands(&repository::read(name)).into_iter().filter(|command| !builds_everything(&command.command)).collect();
    assert!(!commands.is_empty(), "{name} has no commands");
    let shell = env.iter().fold(workshop.shell(&script(&commands)), |shell, (key, value)| shell.env(key, value));
    let finished = shell.limit(Duration::from_secs(300)).ends(0);
    let printed = printed_by_each(&finished);
    let mut wrong = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let printed = printed.get(index).cloned().unwrap_or_default();
        if let Err(difference) = command.compare(&printed) {
            wrong.push(format!("{name}:{}: $ {}\n{difference}\n--- printed\n{printed}", command.line, command.command));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// `./test` would run this test, and the fetching of a clone is nothing to test here.
fn builds_everything(command: &str) -> bool {
    command == "./test" || command.starts_with("git clone")
}

/// The document's commands as one script: each prints a mark before it, standard error goes where standard output goes, and `$?` is kept for the next.
fn script(commands: &[Command]) -> String {
    let mut script = "exec 2>&1\n".to_owned();
    for command in commands {
        let command = command.as_script().replace("cargo run --release --package step-runner --", "step-runner");
        let command = command.replace("cargo run --release --package runner-manager --", "runner-core");
        script += &format!("last=$?; echo '{MARK}'; (exit $last)\n{command}\n");
    }
    script + "exit 0\n"
}

const MARK: &str = "=== the next command ===";

fn printed_by_each(finished: &Finished) -> Vec<String> {
    finished.stdout().split(MARK).skip(1).map(|text| text.strip_prefix('\n').unwrap_or(text).to_owned()).collect()
}

/// Documents run in a copy, since their commands write files. Without a repository, a work tree has no commit, as in an archive of the sources.
fn copy_of_the_repository() -> Workshop {
    let workshop = Workshop::new();
    for file in repository::files_ending_in(&["README.md", ".yml", ".json", ".toml", ".c", ".h", ".sh"]) {
        if file.path == "README.md" || file.path.starts_with("examples/") {
            workshop.file(&file.path, file.text);
        }
    }
    workshop
}
