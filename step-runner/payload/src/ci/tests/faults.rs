//! What is wrong with a configuration, and how it is said.

use super::*;

#[test]
fn faults_of_extends_are_named() {
    let text = "
.a: {extends: .b}
.b: {extends: [.c]}
.c: {extends: .a, script: [x]}
.text: hello
.base: {script: [a]}
job: {extends: [.a, .bse, .text, 3, .nothing]}
";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "job"), @r"
    .gitlab-ci.yml: line 4, column 15: .c: circular dependency detected in `extends`: .a -> .b -> .c -> .a <.a>
    .gitlab-ci.yml: line 7, column 21: job: unknown keys in `extends` (.bse) <.bse>
     hint: did you mean `.base`?
    .gitlab-ci.yml: line 7, column 27: job: invalid base hashes in `extends` (.text) <.text>
    .gitlab-ci.yml: line 7, column 34: `extends` of `job` takes names of jobs, and this is a number <3>
    .gitlab-ci.yml: line 7, column 37: job: unknown keys in `extends` (.nothing) <.nothing>
    ");
}

#[test]
fn faults_of_references_are_named() {
    let text = "
.a: {script: [!reference [.a, script]]}
.setup: {script: [x]}
job:
  variables: !reference []
  script:
    - !reference [.a, script]
    - !reference [.setup, scrpt]
    - !reference [.setup, [script]]
";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "job"), @r#"
    .gitlab-ci.yml: line 2, column 26: !reference [".a", "script"] is nested too deep: it leads through 10 references, perhaps to itself <[.a, script]>
    .gitlab-ci.yml: line 5, column 25: !reference [] takes names: of a job, and of what is wanted of it <[]>
    .gitlab-ci.yml: line 8, column 18: !reference [".setup", "scrpt"] could not be found <[.setup, scrpt]>
     hint: did you mean `script`?
    .gitlab-ci.yml: line 9, column 18: !reference [".setup", ?] takes names: of a job, and of what is wanted of it <[.setup, [script]]>
    "#);
}

#[test]
fn references_of_references_do_not_grow_without_end() {
    let mut text = "job: {script: [!reference [.l0, script]]}\n.l9: {script: [x]}\n".to_owned();
    for level in 0..9 {
        let line = vec![format!("!reference [.l{}, script]", level + 1); 10].join(", ");
        let _ = writeln!(text, ".l{level}: {{script: [{line}]}}");
    }
    assert!(problems(&[(".gitlab-ci.yml", &text)], "job").contains("references stand for more than 200000 values"));
}

#[test]
fn faults_of_includes_are_named_in_their_files() {
    let files = [
        (".gitlab-ci.yml", "include: [ci/a.yml, ../out.yml, ci/a.txt, {when: now}, 7, missing.yml, bad.yml]\njob: {script: [x]}\n"),
        ("ci/a.yml", "include: ci/b.yml\n"),
        ("ci/b.yml", "include: ci/a.yml\n"),
        ("bad.yml", "a: [1\nb: }\n"),
    ];
    insta::assert_snapshot!(problems(&files, "job"), @r"
    .gitlab-ci.yml: line 1, column 21: the include `../out.yml` leaves the repository <../out.yml>
     hint: paths are relative to the root of the repository
    .gitlab-ci.yml: line 1, column 33: Included file `ci/a.txt` does not have YAML extension! <ci/a.txt>
    .gitlab-ci.yml: line 1, column 43: the include names nothing to include <{when: now}>
     hint: `local: /path/in/the/repository.yml`
    .gitlab-ci.yml: line 1, column 56: an include is a path or a map with `local`, and this is a number <7>
    .gitlab-ci.yml: line 1, column 59: Local file `missing.yml` does not exist! <missing.yml>
    bad.yml: line 2, column 2: not YAML: illegal placement of ':' indicator <:>
    ci/b.yml: line 1, column 10: the file includes itself: ci/a.yml -> ci/b.yml -> ci/a.yml <ci/a.yml>
    ");
}

#[test]
fn an_unknown_job_is_named_with_the_nearest_and_all_others() {
    let text = "include: {remote: 'https://example.com/a.yml'}\n.hidden: {script: [a]}\nbuild: {script: [a]}\nunit tests: {script: [a]}\nstages: [a]\n";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "biuld"), @r"
    .gitlab-ci.yml: there is no job `biuld` <>
     hint: did you mean `build`? the jobs are `build`, `unit tests`
    ");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "deploy"), @r"
    .gitlab-ci.yml: there is no job `deploy` <>
     hint: the jobs are `build`, `unit tests`; includes that are not fetched may hold others: `remote: https://example.com/a.yml`
    ");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], ".hidden"), @r"
    .gitlab-ci.yml: `.hidden` is hidden: it is there for other jobs to use <>
     hint: the jobs are `build`, `unit tests`
    ");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", "stages: [a]\n")], "job"), @r"
    .gitlab-ci.yml: there is no job `job` <>
     hint: the configuration has no jobs
    ");
}

#[test]
fn values_of_the_wrong_kind_are_named_in_the_words_of_gitlab() {
    let text = "
job:
  before_script: [3]
  script:
    - echo: colon
  variables: [a]
  timeout: soon
  image: {entrypoint: [a]}
  services: [[a]]
  cache: {when: never, untracked: maybe, paths: {a: b}}
  artifacts: [a]
";
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", text)], "job"), @r"
    .gitlab-ci.yml: line 3, column 19: jobs:job:before_script config should be a string or a nested array of strings up to 10 levels deep <3>
    .gitlab-ci.yml: line 5, column 7: jobs:job:script config should be a string or a nested array of strings up to 10 levels deep <echo: colon>
     hint: quote a command that holds `: `
    .gitlab-ci.yml: line 6, column 14: jobs:job:variables config should be a hash of key value pairs <[a]>
    .gitlab-ci.yml: line 7, column 12: jobs:job:timeout config should be a duration, such as `1h 30m` <soon>
    .gitlab-ci.yml: line 8, column 10: jobs:job:image name can't be blank <{entrypoint: [a]}>
    .gitlab-ci.yml: line 9, column 14: jobs:job:services config should be a string, and this is a list <[a]>
    .gitlab-ci.yml: line 10, column 17: jobs:job:cache:when should be one of: on_success, on_failure, always <never>
    .gitlab-ci.yml: line 10, column 35: jobs:job:cache:untracked config should be a boolean value <maybe>
    .gitlab-ci.yml: line 10, column 49: jobs:job:cache:paths config should be a string, and this is a map <{a: b}>
    .gitlab-ci.yml: line 11, column 14: jobs:job:artifacts config should be a hash <[a]>
    ");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", "a: {stage: x}\nb: {trigger: {project: c/d}}\n")], "a"), @r"
    .gitlab-ci.yml: line 1, column 4: jobs:a script can't be blank <{stage: x}>
     hint: give it a `script`, or let it extend a job that has one
    ");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", "b: {trigger: {project: c/d}}\n")], "b"), @".gitlab-ci.yml: line 1, column 14: `b` starts another pipeline: it has nothing to run here <{project: c/d}>");
}

#[test]
fn what_is_no_configuration_says_so() {
    for text in ["", "- a\n", "text", "a: [", "\u{feff}a: b"] {
        let found = problems(&[(".gitlab-ci.yml", text)], "job");
        assert!(!found.contains("no problems"), "{text:?}: {found}");
    }
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", "- a\n")], "job"), @".gitlab-ci.yml: a configuration is a map of jobs and settings, and this is a list <>");
    insta::assert_snapshot!(problems(&[(".gitlab-ci.yml", "a: b\n---\nc: d\n---\ne: f\n")], "job"), @".gitlab-ci.yml: line 4, column 1: a configuration has at most two documents: a header, and what it is about <--->");
}
