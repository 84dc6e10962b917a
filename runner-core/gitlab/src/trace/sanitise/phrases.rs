//! Values of masked variables: the cases of the original, held against the masker that agents and runner share.

use step_model::masking::{Secrets, StreamMasker};

fn masked(phrases: &[&str], writes: &[&str]) -> String {
    let mut secrets = Secrets::default();
    phrases.iter().for_each(|phrase| secrets.add(phrase).expect("long enough"));
    let (mut masker, mut out) = (StreamMasker::new(&secrets), Vec::new());
    writes.iter().for_each(|write| masker.push(write.as_bytes(), &mut out));
    masker.finish(&mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn runner_110_a_phrase_may_be_split_and_has_white_space_around_it() {
    assert_eq!(masked(&[" secrets\n"], &["secret", "s"]), "[MASKED]");
    assert_eq!(masked(&["secrets"], &["s", "ecrets"]), "[MASKED]");
}

#[test]
fn runner_111_each_occurrence_is_masked_and_what_stands_before_it_stays() {
    assert_eq!(masked(&["secrets"], &["secretssecrets"]), "[MASKED][MASKED]");
    assert_eq!(masked(&["secrets"], &["ssecrets"]), "s[MASKED]");
    assert_eq!(masked(&["secrets"], &["s", "secrets"]), "s[MASKED]");
}

#[test]
fn runner_113_a_phrase_inside_another_makes_no_second_mask() {
    let writes = ["prefix_mask mask prefix_", "mask prefix_ma", "sk mas", "k"];
    assert_eq!(masked(&["mask", "prefix_mask"], &writes), ["[MASKED]"; 5].join(" "));
}

#[test]
fn runner_114_a_phrase_may_be_long() {
    let half = "_".repeat(8000);
    assert_eq!(masked(&[&"_".repeat(16_000)], &[&half, &half]), "[MASKED]");
}

#[test]
fn runner_116_an_empty_phrase_changes_nothing() {
    assert_eq!(masked(&[""], &["text"]), "text");
}
