use super::*;
use crate::command_line::{Command, CommandLine};
use clap::Parser as _;

fn typed(words: &[&str]) -> RunArguments {
    let line = ["step-runner", "run"].iter().chain(words);
    match CommandLine::try_parse_from(line).expect("a command line").command {
        Command::Run(arguments) => *arguments,
        other => panic!("not `run` but {other:?}"),
    }
}

fn settings(words: &[&str]) -> Settings {
    Settings::read(&typed(words)).expect("no problem")
}

fn refused(words: &[&str]) -> Vec<String> {
    let stop = Settings::read(&typed(words)).expect_err("a problem");
    assert_eq!(stop.exit, Exit::Usage);
    stop.problems.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn an_argument_is_taken_by_its_beginning() {
    assert_eq!(settings(&["./greet"]).what, What::Named("./greet".into()));
    assert_eq!(settings(&["-"]).what, What::StandardInput);
    assert_eq!(settings(&["step: ./greet"]).what, What::Invocation("step: ./greet".into()));
    assert_eq!(settings(&["\nfunc: ./greet"]).what, What::Invocation("\nfunc: ./greet".into()));
    let job = What::JobOf { file: ".gitlab-ci.yml".into(), job: "test".into() };
    assert_eq!(settings(&[".gitlab-ci.yml", "test"]).what, job);
}

#[test]
fn the_flags_of_the_original_name_a_step() {
    let git = What::Git { url: "https://h/p.git".into(), revision: "main".into(), dir: String::new() };
    assert_eq!(settings(&["--git-url", "https://h/p.git", "--git-rev", "main"]).what, git);
    let oci = What::Oci { registry: "r".into(), repository: "p".into(), tag: "1".into(), dir: "d".into(), file: "f.yml".into() };
    let words = ["--oci-registry=r", "--oci-repository=p", "--oci-tag=1", "--oci-dir=d", "--oci-filename=f.yml"];
    assert_eq!(settings(&words).what, oci);
    assert_eq!(settings(&["--text-proto-step-file", "x"]).what, What::DefinitionText("x".into()));
}

#[test]
fn without_a_step_there_is_nothing_to_run() {
    assert_eq!(refused(&[]), ["no step specified"]);
    assert_eq!(refused(&[""]), ["no step specified"]);
    assert_eq!(refused(&["--git-url", "x"]), ["a step in Git needs both `--git-url` and `--git-rev`"]);
    assert_eq!(refused(&["./x", "--git-url", "x"]), ["more than one step specified"]);
    assert_eq!(refused(&["-", "job"]), ["a job can only be named for a file: `job`"]);
}

#[test]
fn the_last_of_a_name_wins() {
    let settings =
        settings(&["x", "--inputs", "a=1,b=2", "--input", "a=3", "--input", "a=4", "--env", "E=1", "--env", "E=2", "--job", "J=x,y"]);
    assert_eq!(settings.inputs, [("b".into(), GivenInput::Yaml("2".into())), ("a".into(), GivenInput::Plain("4".into()))]);
    assert_eq!(settings.env, [("E".into(), "2".into())]);
    assert_eq!(settings.variables, [("J".into(), "x,y".into())]);
}

#[test]
fn every_problem_is_told_at_once() {
    let words = [
        "--input",
        "a",
        "--env",
        "=x",
        "--timeout",
        "90",
        "--grace",
        "soon",
        "--step-results-format",
        "xml",
        "--shell",
        "--output",
        "json",
    ];
    assert_eq!(
        refused(&words),
        [
            "no step specified",
            "`--input`: `a` must be formatted as NAME=VALUE",
            "`--env`: `=x` has no name before the `=`",
            "`--timeout`: `90` has no unit",
            "`--grace`: `soon` is not a length of time",
            "unsupported format: xml",
            "`--shell` and `--output json` exclude each other",
        ]
    );
    assert_eq!(refused(&["x", "--timeout", "0s"]), ["`--timeout` must be longer than zero"]);
}

#[test]
fn their_results_leave_our_fields_out() {
    let file = |path: &str, format, our_fields| ResultFile { path: path.into(), format, our_fields };
    assert_eq!(settings(&["x", "--result", "r.json"]).result_files, [file("r.json", ResultFormat::Json, true)]);
    assert_eq!(settings(&["x", "--write-steps-results"]).result_files, [file("step-results.json", ResultFormat::Json, false)]);
    let text = ["x", "--write-steps-results", "--step-results-format", "prototext"];
    assert_eq!(settings(&text).result_files, [file("step-results.txtpb", ResultFormat::Text, false)]);
    assert_eq!(settings(&["x", "--step-results-file", "f"]).result_files, [file("f", ResultFormat::Json, false)]);
    assert_eq!(settings(&["x", "--step-results-format", "json"]).result_files, []);
}

#[test]
fn the_defaults_are_those_of_the_current_release() {
    let settings = settings(&["x"]);
    assert_eq!((settings.level, settings.grace_period, settings.timeout), (Level::V0_44, Duration::from_secs(30), None));
    assert_eq!(self::settings(&["x", "--level", "0.12", "--grace", "2s", "--timeout", "5m"]).level, Level::V0_12);
}
