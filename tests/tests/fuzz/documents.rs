//! Definition files, references and values.

use super::mutation::{config, mutated};
use ci_tests::repository;
use proptest::prelude::*;
use step_model::diagnostic::Problem;
use step_model::document::Dialect;
use step_model::document::raw;

fn fixtures() -> Vec<String> {
    let mut texts: Vec<String> = repository::files_ending_in(&["func.yml", "step.yml", "link.yml"])
        .into_iter()
        .map(|file| file.text)
        .filter(|text| text.len() < 4000)
        .collect();
    texts.extend(
        [
            "{}\n---\nexec: {command: [echo, hi]}\n",
            "spec:\n  inputs:\n    a: {type: string, default: x, sensitive: true}\n    b: {type: number, default: 2}\n    c: {type: struct, default: {k: [1, null]}}\n  outputs: delegate\n---\nenv: {A: \"${{ inputs.a }}\"}\nrun:\n  - {name: s, step: ./x, inputs: {v: \"${{ steps.p.outputs.q }}\"}}\n  - {name: t, script: \"echo ${{ env.A }}\"}\n  - name: u\n    step: {git: {url: host/p, rev: main, dir: d, file: f.yml}}\n  - name: v\n    step: {oci: {registry: r, repository: p, tag: t}}\ndelegate: s\n",
            "spec:\n  outputs: {o: {type: array}}\n---\nrun:\n  - {name: a, func: builtin://script, inputs: {script: x}}\n  - {name: b, action: owner/act@v3}\noutputs: {o: [1, \"${{ steps.a.outputs.x || 'd' }}\"]}\n",
        ]
        .map(str::to_owned),
    );
    texts
}

/// What holds for every problem of every text: a person can find the place, and the message says something.
fn check(text: &str, problems: &[Problem]) -> Result<(), TestCaseError> {
    for problem in problems {
        prop_assert!(!problem.message.is_empty() && !problem.code.is_empty());
        let Some(place) = &problem.place else { continue };
        prop_assert!(place.line >= 1 && place.column >= 1, "{problem:?}");
        prop_assert!(place.span.start <= place.span.end && place.span.end <= text.len(), "{problem:?} in {} bytes", text.len());
        prop_assert!(text.is_char_boundary(place.span.start) && text.is_char_boundary(place.span.end), "{problem:?}");
        let line = 1 + text[..place.span.start].matches('\n').count();
        prop_assert_eq!(place.line as usize, line, "{:?}", problem);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn a_definition_is_read_or_refused_with_places(text in mutated(fixtures()), function in any::<bool>()) {
        let reading = raw::read(&text, if function { "func.yml" } else { "step.yml" });
        check(&text, &reading.problems)?;
        let refused = reading.problems.iter().any(Problem::is_error);
        prop_assert_eq!(reading.document.is_none(), refused, "no document without an error, and none with one: {:?}", reading.problems);
    }

    #[test]
    fn a_job_text_and_an_invocation_are_read_or_refused(text in mutated(fixtures())) {
        let job = raw::read_job(&text, Dialect::Steps);
        check(&text, &job.problems)?;
        let (_, problems) = raw::read_steps(&text, None);
        check(&text, &problems)?;
        let (step, problems) = raw::read_invocation(&text, Dialect::Functions);
        check(&text, &problems)?;
        prop_assert!(step.is_some() || !problems.is_empty());
    }

    #[test]
    fn reading_twice_says_the_same(text in mutated(fixtures())) {
        let (first, second) = (raw::read(&text, "func.yml"), raw::read(&text, "func.yml"));
        prop_assert_eq!(first.problems, second.problems);
        prop_assert_eq!(first.document, second.document);
    }

    #[test]
    fn any_bytes_are_text_or_not(bytes in any::<Vec<u8>>()) {
        if let Err(problem) = raw::text_of(&bytes) {
            prop_assert!(problem.is_error());
        }
    }

    #[test]
    fn a_value_of_the_command_line_has_the_kind_that_was_asked_for(text in mutated(["1.10", "[1, 2]", "{a: b}", "true", "x"].map(str::to_owned).to_vec())) {
        use step_model::value::Kind;
        for kind in [Kind::String, Kind::Number, Kind::Boolean, Kind::Struct, Kind::Array] {
            if let Ok(value) = raw::read_value(&text, Some(kind)) {
                prop_assert_eq!(value.kind(), kind);
            }
        }
    }
}
