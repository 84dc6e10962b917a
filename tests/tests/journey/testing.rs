//! Steps are begun, tested and documented: `new`, `test`, `doc`.

use ci_tests::workshop::{Ends, Workshop};
use rustix::process::Signal;

const SEQUENCE: &str = "spec: {inputs: {tag: {type: string, default: app}}, outputs: {id: {type: string}}}\n---\nrun:\n  - {name: build, func: registry.example/build:1, inputs: {tag: \"${{ inputs.tag }}\"}}\n  - name: push\n    env: {TAG: \"${{ inputs.tag }}\"}\n    script: |\n      docker push \"$TAG\"\n      docker tag 'a b'\noutputs: {id: \"${{ steps.build.outputs.id }}\"}\n";

#[test]
fn a_step_that_was_just_begun_passes_check_and_its_test() {
    let workshop = Workshop::new();
    for kind in ["--exec", "--run", "--script"] {
        for dialect in ["func", "step"] {
            let name = format!("steps/{}{dialect}", &kind[2..]);
            assert_eq!(workshop.step_runner(&["new", &name, kind, "--dialect", dialect]).ends(0).stdout(), "");
            workshop.step_runner(&["check", "--strict", &name]).ends(0);
        }
    }
    workshop.step_runner(&["test"]).ends(0).prints("24 cases: 24 passed");
    let judged = workshop.step_runner(&["test", "--mutate", "--quiet"]).ends(0);
    assert!(!judged.stdout().contains("not noticed"), "{judged}");
    workshop.step_runner(&["fmt", "--check"]).ends(0);
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
    workshop.step_runner(&["new", "steps/execfunc", "--exec"]).ends(3).says("is there already");
    workshop.step_runner(&["new", "a b", "--exec"]).ends(2).says("is no name for a step");
}

#[test]
fn fakes_stand_for_steps_and_stubs_for_programs() {
    let workshop = Workshop::new();
    workshop.file("b/func.yml", SEQUENCE);
    workshop.file(
        "b/step_test.yml",
        "cases:\n  - name: it pushes\n    fakes: {build: {outputs: {id: \"x-${{ inputs.tag }}\"}, log: building, files: {a/b.txt: hi}, exports: {E: '1'}}}\n    stubs: {docker: [{args: push, stdout: \"pushed\\n\"}, {args: tag}]}\n    expect:\n      outputs: {id: x-app}\n      calls: [docker push app, [docker, tag, a b]]\n      called: {docker: 2, build: 1}\n      files: {a/b.txt: hi, none.txt: null}\n      exports: {E: '1'}\n      log: {equals: \"building\\npushed\", excludes: secret}\n      steps: {build: {inputs: {tag: app}}, push: {status: success, env: {TAG: app, E: '1'}}}\n      that: [outputs.id == \"x-app\", steps.push.exit == 0]\n",
    );
    workshop.step_runner(&["test", "b"]).ends(0).prints("1 case: 1 passed");
    workshop.step_runner(&["test", "b", "--hermetic"]).ends(1).prints("the case is hermetic, and step `push` would run");
}

#[test]
fn what_differs_is_shown_where_the_case_says_what_it_expects() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    workshop.file(
        "greet/step_test.yml",
        "cases:\n  - name: it greets\n    inputs: {who: Ann}\n    expect:\n      outputs: {greeting: hello Bob}\n",
    );
    let failed = workshop.step_runner(&["test", "greet"]).ends(1);
    let failed = failed.prints("greet/step_test.yml:5:27").prints(" - hello Bob").prints(" + hello Ann").prints("| hello Ann");
    failed.prints("1 case: 0 passed, 1 failed");
}

#[test]
fn five_mistakes_are_told_at_once_and_nothing_of_the_file_runs() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    workshop.file(
        "greet/step_test.yml",
        "cases:\n  - name: a\n    inputs: {hwo: Ann}\n    fakes: {nobody: {exit: 1}}\n    expect:\n      outputs: {greting: x}\n      steps: {build: skipped}\n      log: {matches: '(('}\n  - {name: b, timout: 1s}\n",
    );
    let refused = workshop.step_runner(&["test", "greet"]).ends(3);
    let refused = refused.prints("did you mean `who`?").prints("there is no step `nobody` to fake").prints("did you mean `greeting`?");
    let refused = refused.prints("there is no step `build`").prints("is no regular expression").prints("did you mean `timeout`?");
    refused.prints("step_test.yml:9:15").prints("0 cases: 0 passed, 1 file not run");
}

#[test]
fn a_fake_that_does_not_fit_and_one_that_is_never_reached_are_refused() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "outer", "--run"]).ends(0);
    workshop.file(
        "outer/step_test.yml",
        "cases:\n  - {name: a, fakes: {say: {outputs: {greeting: 1, more: x}}}}\n  - {name: b, fakes: {./say: {}}}\n",
    );
    let refused = workshop.step_runner(&["test", "outer"]).ends(3);
    let refused = refused
        .prints("gives `greeting` as number, the step declares string")
        .prints("gives an output `more`, which the step does not have");
    refused.prints("does not give the output `greeting`");
    workshop.file("outer/step_test.yml", "cases:\n  - {name: a, fakes: {say: {exit: 1}, report: }, expect: {exit: 1}}\n");
    workshop.step_runner(&["test", "outer"]).ends(1).prints("the fake `report` was never reached");
}

#[test]
fn a_case_that_does_not_end_is_ended_and_no_process_is_left() {
    let workshop = Workshop::new();
    workshop.file("c/func.yml", "{}\n---\nexec: {command: [sh, -c, \"setsid sleep 4711 & sleep 4711 & echo begun; sleep 4711\"]}\n");
    workshop.file(
        "c/step_test.yml",
        "cases:\n  - {name: it ends, timeout: 300ms}\n  - {name: it fails as meant, timeout: 100ms, expect: {failure: signal}}\n",
    );
    workshop
        .step_runner(&["test", "c"])
        .ends(1)
        .prints("did not end within its limit of 300ms")
        .prints("| begun")
        .prints("1 passed, 1 failed");
    let mark = workshop.dir().to_string_lossy().into_owned();
    assert!(!processes_with(&mark), "a process is left");
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
}

#[test]
fn ctrl_c_ends_the_cases_their_processes_and_the_command() {
    let workshop = Workshop::new();
    let begun = workshop.path("begun").display().to_string();
    workshop.file("c/func.yml", format!("{{}}\n---\nexec: {{command: [sh, -c, \"setsid sleep 4711 & touch {begun}; sleep 4711\"]}}\n"));
    workshop.file("c/step_test.yml", "cases:\n  - {name: it never ends, timeout: 10m}\n");
    let run = workshop.step_runner(&["test", "c"]).start();
    while !workshop.path("begun").exists() {
        std::thread::yield_now();
    }
    run.signal_group(Signal::INT);
    run.finish().exits(130);
    assert!(!processes_with(&workshop.dir().to_string_lossy()), "a process is left");
    assert!(workshop.left_behind().is_empty(), "{:?}", workshop.left_behind());
}

#[test]
fn watched_tests_run_again_when_a_file_changes_and_a_file_that_is_wrong_meanwhile_is_told() {
    let workshop = Workshop::new();
    workshop.file("g/func.yml", "{}\n---\nexec: {command: [echo, one]}\n");
    let cases = |log: &str| format!("cases:\n  - {{name: it tells, expect: {{log: {{contains: [{log}]}}}}}}\n");
    workshop.file("g/step_test.yml", cases("two"));
    // The report lies beside what is watched: it is no reason for another round.
    let mut run = workshop.step_runner(&["test", "g", "--watch", "--junit", "g/junit.xml"]).start();
    run.wait_for("1 failed");
    std::fs::remove_file(workshop.path("g/step_test.yml")).expect("it is there");
    run.wait_for("there is no `step_test.yml` below `g`");
    workshop.file("g/step_test.yml", cases("one"));
    run.wait_for("1 passed");
    run.signal_group(Signal::INT);
    let ended = run.finish().exits(130);
    let rounds = ended.stdout().matches("1 case").count();
    assert!(rounds == 2, "{rounds} rounds\n{ended}");
}

#[test]
fn what_was_not_typed_is_asked_for_on_a_terminal_and_an_empty_answer_takes_what_is_offered() {
    let workshop = Workshop::new();
    let asked = |line: &str, answers: &str| {
        workshop
            .shell(&format!("script --quiet --return --command '{line}' /dev/null"))
            .env("TERM", "dumb")
            .input(answers.replace('|', "\n"))
            .finish()
    };
    let begun = asked("step-runner new", "hello|what|s|").exits(0).stdout();
    assert!(
        begun.contains("Name of the step (a directory) [greet]: ") && begun.contains("made hello: definition, test and README"),
        "{begun}"
    );
    assert_eq!(begun.matches("What does it do?").count(), 2, "an answer that is none is asked for again\n{begun}");
    assert!(workshop.read("hello/func.yml").contains("script"));
    asked("step-runner new", "||").exits(0);
    assert!(workshop.read("greet/func.yml").contains("exec"));
    let named = asked("step-runner new third", "run|").exits(0).stdout();
    assert!(!named.contains("Name of the step") && workshop.read("third/func.yml").contains("run:"), "{named}");
    let whole = asked("step-runner new fourth --exec", "").exits(0).stdout();
    assert!(!whole.contains("What does it do?"), "{whole}");
    workshop.step_runner(&["new"]).ends(2).says("a step has a name").says("step-runner new greet --exec");
    workshop.step_runner(&["test", "hello", "greet", "third", "fourth"]).ends(0);
}

/// Whether the environment of a process that runs `sleep 4711` names a path.
fn processes_with(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
    processes.map(|process| process.path()).any(|process| {
        let holds = |file: &str, text: &str| {
            let bytes = std::fs::read(process.join(file)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        };
        holds("cmdline", "4711") && holds("environ", mark)
    })
}

#[test]
fn golden_files_are_compared_and_updated() {
    let workshop = Workshop::new();
    workshop.file("g/func.yml", "{}\n---\nexec: {command: [sh, -c, \"echo one; pwd\"]}\n");
    workshop.file("g/step_test.yml", "cases:\n  - {name: it tells, expect: {log: {golden: golden/log.txt}}}\n");
    workshop.step_runner(&["test", "g"]).ends(1).prints("the golden file `golden/log.txt` is missing").prints("--update");
    workshop.step_runner(&["test", "g", "--update"]).ends(0).prints("updated g/golden/log.txt");
    assert_eq!(workshop.read("g/golden/log.txt"), "one\n<work_dir>\n");
    workshop.step_runner(&["test", "g"]).ends(0);
    workshop.file("g/golden/log.txt", "two\n<work_dir>\n");
    workshop.step_runner(&["test", "g"]).ends(1).prints(" - two").prints(" + one");
}

#[test]
fn programs_read_json_and_junit() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    workshop.file(
        "greet/step_test.yml",
        "cases:\n  - {name: good}\n  - {name: 'bad <&>', expect: {outputs: {greeting: x}}}\n  - {name: later, skip: not yet}\n",
    );
    let printed = workshop.step_runner(&["test", "--output", "json", "--junit", "report.xml"]).ends(1).stdout();
    let records: Vec<serde_json::Value> = printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let statuses: Vec<&str> = records.iter().filter_map(|record| record["status"].as_str()).collect();
    assert_eq!(statuses, ["passed", "failed", "skipped"]);
    assert_eq!((&records[1]["findings"][0]["expected"], &records[1]["findings"][0]["got"]), (&"x".into(), &"hello world".into()));
    assert_eq!((&records[3]["passed"], &records[3]["failed"], &records[3]["skipped"]), (&1.into(), &1.into(), &1.into()));
    let report = workshop.read("report.xml");
    assert!(report.contains("tests=\"3\" failures=\"1\" skipped=\"1\"") && report.contains("name=\"bad &lt;&amp;&gt;\""), "{report}");
}

#[test]
fn cases_are_chosen_by_name_and_a_slip_is_no_success() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    workshop.step_runner(&["test", "--list", "--filter", "Ann"]).ends(0).prints("greet/step_test.yml:9: it greets Ann\n");
    workshop.step_runner(&["test", "-f", "world", "-f", "Carl"]).ends(0).prints("2 cases: 2 passed");
    workshop.step_runner(&["test", "--filter", "Anna"]).ends(3).says("no case has `Anna` in its name");
    workshop.step_runner(&["test", "nowhere"]).ends(3).says("no such file");
    workshop.file("empty/README.md", "");
    workshop.step_runner(&["test", "empty"]).ends(3).says("there is no `step_test.yml` below `empty`");
}

#[test]
fn what_is_secret_is_in_no_report() {
    let workshop = Workshop::new();
    workshop.file("s/func.yml", "spec: {inputs: {token: {type: string, sensitive: true}}, outputs: {copy: {type: string, sensitive: true}}}\n---\nexec: {command: [sh, -c, \"echo $1; printf '{\\\"name\\\": \\\"copy\\\", \\\"value\\\": \\\"%s\\\"}\\\\n' $1 >$2\", sh, \"${{ inputs.token }}\", \"${{ output_file }}\"]}\n");
    workshop.file("s/step_test.yml", "cases:\n  - {name: a, inputs: {token: \"${{ work_dir }}-hunter2\"}, expect: {outputs: {copy: {contains: other}}, log: '[MASKED]'}}\n");
    let failed = workshop.step_runner(&["test", "s"]).ends(1).prints("does not contain this");
    assert!(!failed.stdout().contains("-hunter2\n"), "{failed}");
}

#[test]
fn the_table_of_inputs_and_outputs_is_written_and_checked() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "greet", "--exec"]).ends(0);
    workshop.step_runner(&["doc", "greet", "--check"]).ends(1).prints("greet/README.md is not up to date");
    workshop.step_runner(&["doc", "greet"]).ends(0).prints("wrote greet/README.md");
    workshop.step_runner(&["doc", "greet", "--check"]).ends(0);
    assert!(workshop.read("greet/README.md").contains("| `who` | string | `world` | Whom to greet. |"));
}

#[test]
fn a_change_that_no_case_notices_is_named_or_tolerated_with_a_reason() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "outer", "--run"]).ends(0);
    let test = "cases:\n  - {name: a, fakes: {say: {outputs: {greeting: hi}}, report: }, expect: {outputs: {greeting: hi}}}\n";
    workshop.file("outer/step_test.yml", test);
    let judged = workshop.step_runner(&["test", "outer", "--mutate"]).ends(1);
    let judged = judged.prints("no case notices: outer/func.yml:13: ignore the failure of step say").prints("drop input who of step say");
    let names: Vec<String> = judged
        .stdout()
        .lines()
        .filter_map(|line| line.trim().strip_prefix("no case notices: "))
        .map(|line| line.rsplit(": ").next().unwrap_or_default().to_owned())
        .collect();
    let tolerated: String = names.iter().map(|name| format!("  - {{tolerate: {name}, reason: it is an example}}\n")).collect();
    workshop.file("outer/step_test.yml", format!("{test}mutants:\n{tolerated}"));
    workshop.step_runner(&["test", "outer", "--mutate"]).ends(0).prints("tolerated: ").prints("it is an example");
    workshop.file("outer/step_test.yml", format!("{test}mutants:\n{tolerated}  - {{tolerate: drop step nobody, reason: x}}\n"));
    workshop.step_runner(&["test", "outer", "--mutate"]).ends(1).prints("there is no mutant `drop step nobody`");
}

#[test]
fn what_the_cases_reach_is_told_in_three_forms() {
    let workshop = Workshop::new();
    workshop.step_runner(&["new", "outer", "--run"]).ends(0);
    workshop.file("outer/step_test.yml", "cases:\n  - {name: a, fakes: {say: {exit: 2}}, expect: {exit: 2}}\n");
    let told = workshop.step_runner(&["test", "outer", "--coverage", "--coverage-json", "c.json", "--coverage-page", "c.html"]).ends(0);
    told.prints("outer/func.yml:17: step `report` never ran").prints("output `greeting` was never given").prints("% of all: ");
    let record = workshop.result("c.json");
    let items = record["definitions"][0]["items"].as_array().expect("items").len();
    assert!(items > 5 && record["definitions"][0]["lines"]["13"] == 1, "{record:#}");
    assert!(workshop.read("c.html").contains("step `report` never ran"));
    workshop.step_runner(&["test", "outer", "--coverage-at-least", "90"]).ends(1).prints("90% are wanted");
}

#[test]
fn five_hundred_cases_of_values_and_fakes_make_no_process_and_no_file() {
    let workshop = Workshop::new();
    workshop.file("f/func.yml", "spec: {inputs: {n: {type: number}}, outputs: {n: {type: number}}}\n---\nrun:\n  - {name: a, func: ./a, inputs: {n: \"${{ inputs.n }}\"}}\noutputs: {n: \"${{ steps.a.outputs.n }}\"}\n");
    workshop.file("f/a/func.yml", "spec: {inputs: {n: {type: number}}, outputs: {n: {type: number}}}\n---\nexec: {command: [none]}\n");
    let rows: String = (0..500).map(|number| format!("      - {{n: {number}}}\n")).collect();
    workshop.file("f/step_test.yml", format!("cases:\n  - name: it passes n on\n    hermetic: true\n    table:\n{rows}    inputs: {{n: \"${{{{ row.n }}}}\"}}\n    fakes: {{a: {{outputs: {{n: \"${{{{ inputs.n }}}}\"}}}}}}\n    expect: {{outputs: {{n: \"${{{{ row.n }}}}\"}}}}\n"));
    workshop.step_runner(&["test", "f", "--quiet"]).ends(0).prints("500 cases: 500 passed");
}

#[test]
fn the_usual_form_keeps_comments_and_is_checked() {
    let workshop = Workshop::new();
    workshop.file(
        "x/func.yml",
        "spec:\n    inputs:\n        who:   {type: string}   # whom\n---\nexec:\n    command:\n    # the program\n    -   echo\n",
    );
    workshop.step_runner(&["fmt", "--check"]).ends(1).prints("x/func.yml is not in its usual form");
    workshop.step_runner(&["fmt"]).ends(0).prints("formatted x/func.yml");
    assert_eq!(
        workshop.read("x/func.yml"),
        "spec:\n  inputs:\n    who: {type: string}   # whom\n---\nexec:\n  command:\n    # the program\n    - echo\n"
    );
    workshop.step_runner(&["fmt", "--check"]).ends(0);
    workshop.step_runner(&["fmt", "-"]).input("a:   [1").ends(3).says("not YAML");
    workshop.step_runner(&["fmt", "-"]).input("a:   1").ends(0).prints("a: 1\n");
}
