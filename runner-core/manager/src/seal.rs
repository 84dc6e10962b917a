//! Seals what only a holder of a runner's token may read: records of jobs, in the state database and beside the job at its agent.
//!
//! ```text
//! sealed = version (1 byte) | key name (8 bytes) | nonce (12 bytes) | AES-256-GCM(record) with its tag (16 bytes)
//! key    = HKDF-SHA256(token of the runner)          additional data: version, key name, and what the record belongs to
//! ```
//!
//! So a runner whose state is gone can go on with its jobs, and whoever reads the database or an agent's directory learns nothing.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::rand;
use std::fmt;

const VERSION: u8 = 1;
const NAME: usize = 8;
const HEADER: usize = 1 + NAME + NONCE_LEN;
const SALT: &[u8] = b"runner-core owner record";

/// The key of one runner entry.
pub struct Seal {
    key: LessSafeKey,
    /// Tells keys apart without telling anything of them.
    name: [u8; NAME],
}

/// Why a sealed record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealBroken {
    #[error("the record is of another version ({0})")]
    Version(u8),
    #[error("the record belongs to another runner, or its token has changed")]
    OtherKey,
    #[error("the record is damaged")]
    Damaged,
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Seal {
    /// The key of the runner with this token.
    /// # Panics
    /// Never: the lengths are right by construction.
    pub fn of_token(token: &str) -> Self {
        let secret = Salt::new(HKDF_SHA256, SALT).extract(token.as_bytes());
        let mut key = [0; 32];
        let mut name = [0; NAME];
        derive(&secret, b"key", &mut key);
        derive(&secret, b"name", &mut name);
        #[expect(clippy::expect_used, reason = "32 bytes are the length of the key")]
        let unbound = UnboundKey::new(&AES_256_GCM, &key).expect("the key has the length of the algorithm");
        zeroize::Zeroize::zeroize(&mut key);
        Self { key: LessSafeKey::new(unbound), name }
    }

    /// `belongs_to`: what opens it again must say the same, such as the id of the job.
    /// # Panics
    /// The system has no randomness.
    #[expect(clippy::expect_used, reason = "without randomness nothing may be sealed, and a record is far below 64 GiB")]
    pub fn seal(&self, record: &[u8], belongs_to: &str) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).expect("the system has randomness");
        let mut sealed = Vec::with_capacity(HEADER + record.len() + 16);
        sealed.push(VERSION);
        sealed.extend_from_slice(&self.name);
        sealed.extend_from_slice(&nonce);
        let additional = self.additional(belongs_to);
        let mut text = record.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(additional), &mut text)
            .expect("a record is shorter than the algorithm allows");
        sealed.append(&mut text);
        sealed
    }

    /// # Errors
    /// It was sealed by another runner, or is damaged.
    pub fn open(&self, sealed: &[u8], belongs_to: &str) -> Result<Vec<u8>, SealBroken> {
        let (header, text) = sealed.split_at_checked(HEADER).ok_or(SealBroken::Damaged)?;
        if header[0] != VERSION {
            return Err(SealBroken::Version(header[0]));
        }
        if header[1..=NAME] != self.name {
            return Err(SealBroken::OtherKey);
        }
        let nonce = Nonce::try_assume_unique_for_key(&header[1 + NAME..]).map_err(|_| SealBroken::Damaged)?;
        let mut text = text.to_vec();
        let length =
            self.key.open_in_place(nonce, Aad::from(self.additional(belongs_to)), &mut text).map_err(|_| SealBroken::Damaged)?.len();
        text.truncate(length);
        Ok(text)
    }

    fn additional(&self, belongs_to: &str) -> Vec<u8> {
        [&[VERSION][..], &self.name, belongs_to.as_bytes()].concat()
    }
}

#[expect(clippy::expect_used, reason = "the lengths are far below what HKDF can give")]
fn derive(secret: &Prk, purpose: &[u8], out: &mut [u8]) {
    secret.expand(&[purpose], Length(out.len())).and_then(|bytes| bytes.fill(out)).expect("HKDF gives so many bytes");
}

/// Nothing of it is for a log.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_to_the_runner_that_sealed_it_and_to_nobody_else() {
        let seal = Seal::of_token("glrt-secret");
        let sealed = seal.seal(b"the job token is swordfish", "job 7");
        assert_eq!(Seal::of_token("glrt-secret").open(&sealed, "job 7").as_deref(), Ok(&b"the job token is swordfish"[..]));
        assert_eq!(Seal::of_token("glrt-other").open(&sealed, "job 7"), Err(SealBroken::OtherKey));
        assert_eq!(seal.open(&sealed, "job 8"), Err(SealBroken::Damaged));
    }

    #[test]
    fn nothing_of_record_or_token_stands_in_what_is_sealed() {
        let sealed = Seal::of_token("glrt-secret").seal(b"swordfish", "7");
        let holds = |text: &[u8]| sealed.windows(text.len()).any(|window| window == text);
        assert!(!holds(b"swordfish") && !holds(b"glrt"));
    }

    #[test]
    fn every_damage_is_noticed() {
        let seal = Seal::of_token("t");
        let sealed = seal.seal(b"record", "7");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(seal.open(&damaged, "7").is_err(), "byte {at}");
            assert!(seal.open(&sealed[..at], "7").is_err(), "cut at {at}");
        }
    }
}
