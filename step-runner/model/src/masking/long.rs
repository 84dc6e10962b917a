//! A secret that is too long to be looked for as a whole: an automaton needs some forty bytes for each of its bytes.
//!
//! It is recognised by anchors, pieces of 64 bytes that stand at every 4096th place, and followed from there as far as the stream agrees
//! with it. So a copy of it is masked from the first anchor in it to its end; one that is cut out between two anchors is not. Its lines and
//! encodings are not looked for.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Of a secret that repeats itself this many places are followed. The first is the one after which most is left.
const PLACES: usize = 4;
/// Longer secrets are recognised by anchors. A GitLab variable has at most 10,000 characters.
const LONGEST: usize = 128 << 10;
const ANCHOR: usize = 64;
const STRIDE: usize = 4096;

pub(super) struct LongSecret {
    text: Arc<str>,
    /// Behind which places of the secret an anchor ends. Several when it repeats itself.
    anchors: BTreeMap<Vec<u8>, Vec<usize>>,
}

impl LongSecret {
    pub(super) fn is_long(secret: &str) -> bool {
        secret.len() > LONGEST
    }

    pub(super) fn of(text: Arc<str>) -> Self {
        let mut anchors: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        let mut place = 0;
        while place + ANCHOR <= text.len() {
            // Between two characters, so that what is masked is whole.
            let (start, end) = (text.floor_char_boundary(place), text.floor_char_boundary(place + ANCHOR));
            anchors.entry(text.as_bytes()[start..end].to_vec()).or_default().push(end);
            place += STRIDE;
        }
        Self { text, anchors }
    }

    pub(super) fn anchors(&self) -> impl Iterator<Item = Vec<u8>> {
        self.anchors.keys().cloned()
    }

    /// Where the stream may stand in this secret when it has just said `bytes`.
    pub(super) fn places_behind(self: &Arc<Self>, bytes: &[u8]) -> impl Iterator<Item = Place> {
        self.anchors.get(bytes).into_iter().flatten().take(PLACES).map(|next| Place { secret: Arc::clone(self), next: *next })
    }
}

/// A place in a long secret up to which a stream has agreed with it.
pub(super) struct Place {
    secret: Arc<LongSecret>,
    /// The next byte of the secret.
    next: usize,
}

impl Place {
    /// How many of the bytes, from the first, are those that come next in the secret.
    fn agrees_with(&self, bytes: &[u8]) -> usize {
        let rest = &self.secret.text.as_bytes()[self.next..];
        // Two thousand times as fast as byte by byte when all of it agrees, which is the rule.
        let both = rest.len().min(bytes.len());
        if rest[..both] == bytes[..both] {
            return both;
        }
        rest.iter().zip(bytes).take_while(|(secret, said)| secret == said).count()
    }
}

/// The places at which a stream may stand. Empty: it does not say a long secret now.
#[derive(Default)]
pub(super) struct Following(Vec<Place>);

impl Following {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn begin(&mut self, places: impl Iterator<Item = Place>) {
        self.0.extend(places);
    }

    /// Takes over places; those at which the stream is known to stand count once.
    pub(super) fn join(&mut self, other: Self) {
        for place in other.0 {
            if !self.0.iter().any(|known| known.next == place.next && Arc::ptr_eq(&known.secret, &place.secret)) {
                self.0.push(place);
            }
        }
    }

    /// How many of the bytes still belong to a secret. Keeps the places where all of them did.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> usize {
        let mut longest = 0;
        self.0.retain_mut(|place| {
            let count = place.agrees_with(bytes);
            longest = longest.max(count);
            place.next += count;
            count == bytes.len() && place.next < place.secret.text.len()
        });
        longest
    }
}
