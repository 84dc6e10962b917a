mod faults;

use super::*;
use crate::NotDone;
use proptest::prelude::*;
use std::fmt::Write as _;
use step_model::document::{Action, Body};

/// Answers every need from a repository of files.
fn configuration(files: &[(&str, &str)]) -> Configuration {
    let mut configuration = Configuration::start(files[0].0, files[0].1);
    while let Some(need) = configuration.need().cloned() {
        let found = files.iter().filter(|(path, _)| need.matches(path));
        configuration.on_files(found.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect());
    }
    configuration
}

fn job(files: &[(&str, &str)], name: &str) -> Result<Translation, Vec<FileProblems>> {
    configuration(files).job(name, &Here::default(), &BTreeMap::new())
}

fn translated(files: &[(&str, &str)], name: &str) -> Translation {
    job(files, name).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// The commands of every step.
fn commands(translation: &Translation) -> String {
    let Body::Sequence(sequence) = &translation.request.steps.definition.body else { panic!("a job is a sequence") };
    let mut text = String::new();
    for step in &sequence.steps {
        let _ = match &step.action {
            Action::ScriptLegacy(script) => writeln!(text, "{}: {:?}", step.name, script.lines),
            Action::Script(script) => writeln!(text, "{}: script {:?}", step.name, script.source()),
            Action::Reference(reference) => writeln!(text, "{}: {reference:?}", step.name),
        };
    }
    text
}

fn variables(translation: &Translation) -> String {
    let not_predefined =
        translation.request.variables.iter().filter(|variable| !variable.key.starts_with("CI") && &*variable.key != "GITLAB_CI");
    not_predefined.map(|variable| format!("{}={}", variable.key, variable.value)).collect::<Vec<_>>().join(" ")
}

fn not_done(translation: &Translation) -> String {
    let line = |part: &NotDone| format!("{}{}: {}\n  {}", part.part, if part.refused { " (refused)" } else { "" }, part.what, part.way_out);
    translation.not_done.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Every problem of every file, with what is underlined.
fn problems(files: &[(&str, &str)], name: &str) -> String {
    let Err(files) = job(files, name) else { return "no problems".to_owned() };
    let mut text = String::new();
    for file in files {
        for problem in file.problems {
            let shown = problem.place.as_ref().map(|place| &file.text[place.span.clone()]).unwrap_or_default();
            let hint = problem.hint.as_ref().map(|hint| format!("\n hint: {hint}")).unwrap_or_default();
            let _ = writeln!(text, "{}: {problem} <{shown}>{hint}", file.file);
        }
    }
    text
}

#[test]
fn a_job_is_its_before_script_its_script_and_its_after_script() {
    let text = "
variables: {TOP: top, WHO: global}
default:
  before_script: [echo before]
  after_script: [echo after]
job:
  variables: {WHO: job}
  script:
    - echo one
    - - echo two
      - [echo three]
    - |
      if true; then
        echo four
      fi
";
    let translation = translated(&[(".gitlab-ci.yml", text)], "job");
    insta::assert_snapshot!(commands(&translation), @r#"
    script: ["echo before", "echo one", "echo two", "echo three", "if true; then\n  echo four\nfi\n"]
    after_script: ["echo after"]
    "#);
    assert_eq!(variables(&translation), "TOP=top WHO=job");
    assert_eq!(translation.request.timeout, None);
    assert_eq!(not_done(&translation), "");
}

#[test]
fn run_is_taken_as_it_is() {
    let text = "default: {before_script: [never]}\njob:\n  run:\n    - name: a\n      script: echo ${{ vars.X }}\n    - {name: b, func: ./b, inputs: {n: 1, list: [a, true, null]}}\n";
    insta::assert_snapshot!(commands(&translated(&[(".gitlab-ci.yml", text)], "job")), @r#"
    a: script "echo ${{ vars.X }}"
    b: Local(LocalReference { path: [".", "b"], file: None })
    "#);
    let wrong = "job:\n  before_script: [a]\n  run: [{name: a, script: b}]\n";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", wrong)], "job"), @".gitlab-ci.yml: line 2, column 18: the `run` and `before_script` keywords cannot be used together <[a]>");
    let wrong = "job:\n  run:\n    - {name: a}\n";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", wrong)], "job"), @r"
    .gitlab-ci.yml: line 3, column 5: in `run`, column 3: the step runs nothing: missing properties: 'step' <- {name: a}>
     hint: add `func`, `step`, `script` or `action`
    ");
}

#[test]
fn variables_are_expanded_through_each_other() {
    let text = "
variables:
  A: {value: a, description: what A is, options: [a, b]}
  B: {value: $A/$C, expand: false}
  C: <$A-%A%>
  NUMBER: 010
  PRICE: $$5
job:
  inherit: {variables: [A, C, NUMBER, PRICE]}
  variables: {D: '${C}$UNKNOWN.'}
  script: [a]
";
    assert_eq!(variables(&translated(&[(".gitlab-ci.yml", text)], "job")), "A=a C=<a-a> NUMBER=8 PRICE=$5 D=<a-a>.");
    let text = "variables: {A: $B, B: $A}\njob: {script: [a], inherit: {variables: true}}\n";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "job"), @r"
    .gitlab-ci.yml: circular variable reference detected: [A, B] <>
     hint: `expand: false` leaves a value as it is
    ");
    let text = "variables: {A: 1.10, B: true, C: [a]}\njob: {script: [a]}\n";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "job"), @r#"
    .gitlab-ci.yml: line 1, column 16: variables:A variable definition must be either a string or a hash <1.10>
     hint: quote the value: `"1.10"`, `"true"`
    .gitlab-ci.yml: line 1, column 25: variables:B variable definition must be either a string or a hash <true>
     hint: quote the value: `"1.10"`, `"true"`
    .gitlab-ci.yml: line 1, column 34: variables:C variable definition must be either a string or a hash <[a]>
     hint: quote the value: `"1.10"`, `"true"`
    "#);
}

#[test]
fn what_the_file_says_about_the_job_is_predefined_and_the_place_adds_the_rest() {
    let text = "My Job/1:\n  stage: build\n  script: [a]\n  variables: {WHERE: $CI_PROJECT_DIR/$CI_JOB_STAGE}\n";
    let here = Here { predefined: BTreeMap::from([("CI_PROJECT_DIR".into(), "/w".into())]), ..Here::default() };
    let translation = configuration(&[(".gitlab-ci.yml", text)]).job("My Job/1", &here, &BTreeMap::new()).expect("a job");
    let values: Vec<_> = translation.request.variables.iter().map(|variable| format!("{}={}", variable.key, variable.value)).collect();
    assert_eq!(
        values,
        [
            "CI_PROJECT_DIR=/w",
            "CI=true",
            "GITLAB_CI=true",
            "CI_SERVER=yes",
            "CI_JOB_NAME=My Job/1",
            "CI_JOB_NAME_SLUG=my-job-1",
            "CI_JOB_STAGE=build",
            "WHERE=/w/build"
        ]
    );
}

#[test]
fn extends_merges_maps_and_replaces_lists_and_the_last_base_wins() {
    let text = "
.a: {variables: {X: a, Y: a}, script: [a], image: a}
.b: {extends: .c, variables: {Y: b}, script: [b]}
.c: {variables: {Z: c}, after_script: [c]}
job:
  extends: [.a, .b]
  variables: {X: job}
";
    let translation =
        configuration(&[(".gitlab-ci.yml", text)]).job("job", &Here { ignore_image: true, ..Here::default() }, &BTreeMap::new());
    let translation = translation.expect("a job");
    insta::assert_snapshot!(commands(&translation), @r#"
    script: ["b"]
    after_script: ["c"]
    "#);
    assert_eq!(variables(&translation), "X=job Y=b Z=c");
}

#[test]
fn anchors_merge_keys_and_references_are_followed() {
    let text = "
.lines: &lines
  - echo anchored
.settings: &settings
  variables: {A: anchored}
.setup:
  script:
    - echo setup
    - !reference [.more, script]
  variables: {B: referenced}
.more:
  script: [echo more]
job:
  <<: *settings
  variables: !reference [.setup, variables]
  script:
    - *lines
    - !reference [.setup, script]
    - echo own
";
    let translation = translated(&[(".gitlab-ci.yml", text)], "job");
    insta::assert_snapshot!(commands(&translation), @r#"script: ["echo anchored", "echo setup", "echo more", "echo own"]"#);
    assert_eq!(variables(&translation), "B=referenced");
}

#[test]
fn local_includes_are_asked_for_and_merged_under_the_file() {
    let files = [
        (".gitlab-ci.yml", "include:\n  - local: /ci/a.yml\n  - ci/b/*.yml\nvariables: {V: top}\njob: {extends: .base, script: [own]}\n"),
        ("ci/a.yml", "include: ci/deep.yml\nvariables: {V: a, A: a}\n.base: {before_script: [a], variables: {X: a}}\n"),
        ("ci/deep.yml", "variables: {DEEP: deep}\n"),
        ("ci/b/1.yml", ".base: {before_script: [b1]}\n"),
        ("ci/b/2.yml", "# nothing but a comment\n"),
        ("other.yml", "job: {script: [never]}\n"),
    ];
    let translation = translated(&files, "job");
    insta::assert_snapshot!(commands(&translation), @r#"script: ["b1", "own"]"#);
    assert_eq!(variables(&translation), "DEEP=deep V=top A=a X=a");
}

#[test]
fn needs_are_asked_for_once_and_in_order() {
    let mut configuration = Configuration::start(".gitlab-ci.yml", "include: [a.yml, 'b/*.yml', /a.yml]\njob: {script: [x]}\n");
    let mut asked = Vec::new();
    while let Some(need) = configuration.need().cloned() {
        asked.push(need.pattern.to_string());
        configuration.on_files(Vec::new());
    }
    assert_eq!(asked, ["a.yml", "b/*.yml"]);
    configuration.on_files(vec![("late.yml".into(), "x: {script: [y]}".into())]); // nobody asked
    assert_eq!(configuration.job_names(), ["job".into()]);
}

#[test]
fn includes_that_include_each_other_many_times_are_merged_once() {
    let files: Vec<(String, String)> = (0..100)
        .map(|number| (format!("f{number}.yml"), format!("include: [f{}.yml, f{}.yml]\n.v{number}: {{a: b}}\n", number + 1, number + 2)))
        .chain([("f100.yml".into(), "job: {script: [x]}\n".into()), ("f101.yml".into(), "{}\n".into())])
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert_eq!(commands(&translated(&files, "job")), "script: [\"x\"]\n");
}

#[test]
fn what_is_decided_for_a_pipeline_is_named() {
    let text = "
include:
  - {project: group/templates, file: /a.yml}
  - https://example.com/b.yml
  - {local: a.yml, rules: [{if: $X}]}
workflow: {rules: [{when: always}]}
job:
  stage: test
  script: [make]
  image: {name: rust:1.95, entrypoint: ['']}
  services: [{name: postgres:16, alias: db}, redis]
  rules: [{if: $CI, when: manual}]
  needs: [build, {job: lint, artifacts: true}]
  parallel: 4
  retry: 2
  when: manual
  allow_failure: true
  environment: production
  tags: [linux]
  cache: {key: {files: [Cargo.lock], prefix: cargo}, paths: [target/]}
  artifacts: {paths: [out/], reports: {junit: report.xml}}
  timeout: 1h 30m
  secrets: {DB: {vault: a/b@c, file: false}}
  id_tokens: {TOKEN: {aud: x}}
  hooks: {pre_get_sources_script: [echo]}
  intruptible: true
";
    let translation = translated(&[(".gitlab-ci.yml", text), ("a.yml", "other: {script: [a]}\n")], "job");
    assert_eq!(translation.request.timeout, Some(std::time::Duration::from_mins(90)));
    assert_eq!(translation.missing, ["DB", "TOKEN"]);
    insta::assert_snapshot!(not_done(&translation), @r"
    image (refused): the job wants to run in the image `rust:1.95`, and there are no containers here
      start one, or say where one is with DOCKER_HOST; `--ignore-image` runs the job on this machine
    services: 2 services are not started: `postgres:16`, `redis`
      start what the job needs beforehand, and give its address with `--env NAME=VALUE`
    hooks: nothing is checked out, so these hooks are not run: `pre_get_sources_script`
      run what they do beforehand
    cache: 1 cache is neither restored nor saved: `cargo-Cargo.lock`
      what its paths hold in the work tree is used as it is
    artifacts: artifacts are not uploaded: `out/`, `report.xml`
      they stay in the work tree
    rules: `rules` is not applied: the job runs because you named it, without the variables that a rule would add
      `--job NAME=VALUE` sets a variable
    when: `when: manual` is not applied: the job runs now
      none is needed
    needs: `needs` is not applied: what comes from other jobs is not fetched: `build`, `lint`
      run those jobs first
    parallel: `parallel` is not applied: the job runs once, without `CI_NODE_INDEX` and `CI_NODE_TOTAL`
      `--job CI_NODE_INDEX=1 --job CI_NODE_TOTAL=4` makes it one of four
    allow_failure: `allow_failure` is not applied: a failure here is a failure
      none is needed
    retry: `retry` is not applied: the job runs once
      run it again
    environment: `environment` is not applied: no deployment is recorded
      `--job CI_ENVIRONMENT_NAME=NAME` where the script asks for it
    tags: `tags` is not applied: no machine is chosen: it runs on this one
      none is needed
    workflow: `workflow` is not applied: there is no pipeline, and the variables of its rules are not set
      `--job NAME=VALUE` sets a variable
    include: only local files are included; not fetched: `project: group/templates`, `https://example.com/b.yml`
      put what the job needs of them into a file of the repository
    include:rules: the rules of includes are not applied, so these are included: `local: a.yml`
      leave out what is not wanted
    ");
    insta::assert_snapshot!(translation.problems.iter().map(|problem| format!("{problem}\n{:?}", problem.hint)).collect::<String>(), @r#"
    jobs:job config contains unknown keys: intruptible
    Some("did you mean `interruptible`?")
    "#);
}

#[test]
fn a_header_is_passed_over_and_said() {
    let text = "spec:\n  inputs:\n    who: {default: world}\n---\njob: {script: ['echo $[[ inputs.who ]]']}\n";
    let translation = translated(&[(".gitlab-ci.yml", text)], "job");
    insta::assert_snapshot!(translation.problems[0], @"the inputs of this file are not filled in: `$[[ inputs.NAME ]]` stays as it is");
    assert_eq!(commands(&translation), "script: [\"echo $[[ inputs.who ]]\"]\n");
}

#[test]
fn defaults_are_inherited_as_far_as_the_job_wants() {
    let text = "
image: top
before_script: [top]
default: {image: default, timeout: 10m, tags: [a]}
all: {script: [a]}
none: {script: [a], inherit: {default: false}}
some: {script: [a], inherit: {default: [timeout]}}
own: {script: [a], image: own, before_script: [], timeout: 5m}
";
    let of = |name: &str| {
        let translation = configuration(&[(".gitlab-ci.yml", text)])
            .job(name, &Here { ignore_image: true, ..Here::default() }, &BTreeMap::new())
            .expect("a job");
        let parts: Vec<&str> = translation.not_done.iter().map(|part| part.part).collect();
        (commands(&translation), translation.request.timeout.map(|timeout| timeout.as_secs()), parts.join(" "))
    };
    assert_eq!(of("all"), ("script: [\"top\", \"a\"]\n".into(), Some(600), "image tags".into()));
    assert_eq!(of("none"), ("script: [\"a\"]\n".into(), None, String::new()));
    assert_eq!(of("some"), ("script: [\"a\"]\n".into(), Some(600), String::new()));
    assert_eq!(of("own"), ("script: [\"a\"]\n".into(), Some(300), "image tags".into()));
}

/// Texts that look like configurations, so that more than the parser is tried.
fn configurations() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("a"),
        Just("$A"),
        Just("1.5"),
        Just("~"),
        Just("true"),
        Just("[a, [b]]"),
        Just("{a: b}"),
        Just("!reference [.x, script]"),
        Just("!reference [job]"),
        Just("&a x"),
        Just("*a"),
        Just("\"${\"")
    ];
    let key = prop_oneof![
        Just("script"),
        Just("run"),
        Just("extends"),
        Just("variables"),
        Just("image"),
        Just("cache"),
        Just("artifacts"),
        Just("timeout"),
        Just("services"),
        Just("needs"),
        Just("inherit"),
        Just("<<"),
        Just("secrets"),
        Just("parallel")
    ];
    let job = proptest::collection::vec((key, scalar), 0..6);
    let name = prop_oneof![Just("job"), Just(".x"), Just("default"), Just("variables"), Just("include"), Just("workflow")];
    proptest::collection::vec((name, job), 0..5).prop_map(|jobs| {
        let mut text = String::new();
        for (name, keys) in jobs {
            let _ = writeln!(text, "{name}:");
            for (key, value) in keys {
                let _ = writeln!(text, "  {key}: {value}");
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC*") {
        let _ = job(&[(".gitlab-ci.yml", &text)], "job");
    }

    #[test]
    fn any_configuration_is_read_without_a_panic(text in configurations(), included in configurations()) {
        let outer = format!("include: a.yml\n{text}");
        let _ = job(&[(".gitlab-ci.yml", &text)], "job");
        let _ = job(&[(".gitlab-ci.yml", &outer), ("a.yml", &included)], "job");
    }
}
