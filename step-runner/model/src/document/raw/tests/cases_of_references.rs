//! Table REF: references as maps. Short references are tested beside their parser.

use super::*;
use crate::document::Action;
use crate::reference::{GitReference, OciReference, StepReference};

fn reference(text: &str) -> StepReference {
    let reading = item(&format!("{{name: w, step: {text}}}"));
    assert_valid(&reading);
    match &sequence(&reading.document.unwrap()).steps[0].action {
        Action::Reference(reference) => reference.clone(),
        action => panic!("{action:?}"),
    }
}

fn git(text: &str) -> GitReference {
    match reference(text) {
        StepReference::Git(git) => *git,
        other => panic!("{other:?}"),
    }
}

fn oci(text: &str) -> OciReference {
    match reference(text) {
        StepReference::Oci(oci) => *oci,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ref_10_a_git_object_has_a_directory_and_a_file() {
    let git = git("{git: {url: h.example/g/p, dir: d, rev: v1, file: f.yml}}");
    assert_eq!((git.url.source(), &*git.revision), ("https://h.example/g/p", "v1"));
    assert_eq!((git.path, git.file.as_deref()), (vec!["d".into()], Some("f.yml")));
}

#[test]
fn ref_11_http_is_kept_and_no_directory_is_put_in_front() {
    let git = git("{git: {url: \"http://h.example/x\", rev: v1}}");
    assert_eq!((git.url.source(), git.path, git.file), ("http://h.example/x", vec![], None));
}

#[test]
fn ref_13_a_short_commit_is_kept_as_written() {
    assert_eq!(&*git("{git: {url: h.example/x, rev: 0a1b2c3d}}").revision, "0a1b2c3d");
    assert_eq!(&*git("{git: {url: h.example/x, rev: 01234567}}").revision, "01234567");
    assert_eq!(&*git("{git: {url: h.example/x, rev: 1.10}}").revision, "1.10");
}

#[test]
fn ref_14_a_whole_commit_is_kept_as_written() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(&*git(&format!("{{git: {{url: h.example/x, rev: {commit}}}}}")).revision, commit);
}

#[test]
fn ref_16_a_reference_of_nothing_is_refused() {
    assert_refused(&item("{name: s, step: }"), "the reference is empty");
    assert_refused(&item("{name: s, step: null}"), "the reference is empty");
}

#[test]
fn ref_28_a_git_object_without_rev_is_refused() {
    assert_refused(&item("{name: s, step: {git: {url: h.example/x}}}"), "field rev in git: required");
}

#[test]
fn ref_29_a_git_object_without_url_is_refused() {
    assert_refused(&item("{name: s, step: {git: {rev: v1}}}"), "field url in git: required");
}

#[test]
fn ref_31_an_oci_object_without_registry_is_refused() {
    assert_refused(&item("{name: s, step: {oci: {repository: r, tag: t}}}"), "field registry in oci: required");
}

#[test]
fn ref_32_an_oci_object_without_repository_is_refused() {
    assert_refused(&item("{name: s, step: {oci: {registry: r, tag: t}}}"), "field repository in oci: required");
}

#[test]
fn ref_34_a_reference_object_of_nothing_is_refused() {
    assert_refused(&item("{name: s, step: {}}"), "field git: or oci: required");
}

#[test]
fn ref_35_a_reference_object_is_git_or_oci() {
    let reading = item("{name: s, step: {git: {url: u, rev: r}, oci: {registry: r, repository: g, tag: t}}}");
    assert_refused(&reading, "cannot use both git: and oci: fields, please specify only one step location");
}

/// The original compiles it to two steps on the spot; here it stays what it is until a message is made of it, and the inputs are
/// evaluated in the caller's scope (original.md A.5).
#[test]
fn ref_37_an_oci_object_keeps_its_parts() {
    let oci = oci("{oci: {registry: r, repository: g/i, tag: t}}");
    assert_eq!((oci.registry.source(), oci.repository.source(), oci.tag.source()), ("r", "g/i", "t"));
    assert_eq!((oci.path, oci.file), (vec![], None));
}

#[test]
fn a_git_url_may_hold_an_expression_and_other_parts_may_not() {
    assert_eq!(git("{git: {url: \"${{ vars.HOST }}/p\", rev: v1}}").url.source(), "https://${{ vars.HOST }}/p");
    assert_refused(&item("{name: s, step: {git: {url: u, rev: r, dir: \"${{ env.D }}\"}}}"), "`dir` cannot hold an expression");
    assert_refused(&item("{name: s, step: {git: {url: u, rev: r, file: \"${{ env.D }}\"}}}"), "`file` cannot hold an expression");
}
