//! How much of a trace is kept: the byte that crosses the limit is the last, then one message, then nothing.

/// `output_limit` is in KiB; without one it is 4 MiB.
pub const DEFAULT_LIMIT: u64 = 4096 << 10;

/// Cuts a stream of characters at a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    bytes: u64,
    written: u64,
    is_reached: bool,
}

impl Limit {
    pub fn new(bytes: u64) -> Self {
        Self { bytes, written: 0, is_reached: false }
    }

    /// Goes on with what an earlier process has written, the message included where there is one.
    pub fn resume(bytes: u64, written: u64, is_reached: bool) -> Self {
        Self { bytes, written, is_reached }
    }

    /// From now on. What is there already stays.
    pub fn set(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    pub fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// What is kept of this text, and the message that follows it.
    pub fn cut<'t>(&mut self, text: &'t str) -> (&'t str, Option<String>) {
        if self.is_reached {
            return ("", None);
        }
        let room = usize::try_from(self.bytes.saturating_sub(self.written)).unwrap_or(usize::MAX);
        if text.len() <= room {
            self.written += text.len() as u64;
            return (text, None);
        }
        self.is_reached = true;
        let kept = &text[..text.floor_char_boundary(room)];
        self.written += kept.len() as u64;
        (kept, Some(self.message()))
    }

    /// Exactly as GitLab's runner writes it.
    fn message(&self) -> String {
        let bytes = self.bytes;
        format!(
            "\n\x1b[33;1mJob's log exceeded limit of {bytes} bytes.\nJob execution will continue but no more output will be collected.\x1b[0;m\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of a text that is written so often, and its checksum.
    fn kept(limit: u64, text: &str, times: usize) -> (String, String) {
        let mut limit = Limit::new(limit);
        let mut all = String::new();
        for _ in 0..times {
            let (kept, message) = limit.cut(text);
            all += kept;
            all += &message.unwrap_or_default();
        }
        let crc = format!("{:08x}", crc32fast::hash(all.as_bytes()));
        (all.split("\n\x1b[33;1m").next().unwrap_or_default().to_owned(), crc)
    }

    #[test]
    fn runner_91_the_checksum_of_a_line() {
        assert_eq!(kept(1000, "This is a basic log line", 1).1, "367dfeeb");
    }

    #[test]
    fn runner_92_the_checksum_of_more_than_ascii() {
        let text = "Build trace with secret and multi-byte ü character";
        assert_eq!((kept(1000, text, 1).1.as_str(), text.len()), ("0d7cf601", 51));
    }

    #[test]
    fn runner_99_what_crosses_the_limit_is_cut_and_a_message_follows() {
        assert_eq!(kept(10, "This is the long message", 100), ("This is th".to_owned(), "295921ca".to_owned()));
    }

    #[test]
    fn runner_100_a_text_of_exactly_the_limit_is_kept() {
        assert_eq!(kept(10, "0123456789", 100), ("0123456789".to_owned(), "d4b99d81".to_owned()));
    }

    #[test]
    fn runner_102_characters_of_two_bytes_are_not_split() {
        assert_eq!(kept(6, "ǲ", 100), ("ǲ".repeat(3), "8c2a1eda".to_owned()));
    }

    #[test]
    fn runner_103_characters_of_three_bytes_are_not_split() {
        assert_eq!(kept(20, "─", 100), ("─".repeat(6), "f187099c".to_owned()));
    }

    #[test]
    fn runner_105_characters_of_four_bytes_are_not_split() {
        assert_eq!(kept(23, "🐤", 100), ("🐤".repeat(5), "10e32ecd".to_owned()));
        assert_eq!(kept(24, "🐤", 100), ("🐤".repeat(6), "26e43372".to_owned()));
    }

    #[test]
    fn runner_106_a_limit_may_come_later() {
        let mut limit = Limit::new(1000);
        let mut all = limit.cut("data before limit\n").0.to_owned();
        limit.set(20);
        let (kept, message) = limit.cut("data after limit\n");
        all += kept;
        assert_eq!(all.len(), 20);
        all += &message.expect("the limit was crossed");
        assert_eq!(format!("{:08x}", crc32fast::hash(all.as_bytes())), "559aa46f");
        assert_eq!(limit.cut("more"), ("", None));
    }
}
