//! Tells how far a long transfer has come.

use std::time::{Duration, Instant};
use step_sdk::say;

/// Nobody waits for shorter ones.
const EVERY: Duration = Duration::from_secs(10);

pub struct Progress {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    said: Instant,
}

impl Progress {
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        Self { what, total, done: 0, said: Instant::now() }
    }

    pub fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        if self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            say(&words(self.what, self.done, self.total));
        }
    }
}

fn words(what: &str, done: u64, total: Option<u64>) -> String {
    match total.filter(|total| *total > 0) {
        Some(total) => format!("{what}: {} of {} ({} %)", shown(done), shown(total), done.saturating_mul(100) / total),
        None => format!("{what}: {}", shown(done)),
    }
}

/// A size as people read it.
#[expect(clippy::cast_precision_loss, reason = "a person reads two digits of it")]
pub fn shown(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_tells_how_far_it_is() {
        assert_eq!(words("Uploading", 3 << 20, Some(12 << 20)), "Uploading: 3.0 MiB of 12.0 MiB (25 %)");
        assert_eq!(words("Downloading", 100, None), "Downloading: 100 bytes");
    }
}
