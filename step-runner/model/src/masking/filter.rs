//! Rules out most places of a text at which a form could begin, many bytes at a time.
//!
//! ```text
//!   begin            sample
//!   |................[block]        a form that begins in begin..=sample and has `length` bytes or more covers the block
//!   '---- length ----------'
//! ```
//!
//! When the block at the sample is in no form's first `length` bytes, no form begins in all of `begin..=sample`: the search goes on behind it. So a text
//! is looked at every thirteenth byte, where an automaton has to look at each, and wait for the look before.

use std::collections::BTreeSet;

/// Of the beginnings of forms that are known. Longer ones would have more blocks, and skip little more.
const LONGEST: usize = 16;
/// A form that is shorter than this has blocks of two bytes.
const SHORT: usize = 8;
/// When more of all blocks than this are in a form, too little is ruled out: one in so many.
const DENSE: usize = 16;

#[derive(Debug)]
pub(super) struct Filter {
    /// Every form has at least as many bytes.
    length: usize,
    blocks: Blocks,
}

#[derive(Debug)]
enum Blocks {
    Two(Set),
    Four(Set),
}

/// Of blocks, one bit for each or for a few of them.
#[derive(Debug)]
struct Set {
    words: Vec<u64>,
}

/// What a filter could say of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skipped {
    /// No form begins before this.
    pub begin: usize,
    /// A form may begin before this, so as far as here it must be looked for byte by byte.
    pub until: usize,
}

impl Filter {
    /// `None`: there are too many forms, or none.
    pub(super) fn of(forms: &BTreeSet<Vec<u8>>) -> Option<Self> {
        let length = forms.iter().map(Vec::len).min()?.min(LONGEST);
        let is_short = length < SHORT;
        let mut set = Set { words: vec![0; if is_short { Two::SIZE } else { Four::SIZE } / 64] };
        for beginning in forms.iter().map(|form| &form[..length]) {
            if is_short {
                beginning.windows(2).for_each(|block| set.add(Two::index(block)));
            } else {
                beginning.windows(4).for_each(|block| set.add(Four::index(block)));
            }
        }
        let known: u32 = set.words.iter().map(|word| word.count_ones()).sum();
        let is_dense = known as usize > set.words.len() * 64 / DENSE;
        let blocks = if is_short { Blocks::Two(set) } else { Blocks::Four(set) };
        (!is_dense && length >= 2).then_some(Self { length, blocks })
    }

    /// Where the next form that begins at `begin` or later may begin in `bytes`, or after them.
    pub(super) fn skip(&self, bytes: &[u8], begin: usize) -> Skipped {
        match &self.blocks {
            Blocks::Two(set) => skip::<Two>(set, self.length, bytes, begin),
            Blocks::Four(set) => skip::<Four>(set, self.length, bytes, begin),
        }
    }
}

fn skip<B: Block>(set: &Set, length: usize, bytes: &[u8], mut begin: usize) -> Skipped {
    let known = |at: usize| bytes.get(at..at + B::LENGTH).is_none_or(|block| set.has(B::index(block)));
    while begin + length <= bytes.len() {
        let sample = begin + length - B::LENGTH;
        // Whichever form covers the sample covers a neighbour of it too, unless it is nothing but one block.
        if known(sample) && (length == B::LENGTH || known(sample - 1) || known(sample + 1)) {
            return Skipped { begin, until: sample + 1 };
        }
        begin = sample + 1;
    }
    Skipped { begin, until: bytes.len() }
}

impl Set {
    fn add(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    fn has(&self, index: usize) -> bool {
        self.words[index / 64] & (1 << (index % 64)) != 0
    }
}

/// A few bytes in a row.
trait Block {
    const LENGTH: usize;
    /// How many indices there are.
    const SIZE: usize;
    fn index(block: &[u8]) -> usize;
}

struct Two;
struct Four;

impl Block for Two {
    const LENGTH: usize = 2;
    const SIZE: usize = 1 << 16;

    fn index(block: &[u8]) -> usize {
        usize::from(u16::from_le_bytes([block[0], block[1]]))
    }
}

impl Block for Four {
    const LENGTH: usize = 4;
    /// 16 KiB, half of the first cache.
    const SIZE: usize = 1 << 17;

    /// Blocks that share an index are rare enough: multiplication spreads them (Knuth, 6.4).
    fn index(block: &[u8]) -> usize {
        let number = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        (number.wrapping_mul(0x9e37_79b1) >> 15) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forms(all: &[&str]) -> BTreeSet<Vec<u8>> {
        all.iter().map(|form| form.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_begins_like_no_form_is_skipped_up_to_where_the_text_is_too_short_for_one() {
        let filter = Filter::of(&forms(&["hunter2-hunter2-hunter2", "correct-horse-battery"])).unwrap();
        let text = "a line of a log that says nothing of importance to anybody";
        assert_eq!(filter.skip(text.as_bytes(), 0), Skipped { begin: 52, until: text.len() });
        let found = filter.skip(b"here it is: hunter2-hunter2-hunter2, in the middle", 0);
        assert!(found.begin <= 12 && found.until > 12, "{found:?}");
    }

    #[test]
    fn too_many_forms_are_not_filtered() {
        assert!(Filter::of(&BTreeSet::new()).is_none());
        let pairs = (0..20_000_u32).map(|number| format!("{:08x}", number.wrapping_mul(0x9e37_79b1)).into_bytes());
        assert!(Filter::of(&pairs.collect()).is_none());
    }

    proptest! {
        /// Few letters, so that forms come near each other.
        #[test]
        fn no_place_where_a_form_begins_is_ever_skipped(
            all in proptest::collection::btree_set("[a-c]{2,4}|[a-e]{6,20}", 1..6),
            text in "[a-f]{0,60}",
            begin in 0..20_usize,
        ) {
            let all: BTreeSet<Vec<u8>> = all.into_iter().map(String::into_bytes).collect();
            let text = [text.as_bytes(), all.first().unwrap(), text.as_bytes()].concat();
            let Some(filter) = Filter::of(&all) else { return Ok(()) };
            let mut at = begin.min(text.len());
            while at < text.len() {
                let Skipped { begin, until } = filter.skip(&text, at);
                for place in at..begin {
                    // Also one that goes on behind the text.
                    prop_assert!(!all.iter().any(|form| form.starts_with(&text[place..]) || text[place..].starts_with(form)));
                }
                prop_assert!(at <= begin && begin < until.max(begin + 1) && until <= text.len());
                at = until.max(at + 1);
            }
        }
    }
}
