//! Payloads, run requests and `.gitlab-ci.yml`.

use super::mutation::{config, mutated};
use ci_tests::repository;
use proptest::prelude::*;
use std::collections::BTreeMap;
use step_payload::ci::Configuration;
use step_payload::{Here, recognise, steps_of};

fn payloads() -> Vec<String> {
    let script = repository::read("examples/gitlab-job.json");
    let run = r#"{"id": 1, "token": "t", "job_info": {"name": "a"}, "git_info": {"sha": "x"}, "runner_info": {"timeout": 5}, "variables": [{"key": "A", "value": "$B", "file": true}], "run": "[{\"name\":\"s\",\"func\":\"./x\",\"inputs\":{\"i\":\"${{ vars.A }}\"}}]"}"#;
    vec![script, run.to_owned(), repository::read("examples/hello-build/job.json")]
}

fn configurations() -> Vec<String> {
    vec![
        repository::read("examples/hello-build/.gitlab-ci.yml"),
        "include: [{local: a.yml}]\n.base: &b {variables: {X: 1}}\njob: {extends: [.base, .other], script: [!reference [.base, script]], <<: *b}\n".to_owned(),
        "default: {image: x}\na: {run: [{name: s, script: x}], rules: [{if: $X}]}\nb: {script: x, extends: a}\n".to_owned(),
    ]
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_payload_becomes_steps_or_problems(text in mutated(payloads()), ignore_image in any::<bool>()) {
        recognise::recognise(&text);
        let here = Here { ignore_image, ..Here::default() };
        match steps_of(&text, &here, &BTreeMap::new()) {
            Ok(translation) => prop_assert!(translation.problems.iter().all(|problem| !problem.is_error())),
            Err(problems) => prop_assert!(problems.iter().any(step_model::diagnostic::Problem::is_error), "refused without a reason"),
        }
    }

    #[test]
    fn a_gitlab_file_becomes_steps_or_problems(text in mutated(configurations())) {
        let mut configuration = Configuration::start(".gitlab-ci.yml", &text);
        // Every included file includes all again: it has to end all the same.
        let mut rounds = 0;
        while configuration.need().is_some() {
            configuration.on_files(vec![("a.yml".to_owned(), text.clone())]);
            rounds += 1;
            prop_assert!(rounds < 1000, "inclusion does not end");
        }
        for name in configuration.job_names().iter().take(3) {
            if let Err(files) = configuration.job(name, &Here::default(), &BTreeMap::new()) {
                prop_assert!(files.iter().any(|file| !file.problems.is_empty()), "refused without a reason");
            }
        }
    }
}
