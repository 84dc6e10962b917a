//! What the place says: steps in place of ours, and addresses that somebody signed.

use super::*;
use crate::{CacheUse, cache_uses};
use step_model::reference::StepReference;

#[test]
fn a_step_of_somebody_elses_takes_the_place_of_one_of_ours_and_gets_the_same_inputs() {
    let reference = StepReference::parse("registry.example/steps/cache@1", Dialect::Functions).expect("a reference");
    let here = Here { references: BTreeMap::from([("cache".to_owned(), reference.clone())]), ..laptop() };
    let translation = steps_of(FULL, &here, &no_values()).expect("a translation");
    let names = |step: &Step| step.inputs.iter().map(|(name, _)| name.source().to_owned()).collect::<Vec<_>>();
    let theirs: Vec<_> = steps(&translation).iter().filter(|step| step.action == Action::Reference(reference.clone())).collect();
    assert_eq!(theirs.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["restore_cache_1", "restore_cache_2", "archive_cache_1"]);
    assert_eq!(names(theirs[0]), ["action", "key", "fallback_keys", "attempts", "timeout"]);
    assert!(
        !translation.not_done.iter().any(|part| part.part == "cache") && translation.not_done.iter().any(|part| part.part == "checkout")
    );
}

#[test]
fn whoever_signs_addresses_knows_the_keys_beforehand() {
    let uses = cache_uses(FULL).expect("keys");
    let cache = |key: &str, restored, saved| CacheUse { key: key.into(), restored, saved };
    let expected =
        [cache("cargo-main-protected", true, true), cache("cargo-main", true, false), cache("integration tests/main", true, false)];
    assert_eq!(uses, expected);
    let signed =
        expected.iter().map(|each| (each.key.clone(), serde_json::json!({"download": {"url": format!("https://s3/{}", each.key)}})));
    let here = Here { builtins: vec!["cache".into()], caches: CachePlace::Signed(signed.collect()), ..laptop() };
    let translation = steps_of(FULL, &here, &no_values()).expect("a translation");
    let second = steps(&translation).iter().find(|step| &*step.name == "restore_cache_2").expect("a step");
    let (_, ValueTemplate::Scalar(signed)) = second.inputs.iter().find(|(name, _)| name.source() == "signed").expect("addresses") else {
        panic!("a value")
    };
    assert!(signed.is_sensitive());
    assert_eq!(signed.to_json(), serde_json::json!({"integration tests/main": {"download": {"url": "https://s3/integration tests/main"}}}));
}
