//! Numbers that nobody can guess, asked of the system each time.
//!
//! What the standard library keeps for its maps is asked for once per thread: processes that are forked from one would have the same.

/// Sixty-four random bits. By the system call, since a root without `/dev/random` has no other way.
#[cfg(target_os = "linux")]
pub fn number() -> u64 {
    let mut bits = [0; 8];
    let got = rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::empty());
    assert_eq!(got, Ok(bits.len()), "the system gives random bits");
    u64::from_ne_bytes(bits)
}

/// Sixty-four random bits.
#[cfg(not(target_os = "linux"))]
pub fn number() -> u64 {
    use uuid::Uuid;
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // Six of the bits say what kind of number it is. None of them meets another of these here.
    high.rotate_left(32) ^ low
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_are_the_same_and_no_bit_stands_still() {
        let all: BTreeSet<u64> = (0..100).map(|_| number()).collect();
        assert_eq!(all.len(), 100);
        assert_eq!(all.iter().fold(0, |seen, number| seen | number), u64::MAX);
        assert_eq!(all.iter().fold(u64::MAX, |seen, number| seen & number), 0);
    }
}
