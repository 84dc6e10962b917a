//! How much of a log is kept. Pure.

use super::Framing;

/// Counts the bytes of a log. The tail is cut, so offsets never shift.
#[derive(Debug)]
pub struct Limit {
    framing: Framing,
    bytes: u64,
    left: u64,
}

impl Limit {
    pub fn new(framing: Framing, bytes: u64) -> Self {
        Self { framing, bytes, left: bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of these framed bytes still fit: lines with their headers, or whole characters. Fewer than there are: nothing fits from
    /// then on.
    pub fn admit(&mut self, framed: &[u8]) -> usize {
        let fit = usize::try_from(self.left).unwrap_or(usize::MAX);
        if framed.len() <= fit {
            self.left -= framed.len() as u64;
            return framed.len();
        }
        self.left = 0;
        match self.framing {
            Framing::Stamped => memchr::memrchr(b'\n', &framed[..fit]).map_or(0, |end| end + 1),
            Framing::Raw => (fit.saturating_sub(3)..=fit).rev().find(|at| !(0x80..0xc0).contains(&framed[*at])).unwrap_or(fit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_log_is_cut_between_lines() {
        let mut limit = Limit::new(Framing::Stamped, 10);
        assert_eq!(limit.admit(b"1234\n"), 5);
        assert_eq!(limit.admit(b"12\n45\n"), 3);
        assert_eq!(limit.admit(b"\n"), 0, "what is smaller does not fit later either");
    }

    #[test]
    fn a_raw_log_is_cut_between_characters() {
        let mut limit = Limit::new(Framing::Raw, 10);
        assert_eq!(limit.admit("12345678é".as_bytes()), 10);
        let mut limit = Limit::new(Framing::Raw, 9);
        assert_eq!(limit.admit("12345678é".as_bytes()), 8);
        assert_eq!(limit.admit(b"x"), 0);
        assert_eq!(Limit::new(Framing::Raw, 2).admit(&[0x80; 9]), 2, "bytes that are no characters");
    }

    #[test]
    fn what_fits_exactly_is_no_reason_to_cut() {
        let mut limit = Limit::new(Framing::Raw, 3);
        assert_eq!(limit.admit(b"abc"), 3);
        assert_eq!(limit.admit(b""), 0);
        assert_eq!(limit.admit(b"d"), 0);
    }
}
