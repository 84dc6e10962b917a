//! Table REF: short references.

use super::*;

fn parse(text: &str) -> Result<StepReference, ReferenceError> {
    StepReference::parse(text, Dialect::Steps)
}

fn local(text: &str) -> (Vec<Arc<str>>, Option<Arc<str>>) {
    match parse(text) {
        Ok(StepReference::Local(LocalReference { path, file })) => (path, file),
        other => panic!("{text}: {other:?}"),
    }
}

/// URL, revision, path and file in one line.
fn git(text: &str) -> String {
    match parse(text) {
        Ok(StepReference::Git(git)) => {
            let GitReference { url, revision, path, file } = *git;
            format!("{} {revision} {} {}", url.source(), path.join("/"), file.as_deref().unwrap_or("-"))
        }
        other => panic!("{text}: {other:?}"),
    }
}

/// Registry, repository, tag, path and file in one line.
fn oci(text: &str) -> String {
    match StepReference::parse(text, Dialect::Functions) {
        Ok(StepReference::Oci(oci)) => {
            let OciReference { registry, repository, tag, path, file } = *oci;
            let file = file.as_deref().unwrap_or("-");
            format!("{} {} {} {} {file}", registry.source(), repository.source(), tag.source(), path.join("/"))
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn ref_01_a_word_is_no_reference() {
    assert_eq!(parse("foo").unwrap_err().to_string(), "expecting url@rev. got \"foo\"");
    assert_eq!(parse("example.com/x").unwrap_err().to_string(), "expecting url@rev. got \"example.com/x\"");
}

#[test]
fn ref_02_a_dot_is_the_directory_itself() {
    assert_eq!(local("."), (vec![".".into()], None));
}

#[test]
fn ref_04_a_host_and_a_revision_are_git() {
    assert_eq!(git("h.example/g/p@v1"), "https://h.example/g/p v1 steps -");
}

#[test]
fn ref_05_the_scheme_may_be_written() {
    assert_eq!(git("https://h.example/g/p@v1"), "https://h.example/g/p v1 steps -");
    assert_eq!(git("http://user:tok@host/p.git@main"), "http://user:tok@host/p.git main steps -");
}

#[test]
fn ref_07_a_file_of_a_git_reference_is_taken() {
    assert_eq!(git("h.example/g/p/-/other.yml@v1"), "https://h.example/g/p v1 steps other.yml");
}

#[test]
fn ref_08_a_directory_of_a_git_reference_is_taken() {
    assert_eq!(git("h.example/g/p/-/inner/other.yml@v1"), "https://h.example/g/p v1 steps/inner other.yml");
    assert_eq!(git("h.example/g/p/-/a/-/b@v1"), "https://h.example/g/p v1 steps/a/-/b -");
}

#[test]
fn ref_17_a_bundled_step_has_a_path() {
    assert_eq!(parse("dist://a/b"), Ok(StepReference::Dist { path: vec!["a".into(), "b".into()] }));
    assert_eq!(parse("dist://"), Err(ReferenceError::NoName { text: "dist://".into() }));
}

#[test]
fn ref_19_a_local_path_is_split() {
    let path: Vec<Arc<str>> = [".", "p", "q", "dir"].map(Arc::from).into();
    assert_eq!(local("./p/q/dir"), (path, None));
}

#[test]
fn ref_20_a_local_file_is_taken() {
    assert_eq!(local("./step.yml"), (vec![".".into()], Some("step.yml".into())));
    assert_eq!(local("../up//x.yml"), (vec!["..".into(), "up".into()], Some("x.yml".into())));
}

#[test]
fn ref_22_an_absolute_path_begins_with_a_slash() {
    let path: Vec<Arc<str>> = ["/", "p", "q", "dir"].map(Arc::from).into();
    assert_eq!(local("/p/q/dir"), (path, None));
}

#[test]
fn ref_23_a_slash_at_the_end_is_dropped() {
    assert_eq!(local("/p/q/dir/"), local("/p/q/dir"));
    assert_eq!(local("  ./p/ "), local("./p"));
}

#[test]
fn ref_25_an_expression_is_kept_whole() {
    let text = "${{steps.get.outputs.where}}";
    assert!(matches!(parse(text), Ok(StepReference::Dynamic(template)) if template.source() == text));
}

#[test]
fn ref_26_a_text_with_an_expression_is_kept_whole() {
    let text = "/opt/x/${{env.WHICH}}";
    assert!(matches!(parse(text), Ok(StepReference::Dynamic(template)) if template.source() == text));
}

#[test]
fn ref_38_the_last_at_sign_divides() {
    assert_eq!(git("a@b@c"), "https://a@b c steps -");
}

#[test]
fn an_image_is_a_reference_in_the_functions_dialect_only() {
    assert_eq!(oci("registry.example/a/b:1 reverse/func.yml"), "registry.example a/b 1 reverse func.yml");
    assert_eq!(oci("localhost:5000/a"), "localhost:5000 a latest  -");
    assert_eq!(oci("a/b"), " a/b latest  -");
    let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_eq!(oci(&format!("r.example/a:1@{digest}")), format!("r.example a {digest}  -"));
    assert_eq!(oci(&format!("r.example/a@{digest} dir")), format!("r.example a {digest} dir -"));
    assert!(matches!(StepReference::parse("h.example/a@v1", Dialect::Functions), Ok(StepReference::Git(_))));
    assert!(matches!(parse("r.example/a:1"), Err(ReferenceError::ExpectingRevision { .. })));
}

#[test]
fn a_text_that_is_no_image_is_refused() {
    for text in ["a//b", "a b$c:d e", "r.example/:1", "r.example/a:", "a|b"] {
        let parsed = StepReference::parse(text, Dialect::Functions);
        let is_sound = matches!(&parsed, Ok(StepReference::Oci(oci)) if oci.repository.source() == "a");
        assert!(is_sound || matches!(parsed, Err(ReferenceError::NoImage { .. })), "{text}: {parsed:?}");
    }
}

#[test]
fn what_is_compiled_in_has_a_name() {
    assert_eq!(parse("builtin://script"), Ok(StepReference::Builtin { name: "script".into() }));
    assert_eq!(parse("builtin://function/oci/build"), Ok(StepReference::Builtin { name: "function/oci/build".into() }));
    assert_eq!(parse("builtin://"), Err(ReferenceError::NoName { text: "builtin://".into() }));
    assert_eq!(parse("oci://x").unwrap_err().to_string(), "`oci://` is no way to name a step");
    assert_eq!(parse("  ").unwrap_err(), ReferenceError::Empty);
    assert_eq!(parse("x@"), Err(ReferenceError::ExpectingRevision { text: "x@".into(), hint: "a directory begins with `./`" }));
}
