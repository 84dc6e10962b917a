//! The files of a step that was just begun. They show what is possible in the fewest lines, and their tests pass.

use step_model::document::Dialect;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Exec,
    Run,
    Script,
}

/// Names and texts. `title` is the name of the step.
pub fn files(title: &str, kind: Kind, dialect: Dialect) -> Vec<(String, String)> {
    let (file, dir, call) = match dialect {
        Dialect::Functions => ("func.yml", "func_dir", "func"),
        Dialect::Steps => ("step.yml", "step_dir", "step"),
    };
    let replaced = |text: &str| text.replace("{title}", title).replace("{file}", file).replace("{dir}", dir).replace("{call}", call);
    let named = |name: &str, text: &str| (replaced(name), replaced(text));
    let mut files = match kind {
        Kind::Exec => vec![named("{file}", EXEC), named("greet.sh", GREET), named("step_test.yml", EXEC_TEST)],
        Kind::Run => vec![
            named("{file}", RUN),
            named("step_test.yml", RUN_TEST),
            named("say/{file}", &EXEC.replace("greet.sh", "say.sh")),
            named("say/say.sh", GREET),
        ],
        Kind::Script => vec![named("{file}", SCRIPT), named("step_test.yml", SCRIPT_TEST)],
    };
    files.push(named("README.md", README));
    files
}

const EXEC: &str = r#"spec:
  inputs:
    who:
      type: string
      default: world
      description: Whom to greet.
  outputs:
    greeting:
      type: string
      description: What was said.
---
exec:
  command:
    - ${{ {dir} }}/greet.sh
    - ${{ inputs.who }}
    - ${{ output_file }}
"#;

const GREET: &str = r#"#!/bin/sh
# WHO OUTPUT_FILE: an output is a line of JSON, so the value must not hold quotes or backslashes.
set -eu
if [ -z "$1" ]; then
  echo "there is nobody to greet" >&2
  exit 2
fi
greeting="hello $1"
echo "$greeting"
printf '{"name": "greeting", "value": "%s"}\n' "$greeting" >>"$2"
"#;

const EXEC_TEST: &str = r#"cases:
  - name: it greets the world
    expect:
      outputs: {greeting: hello world}
      log: hello world

  - name: "it greets ${{ row.who }}"
    table:
      - {who: Ann}
      - {who: Bob and Carl}
    inputs: {who: "${{ row.who }}"}
    expect:
      outputs: {greeting: "hello ${{ row.who }}"}

  - name: it refuses to greet nobody
    inputs: {who: ""}
    expect:
      exit: 2
      log: there is nobody to greet
"#;

const RUN: &str = r#"spec:
  inputs:
    who:
      type: string
      default: world
      description: Whom to greet.
  outputs:
    greeting:
      type: string
      description: What was said.
---
run:
  - name: say
    {call}: ./say
    inputs:
      who: ${{ inputs.who }}
  - name: report
    env:
      GREETING: ${{ steps.say.outputs.greeting }}
    script: echo "said $GREETING"
outputs:
  greeting: ${{ steps.say.outputs.greeting }}
"#;

const RUN_TEST: &str = r#"cases:
  - name: it says and reports
    inputs: {who: Ann}
    expect:
      outputs: {greeting: hello Ann}
      log: said hello Ann

  # Nothing real runs: the step `say` is replaced by a fake, and so is the script.
  - name: it gives what say gives
    hermetic: true
    fakes:
      say: {outputs: {greeting: "good day, ${{ inputs.who }}"}}
      report:
    expect:
      outputs: {greeting: "good day, world"}
      steps:
        say: {inputs: {who: world}}
        report: {env: {GREETING: "good day, world"}}

  - name: it does not report when say fails
    fakes:
      say: {exit: 3}
    expect:
      exit: 3
      steps: {report: skipped}

  - name: it fails when the report fails
    fakes:
      say: {outputs: {greeting: hello}}
      report: {exit: 1}
    expect:
      exit: 1
"#;

const SCRIPT: &str = r#"spec:
  inputs:
    who:
      type: string
      default: world
      description: Whom to greet.
---
run:
  - name: greet
    env:
      WHO: ${{ inputs.who }}
    script: |
      if [ -z "$WHO" ]; then
        echo "there is nobody to greet" >&2
        exit 2
      fi
      echo "hello $WHO"
"#;

const SCRIPT_TEST: &str = r#"cases:
  - name: it greets the world
    expect:
      log: {equals: hello world}

  - name: "it greets ${{ row.who }}"
    table:
      - {who: Ann}
      - {who: Bob and Carl}
    inputs: {who: "${{ row.who }}"}
    expect:
      log: {equals: "hello ${{ row.who }}"}

  - name: it refuses to greet nobody
    inputs: {who: ""}
    expect:
      exit: 2
      log: there is nobody to greet
"#;

const README: &str = r"# {title}

Says hello. Try it: `step-runner run .`; test it: `step-runner test .`

<!-- step-runner doc: the table is written by `step-runner doc` -->
<!-- step-runner doc: end -->
";
