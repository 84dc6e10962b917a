//! Numbers that nobody can guess, asked of the system each time.
//!
//! What the standard library keeps for its maps is asked for once per thread: processes that are forked from one would have the same.

use uuid::Uuid;

/// Sixty-four random bits.
pub fn number() -> u64 {
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
