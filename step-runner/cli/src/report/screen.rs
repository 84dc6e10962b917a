//! Standard output and standard error, and on a terminal one line at the bottom that shows what runs.
//!
//! The status line is written without a newline and erased before anything else is written, so it never ends up in what was written. Nothing
//! of the terminal's own state is changed: there is nothing to restore.

mod system;

use super::Surface;
use anstream::ColorChoice;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};
use step_console::tree::in_words;

/// Back to the first column, and away with the line.
const ERASE: &str = "\r\x1b[K";

/// Quicker steps are not worth a status line: it would only flicker.
const WORTH_SHOWING: Duration = Duration::from_millis(500);

/// Both streams of the process.
#[derive(Debug)]
pub struct Screen {
    output: system::Output,
    color: bool,
    /// Whether there is a status line.
    live: bool,
    /// Standard output and standard error end in the same place, so a line of ours must not begin in the middle of one of theirs.
    same_place: bool,
    /// What was written last did not end its line.
    in_line: bool,
    drawn: bool,
    running: Option<(Box<str>, Instant)>,
}

impl Screen {
    /// `live`: a status line is wanted, if standard error is a terminal that can show one.
    pub fn new(live: bool) -> Self {
        let color = anstream::AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self {
            output: system::Output::default(),
            color,
            live: live && !dumb && io::stderr().is_terminal(),
            same_place: system::is_same_place(),
            in_line: false,
            drawn: false,
            running: None,
        }
    }

    /// Takes the status line away.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = io::stderr().write_all(ERASE.as_bytes());
        }
    }
}

impl Surface for Screen {
    fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.clear();
        if let Some(last) = bytes.last() {
            self.in_line = *last != b'\n';
        }
        self.output.write(bytes)
    }

    /// A standard error that is gone takes the report with it and nothing else.
    fn say(&mut self, lines: &str) {
        let mut text = String::with_capacity(lines.len() + ERASE.len());
        if std::mem::take(&mut self.drawn) {
            text.push_str(ERASE);
        }
        if self.same_place && std::mem::take(&mut self.in_line) {
            text.push('\n');
        }
        if self.color {
            text.push_str(lines);
        } else {
            text.extend(anstream::adapter::strip_str(lines));
        }
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn running(&mut self, label: Option<&str>) {
        self.running = label.map(|label| (label.into(), Instant::now()));
    }

    fn tick(&mut self) {
        if !self.live || (self.same_place && self.in_line) {
            return;
        }
        let Some((label, since)) = &self.running else { return self.clear() };
        let elapsed = since.elapsed();
        if elapsed < WORTH_SHOWING {
            return;
        }
        let line = status_line(label, elapsed, system::width());
        let line = if self.color { format!("\x1b[2m{line}\x1b[0m") } else { line };
        self.drawn = true;
        let _ = io::stderr().write_all(format!("{ERASE}{line}").as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `~ build/compile 12 s`, cut so that it stays on one line.
fn status_line(label: &str, elapsed: Duration, width: usize) -> String {
    let time = in_words(Duration::from_secs(elapsed.as_secs()));
    let room = width.saturating_sub(time.chars().count() + 5);
    let length = label.chars().count();
    if length <= room {
        return format!("~ {label}  {time}");
    }
    let end: String = label.chars().skip(length - room.saturating_sub(1)).collect();
    format!("~ …{end}  {time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_stays_on_one_line() {
        insta::assert_snapshot!(status_line("build/compile", Duration::from_millis(12_700), 80), @"~ build/compile  12.00s");
        let narrow = status_line("a/very/long/path/to/compile", Duration::from_secs(65), 24);
        insta::assert_snapshot!(narrow, @"~ …th/to/compile  1m05s");
    }
}
