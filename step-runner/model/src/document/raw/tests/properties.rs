//! Whatever comes in, something sensible comes out.

use super::*;
use proptest::prelude::*;

const FIXTURES: [&str; 4] = [
    "spec:\n  inputs:\n    a: {type: string, default: \"x\", sensitive: true}\n    b: {type: struct}\n  outputs:\n    o: {type: number}\n---\nenv: {A: \"${{ inputs.a }}\"}\nexec:\n  command: [sh, -c, \"echo ${{ inputs.b.c }}\"]\n  work_dir: ${{ work_dir }}\n",
    "{}\n---\nrun:\n  - name: one\n    func: registry.example/a/b:1 x/func.yml\n    inputs: &i {k: [1, null, {z: ~}]}\n  - name: two\n    step: {git: {url: h.example/p, rev: v1, dir: a/b}}\n    inputs:\n      <<: *i\n  - {name: three, script: \"echo ${{ steps.one.outputs.x }}\"}\noutputs: {y: \"${{ steps.one.outputs.x }}\"}\n",
    "spec: {outputs: delegate}\n---\nrun: [{name: a, step: ./a.yml, env: {X: 0x1F}}]\ndelegate: a\n",
    "[{\"name\": \"a\", \"script\": \"echo \\u00e4\", \"env\": {\"A\": \"b\"}}, {\"name\": \"b\", \"step\": {\"oci\": {\"registry\": \"r\", \"repository\": \"g\", \"tag\": \"t\"}}}]",
];

/// Every problem points into the text, and there is a document exactly when no problem is an error.
fn expect_sense(text: &str) {
    for file in ["step.yml", "func.yml"] {
        let reading = read(text, file);
        assert_eq!(reading.document.is_none(), reading.problems.iter().any(Problem::is_error), "{}", shown(&reading.problems));
        expect_places(text, &reading.problems);
    }
    expect_places(text, &read_steps(text, None).1);
    expect_places(text, &read_invocation(text, Dialect::Functions).1);
    let _ = read_value(text, None);
}

fn expect_places(text: &str, problems: &[Problem]) {
    for problem in problems {
        assert!(!problem.message.is_empty() && !problem.message.ends_with('.'), "{problem}");
        if let Some(place) = &problem.place {
            assert!(text.get(place.span.clone()).is_some(), "{problem}: {place:?}");
            assert!(place.line >= 1 && place.column >= 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        if let Ok(text) = text_of(&bytes) {
            expect_sense(text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-a-z{}\\[\\]:,&*!|>'\"%@`#?~ \n$.0-9]{0,200}") {
        expect_sense(&text);
        let _ = crate::reference::StepReference::parse(&text, Dialect::Functions);
        let _ = crate::reference::StepReference::parse(&text, Dialect::Steps);
    }

    #[test]
    fn a_damaged_document_is_read_or_refused(
        fixture in 0..FIXTURES.len(), at in any::<prop::sample::Index>(), length in 0..12_usize, with in "[-a-z{}\\[\\]:,&*!|>'\"\n ${]{0,6}",
    ) {
        let mut text: Vec<char> = FIXTURES[fixture].chars().collect();
        let start = at.index(text.len());
        let end = (start + length).min(text.len());
        text.splice(start..end, with.chars());
        expect_sense(&text.into_iter().collect::<String>());
    }
}
