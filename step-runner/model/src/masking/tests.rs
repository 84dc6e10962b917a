use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

fn secrets(all: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    all.iter().for_each(|secret| secrets.add(secret).unwrap());
    secrets
}

/// The pieces one after the other, then the end.
fn stream(secrets: &Secrets, pieces: &[&[u8]]) -> String {
    let (mut masker, mut out) = (StreamMasker::new(secrets), Vec::new());
    pieces.iter().for_each(|piece| masker.push(piece, &mut out));
    masker.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The pieces between bars.
fn pieces(secrets: &Secrets, text: &str) -> String {
    stream(secrets, &text.split('|').map(str::as_bytes).collect::<Vec<_>>())
}

#[test]
fn a_secret_is_masked_however_it_is_split() {
    let known = secrets(&["secrets"]);
    assert_eq!(pieces(&known, "s|ecrets"), "[MASKED]");
    assert_eq!(pieces(&known, "secrets|secrets"), "[MASKED][MASKED]");
    assert_eq!(pieces(&known, "ssecrets"), "s[MASKED]");
    assert_eq!(pieces(&known, "s|secrets"), "s[MASKED]");
    assert_eq!(pieces(&known, "secret "), "secret ");
}

#[test]
fn a_longer_secret_wins() {
    let known = secrets(&["mask", "prefix_mask"]);
    assert_eq!(pieces(&known, "prefix_mask mask prefix_|mask prefix_ma|sk mas|k"), "[MASKED] [MASKED] [MASKED] [MASKED] [MASKED]");
}

#[test]
fn secrets_that_overlap_become_one_mask() {
    let known = secrets(&["abcd", "cdef", "efgh-ijkl"]);
    assert_eq!(known.mask("_abcdef_"), "_[MASKED]_");
    assert_eq!(pieces(&known, "_ab|cdef|gh-ijkl_"), "_[MASKED]_");
    assert_eq!(pieces(&known, "_abcdefgh-ijk"), "_[MASKED]");
    assert_eq!(pieces(&known, "_abcdefgh-ijk_"), "_[MASKED]gh-ijk_");
}

#[test]
fn a_large_secret_in_two_writes_is_one_mask() {
    let secret = "_".repeat(16_000);
    let known = secrets(&[&secret]);
    assert_eq!(stream(&known, &[&secret.as_bytes()[..9_000], &secret.as_bytes()[9_000..]]), MASK);
}

#[test]
fn white_space_around_a_secret_does_not_belong_to_it() {
    assert_eq!(secrets(&["  hunter2\n"]).mask("(hunter2)"), "([MASKED])");
}

#[test]
fn an_empty_secret_changes_nothing() {
    let known = secrets(&["", " \n"]);
    assert!(known.is_empty());
    assert_eq!(pieces(&known, "a |b"), "a b");
}

#[test]
fn a_secret_that_is_too_short_is_refused() {
    let mut known = Secrets::default();
    assert_eq!(known.add("abc"), Err(TooShort { minimum: 4 }));
    assert_eq!(TooShort { minimum: 4 }.to_string(), "a secret of fewer than 4 characters is not masked");
    assert!(known.is_empty());
    assert_eq!(known.add("äöü"), Err(TooShort { minimum: 4 }));
    assert_eq!(known.add("abcd"), Ok(()));
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    assert!(matches!(secrets(&["hunter2"]).mask("hunter1"), Cow::Borrowed(_)));
}

#[test]
fn lines_of_a_secret_are_masked_one_by_one() {
    let known = secrets(&["-----BEGIN KEY-----\r\nMIIEvQIBADANBg\r\n}\r\n-----END KEY-----\r\n"]);
    assert_eq!(known.mask("  1 -----BEGIN KEY-----\n  2 MIIEvQIBADANBg\n  3 }\n"), "  1 [MASKED]\n  2 [MASKED]\n  3 }\n");
}

#[test]
fn base64_is_masked_in_every_alignment() {
    let known = secrets(&["corre:ct/hor?se~battery"]);
    for engine in [STANDARD, URL_SAFE] {
        for before in ["", "x", "xy", "xyz"] {
            for after in ["", "1", "12", "123"] {
                let encoded = engine.encode(format!("{before}corre:ct/hor?se~battery{after}"));
                let masked = known.mask(&encoded);
                let left = masked.replace(MASK, "").len();
                assert!(masked.contains(MASK) && left <= 10, "{before:?} {after:?}: {encoded} became {masked}");
            }
        }
    }
}

#[test]
fn base64_in_lines_is_masked() {
    let secret = "0123456789abcdef".repeat(12);
    let known = secrets(&[&secret]);
    for width in [64, 76] {
        let encoded = STANDARD.encode(&secret);
        let lines: Vec<_> = encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let masked = known.mask(&lines.join("\n")).into_owned();
        assert_eq!(masked, vec![MASK; lines.len()].join("\n"));
    }
}

#[test]
fn encoded_forms_are_masked() {
    let known = secrets(&["it's <a> \"b\" & c/d\\é\n2nd"]);
    for form in [
        "it%27s%20%3Ca%3E%20%22b%22%20%26%20c%2Fd%5C%C3%A9%0A2nd",
        "it%27s%20%3ca%3e%20%22b%22%20%26%20c%2fd%5c%c3%a9%0a2nd",
        "it's%20%3Ca%3E%20%22b%22%20%26%20c%2Fd%5C%C3%A9%0A2nd",
        "it%27s+%3Ca%3E+%22b%22+%26+c%2Fd%5C%C3%A9%0A2nd",
        r#"it's <a> \"b\" & c/d\\é\n2nd"#,
        r#"it's <a> \"b\" & c/d\\\u00e9\n2nd"#,
        r#"it's \u003ca\u003e \"b\" \u0026 c/d\\é\n2nd"#,
        r#"it's <a> \"b\" & c\/d\\é\n2nd"#,
        "it'\\''s <a> \"b\" & c/d\\é\n2nd",
        "it\\'s\\ \\<a\\>\\ \\\"b\\\"\\ \\&\\ c/d\\\\é\n2nd",
        "it\\'s <a> \"b\" & c/d\\\\é\\n2nd",
    ] {
        assert_eq!(known.mask(form), MASK, "{form}");
    }
}

#[test]
fn a_beginning_is_held_back_until_it_is_ruled_out() {
    let (mut masker, mut out) = (StreamMasker::new(&secrets(&["hunter2"])), Vec::new());
    masker.push(b"pass hunt", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"pass "[..], 4));
    masker.quiet(&mut out);
    assert_eq!(masker.held(), 4);
    masker.push(b"ing", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"pass hunting"[..], 0));
}

#[test]
fn a_short_beginning_is_shown_when_it_is_quiet_and_the_rest_is_still_masked() {
    let (mut masker, mut out) = (StreamMasker::new(&secrets(&["hunter2"])), Vec::new());
    masker.push(b"$ hu", &mut out);
    masker.quiet(&mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"$ hu"[..], 0));
    masker.push(b"nt", &mut out);
    masker.quiet(&mut out);
    assert_eq!(masker.held(), 2, "four bytes of a secret: no more is shown");
    masker.push(b"er2\n", &mut out);
    assert_eq!(out, b"$ hu[MASKED]\n");
}

#[test]
fn what_a_quiet_moment_showed_is_parted_from_what_follows_by_a_mask() {
    let (mut masker, mut out) = (StreamMasker::new(&secrets(&["bbbab"])), Vec::new());
    for byte in b"bbbabbbabbab" {
        masker.push(&[*byte], &mut out);
        masker.quiet(&mut out);
    }
    masker.finish(&mut out);
    assert!(!contains(&out, b"bbbab"), "{}", String::from_utf8_lossy(&out));
}

#[test]
fn the_end_masks_a_beginning_but_shows_a_short_one() {
    let known = secrets(&["hunter2"]);
    assert_eq!(pieces(&known, "a hunte"), "a [MASKED]");
    assert_eq!(pieces(&known, "a hun"), "a hun");
    assert_eq!(pieces(&known, "hunter2hunte"), "[MASKED][MASKED]");
}

#[test]
fn a_secret_that_comes_later_is_masked_from_then_on() {
    let mut known = secrets(&["hunter2"]);
    let (mut masker, mut out) = (StreamMasker::new(&known), Vec::new());
    masker.push(b"token token hunt", &mut out);
    known.add("token").unwrap();
    known.add("hunting").unwrap();
    masker.update(&known);
    masker.push(b"ing token hunter2", &mut out);
    masker.finish(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), "token token [MASKED] [MASKED] [MASKED]");
}

#[test]
fn a_stream_without_secrets_is_passed_through() {
    let (mut masker, mut out) = (StreamMasker::new(&Secrets::default()), Vec::new());
    masker.push(b"\xff\x00abc", &mut out);
    assert_eq!((out.as_slice(), masker.held()), (&b"\xff\x00abc"[..], 0));
}

/// Bytes that do not repeat themselves.
fn noise(length: usize) -> String {
    let mut state = 7_u32;
    let letter = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(state >> 24).unwrap() % 26)
    };
    (0..length).map(letter).collect()
}

#[test]
fn a_secret_of_many_megabytes_is_masked_from_its_beginning_to_its_end() {
    let secret = noise(1 << 20);
    let known = secrets(&[&secret, "hunter2"]);
    let text = format!("<{secret}> hunter2 <{secret}>");
    assert_eq!(known.mask(&text), "<[MASKED]> [MASKED] <[MASKED]>");
    for size in [63, 64, 4096, 10_007] {
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        assert_eq!(stream(&known, &pieces), "<[MASKED]> [MASKED] <[MASKED]>", "pieces of {size}");
    }
}

#[test]
fn a_part_of_a_long_secret_is_masked_from_its_first_anchor() {
    let secret = noise(200_000);
    let known = secrets(&[&secret]);
    let part = &secret[4000..30_000];
    assert_eq!(known.mask(&format!("<{part}>")), format!("<{}[MASKED]>", &secret[4000..4096]));
    assert_eq!(known.mask(&secret[70..4000]), secret[70..4000], "between two anchors");
}

#[test]
fn a_long_secret_that_repeats_itself_is_masked() {
    let secret = "0".repeat(1 << 20);
    let known = secrets(&[&secret]);
    assert_eq!(known.mask(&format!("<{secret}>")), "<[MASKED]>");
    let wide = "ä€".repeat(60_000);
    assert_eq!(secrets(&[&wide]).mask(&format!("<{wide}>")), "<[MASKED]>");
}

#[test]
fn hundreds_of_secrets_that_come_one_by_one_are_all_masked() {
    let mut known = Secrets::default();
    let mut masker = StreamMasker::new(&known);
    let mut out = Vec::new();
    for number in 0..150 {
        known.add(&format!("secret-{number:04}-{}", number * 7919)).unwrap();
        masker.update(&known);
        masker.push(format!("secret-{number:04}-{} secret-0000-0\n", number * 7919).as_bytes(), &mut out);
    }
    masker.finish(&mut out);
    assert!(known.automata().len() <= 8, "{}", known.automata().len());
    assert_eq!(String::from_utf8_lossy(&out), "[MASKED] [MASKED]\n".repeat(150));
}

#[test]
fn nothing_secret_is_printed() {
    let known = secrets(&["hunter2"]);
    assert_eq!(format!("{known:?}"), "Secrets(1)");
    assert_eq!(format!("{:?}", StreamMasker::new(&known)), "StreamMasker { secrets: Secrets(1), held: 0, .. }");
}

/// What the stream should say, found the slow way.
fn reference(known: &Secrets, text: &[u8]) -> Vec<u8> {
    let mut covered = vec![false; text.len()];
    let mut joined = vec![false; text.len()]; // the byte belongs to the same mask as the one before it
    for form in known.forms() {
        for start in (0..=text.len().saturating_sub(form.len())).filter(|start| text[*start..].starts_with(form)) {
            covered[start..start + form.len()].fill(true);
            joined[start + 1..start + form.len()].fill(true);
        }
    }
    let longest = known.forms().map(Vec::len).max().unwrap_or(0);
    let tail = (text.len().saturating_sub(longest)..text.len())
        .find(|start| known.forms().any(|form| form.len() > text.len() - start && form.starts_with(&text[*start..])));
    if let Some(tail) = tail.filter(|tail| text.len() - tail >= 4) {
        covered[tail..].fill(true);
        joined[tail + 1..].fill(true);
    }
    let mut out = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match (covered[at], joined[at]) {
            (false, _) => out.push(*byte),
            (true, false) => out.extend_from_slice(MASK.as_bytes()),
            (true, true) => {}
        }
    }
    out
}

fn contains(text: &[u8], form: &[u8]) -> bool {
    text.windows(form.len()).any(|window| window == form)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Few letters, so that secrets overlap each other, themselves and the ends of the pieces.
    #[test]
    fn any_split_gives_the_same_and_no_secret_is_left(
        all in proptest::collection::vec("[ab]{4,9}|[ab\n]{20}|[a-c/+ ]{5}", 0..5),
        text in "[abc \n]{0,80}",
        encoded in 0..3_usize,
        cuts in proptest::collection::vec(1..12_usize, 0..40),
    ) {
        let mut known = Secrets::default();
        for secret in &all {
            let _ = known.add(secret);
        }
        let first = all.first().map(String::as_str).unwrap_or_default();
        let text = format!("{text}{}{text}{first}", STANDARD.encode(format!("{}{first}", "x".repeat(encoded))));
        let whole = reference(&known, text.as_bytes());

        let (mut masker, mut out, mut rest) = (StreamMasker::new(&known), Vec::new(), text.as_bytes());
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            masker.push(piece, &mut out);
            rest = after;
        }
        masker.push(rest, &mut out);
        masker.finish(&mut out);
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
        for form in known.forms() {
            prop_assert!(!contains(&out, form), "{}", String::from_utf8_lossy(form));
        }
    }

    #[test]
    fn bytes_without_secrets_pass_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0..300_usize) {
        let known = secrets(&["hunter2-hunter2", "correct horse"]);
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        let (mut masker, mut out) = (StreamMasker::new(&known), Vec::new());
        masker.push(head, &mut out);
        masker.push(tail, &mut out);
        masker.finish(&mut out);
        prop_assert_eq!(out, bytes);
    }

    /// Quiet moments show at most the first three bytes of a secret.
    #[test]
    fn quiet_moments_never_show_a_secret(text in "[ab]{0,60}", secret in "[ab]{5,8}") {
        let known = secrets(&[&secret]);
        let (mut masker, mut out) = (StreamMasker::new(&known), Vec::new());
        for byte in text.as_bytes() {
            masker.push(&[*byte], &mut out);
            masker.quiet(&mut out);
        }
        masker.finish(&mut out);
        for form in known.forms() {
            prop_assert!(!contains(&out, form));
        }
    }
}
