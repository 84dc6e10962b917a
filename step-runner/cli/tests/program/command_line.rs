//! Commands, flags and exit codes.

use crate::bench::Bench;

#[test]
fn the_program_tells_its_version_and_what_it_can_do() {
    let bench = Bench::new();
    let version = bench.run(&["--version"]).exits(0).stdout;
    assert_eq!(version, format!("step-runner {}\n", env!("CARGO_PKG_VERSION")));
    let help = bench.run(&["--help"]).exits(0).stdout;
    for command in ["run", "check", "show", "schema", "completion", "man"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(command)), "{command}\n{help}");
    }
    bench.run(&[]).exits(2);
    bench.run(&["runn"]).exits(2).says("run");
}

#[test]
fn every_shell_has_a_completion_and_every_command_a_page() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        bench.run(&["completion", shell]).exits(0).prints("step-runner");
    }
    bench.run(&["man"]).exits(0).prints(".TH step-runner 1");
    bench.run(&["man", "run"]).exits(0).prints("pass\\-exit\\-code");
    bench.run(&["man", "nope"]).exits(2).says("there is no command `nope`");
}

#[test]
fn problems_of_usage_are_told_together() {
    let bench = Bench::new();
    let finished = bench.run(&["run", "./x", "--timeout", "soon", "--input", "a", "--step-results-format", "xml"]).exits(2);
    let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(
        errors,
        [
            "error: `--input`: `a` must be formatted as NAME=VALUE",
            "error: `--timeout`: `soon` is not a length of time",
            "error: unsupported format: xml"
        ]
    );
    bench.run(&["run", "./x", "-q", "-v"]).exits(2);
}

#[test]
fn the_own_code_of_a_step_is_passed_on_when_it_is_asked_for() {
    let bench = Bench::new();
    bench.job("run: [{name: a, script: exit 42}]\n");
    bench.run(&["run", "./job"]).exits(1);
    bench.run(&["run", "./job", "--pass-exit-code"]).exits(42);
}

#[test]
fn a_place_for_the_result_is_looked_for_before_the_first_step() {
    let bench = Bench::new();
    bench.job("exec: {command: [echo, ran]}\n");
    let finished = bench.run(&["run", "./job", "--result", "none/r.json"]).exits(70);
    assert_eq!(finished.stdout, "");
    assert!(finished.stderr.contains("error: could not write the result to `none/r.json`: no such file or directory"), "{finished:#?}");
    bench.run(&["run", "./job", "--result", "/dev/stdout", "-q"]).exits(0).prints("ran\n{\"step\":{");
}

#[test]
fn what_is_kept_is_named_and_the_rest_is_removed() {
    let bench = Bench::new();
    bench.job("exec: {command: [sh, -c, 'echo x >>${{ export_file }}; exit 1']}\n");
    let finished = bench.run(&["run", "./job", "--keep"]).exits(1);
    let kept = finished.stderr.lines().find_map(|line| line.strip_prefix("kept: ")).expect("a directory is named").to_owned();
    assert!(std::fs::read_dir(std::path::Path::new(&kept).join("files")).expect("the files").count() > 0);
    assert!(std::path::Path::new(&kept).join("journal").is_file());
    std::fs::remove_dir_all(&kept).expect("it can be removed");
    bench.run(&["run", "./job"]).exits(1);
    assert_eq!(std::fs::read_dir(bench.path("tmp")).expect("a directory").count(), 0);
}

#[test]
fn what_was_typed_cannot_write_to_the_terminal() {
    let finished = Bench::new().run(&["run", "./\u{1b}[31mx"]).exits(3);
    assert!(!finished.stderr.contains('\u{1b}') && finished.stderr.contains("\\u{1b}[31mx"), "{finished:#?}");
}
