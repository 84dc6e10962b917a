//! How a text is read: pieces, paths, escapes, and where the dialects differ (original.md 0.1).

use super::*;
use crate::document::Dialect::{Functions, Steps};
use crate::testing::{Contexts, contexts};

fn paths(source: &str, dialect: Dialect) -> Vec<(String, usize)> {
    let template = Template::parse(source, dialect).unwrap();
    template.paths().iter().map(|path| (path.parts.join("."), path.offset)).collect()
}

fn scope() -> Contexts {
    contexts(&json!({"inputs": {
        "type": "t", "i": 3, "a": 5, "b": 2,
        "o": {"my-key": "dash", "0": "zero", "two words": "words", "func": {"if": "reserved"}, "a/b": "slash"},
    }}))
}

#[test]
fn a_text_without_expressions_is_its_source() {
    let text: Arc<str> = "make $HOME {{x}} \\".into();
    let template = Template::parse(text.clone(), Steps).unwrap();
    assert!(Arc::ptr_eq(&template.source, &text));
    assert_eq!((template.parts.is_none(), template.as_literal()), (true, Some(&*text)));
    assert_eq!(template.evaluate(&Contexts::default()).unwrap(), text.into());
}

#[test]
fn a_template_is_small() {
    assert!(std::mem::size_of::<Template>() <= 40);
    assert!(std::mem::size_of::<Part>() <= 40);
}

#[test]
fn a_literal_holds_no_expression_whatever_is_in_it() {
    let template = Template::literal("${{ inputs.i }} \\${{");
    assert_eq!(template.as_literal(), Some("${{ inputs.i }} \\${{"));
    assert_eq!(template.evaluate(&scope()).unwrap(), "${{ inputs.i }} \\${{".into());
    assert_ne!(template, Template::parse("${{ inputs.i }}", Functions).unwrap());
}

#[test]
fn escapes_alone_make_a_literal_of_the_functions_dialect() {
    let template = Template::parse(r"Use \${{ x }} and \${{", Functions).unwrap();
    assert_eq!(template.as_literal(), Some("Use ${{ x }} and ${{"));
    assert_eq!(template.source(), r"Use \${{ x }} and \${{");
    assert_eq!(template.pieces(), [Piece::Text("Use ${{ x }} and ${{")]);
    assert!(template.ambiguous_escapes().is_empty());
}

#[test]
fn an_escape_stands_beside_expressions() {
    let source = r"\${{ ${{ inputs.i }} \\${{ \";
    assert_eq!(text(source, Functions, &scope()), Ok(r"${{ 3 \${{ \".to_owned()));
}

#[test]
fn in_the_steps_dialect_a_backslash_stays_and_is_reported() {
    let template = Template::parse(r"C:\${{ inputs.i }} \${{ inputs.i }} ${{ inputs.i }}\", Steps).unwrap();
    assert_eq!(template.evaluate(&scope()).unwrap(), r"C:\3 \3 3\".into());
    assert_eq!(template.ambiguous_escapes(), [2, 19]);
    assert_eq!(text("${{ '${{' }}", Steps, &scope()), Ok("${{".to_owned()));
}

#[test]
fn pieces_are_text_and_expressions_as_written() {
    let template = Template::parse("a ${{ inputs.i }}${{1}} b", Steps).unwrap();
    let expression = |source, offset| Piece::Expression { source, offset };
    assert_eq!(template.pieces(), [Piece::Text("a "), expression("inputs.i", 6), expression("1", 20), Piece::Text(" b")]);
    assert!(!template.is_one_expression());
    assert!(Template::parse("${{ 1 }}", Steps).unwrap().is_one_expression());
}

#[test]
fn only_the_functions_dialect_passes_over_the_line_break_after_an_expression() {
    assert_eq!(evaluated("${{ inputs.i }}\n", Functions, &scope()), Ok(json!(3)));
    assert_eq!(evaluated("${{ inputs.i }}\n", Steps, &scope()), Ok(json!("3\n")));
    assert_eq!(text("${{ inputs.i }}\n", Functions, &scope()), Ok("3\n".to_owned()));
    assert_eq!(evaluated("${{ inputs.i }} \n", Functions, &scope()), Ok(json!("3 \n")));
}

#[test]
fn paths_are_named_in_order() {
    assert_eq!(
        paths("${{ steps.build.outputs.path }} ${{ env.A || inputs['b'][\"c\"] }}", Functions),
        [("steps.build.outputs.path".to_owned(), 4), ("env.A".to_owned(), 36), ("inputs.b.c".to_owned(), 45)]
    );
}

#[test]
fn a_computed_key_ends_a_path_and_is_read_itself() {
    assert_eq!(
        paths("${{ inputs.o[env.K].x + str(vars.Y) + \"${{ job.Z }}\" }}", Functions),
        [("inputs.o".to_owned(), 4), ("env.K".to_owned(), 13), ("vars.Y".to_owned(), 28), ("job.Z".to_owned(), 43)]
    );
    assert_eq!(paths(r#"${{ {(inputs.k): [-inputs.v, {a: work_dir}]} }}"#, Functions).len(), 3);
    assert_eq!(paths(r#"${{ inputs.o["a\"b"].c[0].d }}"#, Functions), [("inputs.o.a\"b.c".to_owned(), 4)]);
    assert_eq!(paths("${{ (inputs.o || env).x }}", Functions).len(), 2);
}

#[test]
fn a_reserved_word_after_a_dot_is_a_key_in_both_dialects() {
    for dialect in [Steps, Functions] {
        assert_eq!(evaluated("${{ inputs.type }}", dialect, &scope()), Ok(json!("t")));
        assert_eq!(evaluated("${{ inputs.o.func.if }}", dialect, &scope()), Ok(json!("reserved")));
    }
}

#[test]
fn the_steps_dialect_reads_a_dotted_path_first() {
    let cases = [("my-key", "dash"), ("0", "zero"), ("two words", "words"), ("a/b", "slash")];
    for (key, value) in cases {
        assert_eq!(evaluated(&format!("${{{{ inputs.o.{key} }}}}"), Steps, &scope()), Ok(json!(value)), "{key}");
        assert_eq!(evaluate_expression(&format!(" inputs.o.{key} "), Steps, &scope()).unwrap(), value.into());
        assert!(evaluated(&format!("${{{{ inputs.o.{key} }}}}"), Functions, &scope()).is_err(), "{key}");
    }
    assert_eq!(paths("${{ inputs.o.my-key }}", Steps), [("inputs.o.my-key".to_owned(), 4)]);
}

#[test]
fn a_path_that_does_not_resolve_is_read_as_moa() {
    for dialect in [Steps, Functions] {
        assert_eq!(evaluated("${{ inputs.i-1 }}", dialect, &scope()), Ok(json!(2)));
        assert_eq!(evaluated("${{ inputs.a-inputs.b }}", dialect, &scope()), Ok(json!(3)));
        assert_eq!(evaluated("${{ inputs.a / inputs.b }}", dialect, &scope()), Ok(json!(2.5)));
    }
    assert_eq!(paths("${{ inputs.a-inputs.b }}", Steps), [("inputs.a".to_owned(), 4), ("inputs.b".to_owned(), 13)]);
}

#[test]
fn a_reference_is_dynamic_when_an_expression_stands_on_one_line() {
    assert!(holds_expression("./${{ inputs.x }}/step"));
    assert!(holds_expression("a\n${{}}"));
    assert!(!holds_expression("${{ inputs.x\n}}"));
    assert!(!holds_expression("}} ${{"));
    assert!(!holds_expression("${ {x}}"));
    assert!(holds_expression("${{ ${{ }}"));
}
