//! Masks secrets in what is written for people, also when they are split over writes or encoded.

/// The secrets of a job in all the forms that are masked. Grows while the job runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Secrets {}

/// What stands for a secret in a log.
pub const MASK: &str = "[MASKED]";

impl Secrets {
    /// Adds a secret. One that is too short to be masked without harm is refused.
    /// # Errors
    /// The secret is shorter than what can be masked; the caller warns.
    pub fn add(&mut self, _secret: &str) -> Result<(), TooShort> {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        todo!()
    }

    /// Every occurrence replaced by [`MASK`].
    pub fn mask<'a>(&self, _text: &'a str) -> std::borrow::Cow<'a, str> {
        todo!()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret of fewer than {minimum} characters is not masked")]
pub struct TooShort {
    pub minimum: usize,
}

/// Masks one stream of bytes. Holds back only what may be the beginning of a secret.
#[derive(Debug)]
pub struct StreamMasker {}

impl StreamMasker {
    pub fn new(_secrets: &Secrets) -> Self {
        todo!()
    }

    /// Takes newly known secrets into account from the next byte on.
    pub fn update(&mut self, _secrets: &Secrets) {
        todo!()
    }

    /// Appends to `out` what can be said for sure after `bytes`.
    pub fn push(&mut self, _bytes: &[u8], _out: &mut Vec<u8>) {
        todo!()
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        todo!()
    }

    /// The stream was quiet for 50 ms: a held beginning of fewer than 4 bytes is released, so prompts appear.
    pub fn quiet(&mut self, _out: &mut Vec<u8>) {
        todo!()
    }

    /// The stream has ended: what is held back and may be a part of a secret is masked.
    pub fn finish(&mut self, _out: &mut Vec<u8>) {
        todo!()
    }
}
