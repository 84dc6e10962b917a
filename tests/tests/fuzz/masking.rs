//! Masking: however a stream is cut, no secret is in what comes out, and what is no secret comes out as it went in.

use super::mutation::config;
use proptest::prelude::*;
use step_model::masking::{MASK, Secrets, StreamMasker};

fn secret() -> impl Strategy<Value = String> {
    // A small alphabet makes overlaps and repeated beginnings likely.
    prop_oneof!["[abc]{4,9}", "[a-z+/=]{8,20}", "[ab]{4}\n[ab]{4}"]
}

fn stream() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof!["[abc\n]{0,12}", "[a-zA-Z0-9+/= %]{0,20}"], 0..12).prop_map(|parts| parts.concat())
}

fn masked_in_pieces(secrets: &Secrets, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut masker = StreamMasker::new(secrets);
    let mut out = Vec::new();
    let mut rest = text;
    for cut in cuts {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        masker.push(piece, &mut out);
        rest = after;
    }
    masker.push(rest, &mut out);
    masker.finish(&mut out);
    out
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn no_secret_survives_however_the_stream_is_cut(
        secrets in prop::collection::vec(secret(), 1..5), before in stream(), after in stream(), cuts in prop::collection::vec(0..9usize, 0..40), which in any::<prop::sample::Index>(),
    ) {
        let mut known = Secrets::default();
        for secret in &secrets {
            known.add(secret).expect("long enough");
        }
        let hidden = which.get(&secrets);
        let text = format!("{before}{hidden}{after}");
        let out = masked_in_pieces(&known, text.as_bytes(), &cuts);
        for secret in &secrets {
            // The mask itself may complete what looks like a secret only where a secret is made of its letters; these are not.
            prop_assert!(!contains(&out, secret.as_bytes()), "{secret:?} is in {:?}", String::from_utf8_lossy(&out));
        }
        prop_assert!(contains(&out, MASK.as_bytes()));
    }

    #[test]
    fn cuts_change_nothing(secrets in prop::collection::vec(secret(), 1..4), text in stream(), cuts in prop::collection::vec(0..9usize, 0..40)) {
        let mut known = Secrets::default();
        for secret in &secrets {
            known.add(secret).expect("long enough");
        }
        let whole = masked_in_pieces(&known, text.as_bytes(), &[]);
        let pieces = masked_in_pieces(&known, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&pieces));
    }

    #[test]
    fn what_is_no_secret_passes_unchanged(bytes in any::<Vec<u8>>(), cuts in prop::collection::vec(0..9usize, 0..20)) {
        let mut known = Secrets::default();
        known.add("a secret that nobody guesses").expect("long enough");
        // A stream that ends in a possible beginning of a secret has that part masked: noise of a few bytes may.
        let out = masked_in_pieces(&known, &bytes, &cuts);
        prop_assert!(out == bytes || contains(&out, MASK.as_bytes()));
        prop_assert_eq!(masked_in_pieces(&Secrets::default(), &bytes, &cuts), bytes);
    }
}
