//! How a problem is shown: what, where with the place underlined, and the way out. Of the file only what is known to hold no secret is quoted.

use crate::Parsed;
use crate::problem::{Problem, Severity};
use crate::tables::GLOBAL;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::ops::Range;

/// Whether colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Plain,
    Coloured,
}

/// Where lines are cut.
const WIDEST: usize = 140;

/// Bytes of a line that is drawn; a longer one is only counted.
const LONGEST: usize = 4096;

impl Parsed {
    /// One problem of the file as a person reads it. `text` is what was read, `file` how the reader would name it. Ends with a newline.
    pub fn show(&self, problem: &Problem, file: &str, text: &str, look: Look) -> String {
        let level = match problem.severity {
            Severity::Notice => Level::NOTE.with_name("notice"),
            Severity::Warning => Level::WARNING,
            Severity::Refused | Severity::Error => Level::ERROR,
        };
        let title = visible(&self.title(problem));
        let hint = problem.hint.as_deref().map(visible);
        let file = visible(file);
        let mut group = Group::with_title(level.primary_title(title.as_str()));
        let excerpt = problem.place.as_ref().and_then(|place| Excerpt::of(text, place.span.clone(), self));
        match (&problem.place, &excerpt) {
            (Some(place), Some(excerpt)) => {
                let annotation = AnnotationKind::Primary.span(excerpt.span.clone());
                let snippet = Snippet::source(excerpt.line.as_str()).line_start(place.line as usize).path(file.as_str()).fold(false);
                group = group.element(snippet.annotation(annotation));
            }
            (Some(place), None) => {
                group = group.element(Origin::path(file.as_str()).line(place.line as usize).char_column(place.column as usize));
            }
            (None, _) => group = group.element(Origin::path(file.as_str())),
        }
        if let Some(hint) = &hint {
            group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
        }
        let renderer = match look {
            Look::Plain => Renderer::plain(),
            Look::Coloured => Renderer::styled(),
        };
        renderer.term_width(WIDEST).render(&[group]) + "\n"
    }

    /// The message, which names the entry that cannot work.
    pub fn title(&self, problem: &Problem) -> String {
        match problem.entry.and_then(|entry| self.names.get(entry)) {
            Some(name) if problem.severity == Severity::Refused => format!("{name} is refused: {}", problem.message),
            _ => problem.message.clone(),
        }
    }
}

/// The first line of a place, without what may be secret.
struct Excerpt {
    line: String,
    /// What of it is meant.
    span: Range<usize>,
}

impl Excerpt {
    fn of(text: &str, place: Range<usize>, parsed: &Parsed) -> Option<Self> {
        let at = place.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let line = text[start..end].trim_end_matches('\r');
        if line.len() > LONGEST {
            return None;
        }
        let meant = at..place.end.clamp(at, at.max(start + line.len()));
        let mut excerpt = Self { line: String::new(), span: 0..0 };
        for (part, is_shown) in parts(text, start..start + line.len(), parsed) {
            excerpt.push(text, part, is_shown, &meant);
        }
        excerpt.line.truncate(excerpt.line.trim_end().len());
        let length = excerpt.line.len();
        let from = excerpt.span.start.min(length);
        excerpt.span = from..excerpt.span.end.clamp(from, length);
        Some(excerpt)
    }

    fn push(&mut self, text: &str, part: Range<usize>, is_shown: bool, meant: &Range<usize>) {
        let before = self.line.len();
        let piece = &text[part.clone()];
        let is_blank = piece.trim().is_empty();
        self.line += &if is_shown || is_blank { visible(piece) } else { "…".to_owned() };
        let within = |at: usize| match is_shown || is_blank {
            true => before + visible(&text[part.start..at]).len(),
            // What is hidden is underlined as a whole.
            false => before,
        };
        if (part.start..part.end).contains(&meant.start) || (meant.start == part.end && meant.is_empty()) {
            self.span = within(meant.start)..self.line.len();
        }
        if (part.start..=part.end).contains(&meant.end) && meant.end > part.start {
            self.span.end = if is_shown || is_blank { within(meant.end) } else { self.line.len() };
        }
    }
}

/// The parts of a line, and whether each may be shown: headers, keys, and values of keys that hold no secret.
fn parts(text: &str, line: Range<usize>, parsed: &Parsed) -> Vec<(Range<usize>, bool)> {
    let content = &text[line.clone()];
    let shown = &parsed.shown;
    let is_torn = parsed.torn.iter().any(|at| (line.start..=line.end).contains(at));
    let is_harmless = |piece: &str| is_punctuation(piece) || (is_torn && is_harmless(content, piece));
    let mut parts = Vec::new();
    let visible_until = header(content).or_else(|| key(content)).unwrap_or(0);
    // They are in order and do not touch.
    let from = shown.partition_point(|span| span.end <= line.start);
    let spans: Vec<Range<usize>> = shown[from..].iter().take_while(|span| span.start < line.end).cloned().collect();
    let starts_inside_a_value = spans.first().is_some_and(|span| span.start < line.start);
    let mut at = if starts_inside_a_value { line.start } else { line.start + visible_until };
    if at > line.start {
        parts.push((line.start..at, true));
    }
    for span in spans {
        // Before `at` stands what is shown in any case.
        let (start, end) = (span.start.max(at), span.end.min(line.end));
        if start > at {
            parts.push((at..start, is_harmless(&text[at..start])));
        }
        if end > start {
            parts.push((start..end, true));
            at = end;
        }
    }
    if at < line.end {
        let rest = &text[at..line.end];
        let comment = rest.find('#').map_or(line.end, |offset| at + offset);
        parts.push((at..comment, is_harmless(&text[at..comment])));
    }
    parts
}

/// The length of a line's header, without a comment. What only looks like one, in a script, say, has other letters.
fn header(line: &str) -> Option<usize> {
    let until = line.find('#').unwrap_or(line.len());
    let header = line[..until].trim();
    let name = header.strip_prefix('[')?.strip_suffix(']')?;
    is_bare(name.trim_matches(['[', ']'])).then_some(until)
}

/// The length of a line's key with what is around its equals sign.
fn key(line: &str) -> Option<usize> {
    let (key, value) = line.split_once('=')?;
    is_bare(key.trim()).then_some(line.len() - value.trim_start().len())
}

fn is_bare(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

fn is_punctuation(piece: &str) -> bool {
    piece.trim().chars().all(|letter| "[]{},\"'".contains(letter))
}

/// Whether a piece of a line that could not be read may be shown: one word behind a key that holds no secret in any table.
fn is_harmless(line: &str, piece: &str) -> bool {
    let Some((key, _)) = line.split_once('=') else { return false };
    let mut found = GLOBAL.all().into_iter().filter_map(|table| table.key(key.trim())).peekable();
    let is_known = found.peek().is_some();
    let is_one_word = !piece.trim().contains(char::is_whitespace) && !piece.contains(['=', '@', '/']);
    is_known && is_one_word && found.all(|key| !key.kind.is_secret())
}

/// Nothing that a terminal would obey, and blanks for tabs.
fn visible(text: &str) -> String {
    let show = |letter: char| match letter {
        '\t' => " ".to_owned(),
        letter if letter.is_control() => letter.escape_default().to_string(),
        letter => letter.to_string(),
    };
    text.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn shown(text: &str) -> String {
        let parsed = crate::parse(text, &BTreeMap::new());
        parsed.problems.iter().map(|problem| parsed.show(problem, "config.toml", text, Look::Plain)).collect()
    }

    #[test]
    fn the_place_is_underlined_and_the_hint_says_the_way_out() {
        insta::assert_snapshot!(shown("concurent = 4\n"), @r"
        warning: unknown key `concurent` in the global section is ignored
         --> config.toml:1:1
          |
        1 | concurent = …
          | ^^^^^^^^^
          |
          = hint: did you mean `concurrent`?
        ");
    }

    #[test]
    fn an_entry_that_cannot_work_is_named() {
        let text = concat!(
            "[[runners]]\nname = \"build\"\nurl = \"https://gitlab.example\"\ntoken = \"glrt-abcdefghijkl\"\n",
            "request_concurrency = 2\nexecutor = \"shel\"\nlimit = \"ten\" # glrt-abcdefghijkl\n"
        );
        insta::assert_snapshot!(shown(text), @r#"
        error: runner `build` is refused: there is no executor `shel`
         --> config.toml:6:12
          |
        6 | executor = "shel"
          |            ^^^^^^
          |
          = hint: did you mean `shell`?
        error: runner `build` is refused: `limit` is a string, but has to be an integer
         --> config.toml:7:9
          |
        7 | limit = "ten"
          |         ^^^^^
          |
          = hint: write it without quotes
        "#);
    }

    #[test]
    fn no_secret_is_quoted() {
        for text in [
            "[[runners]]\ntoken = 5 # glrt-t0p\n",
            "[[runners]]\ntokn = \"glrt-t0p\"\n",
            "[[runners]]\ntoken = \"glrt-t0p\n",
            "[[runners]]\ntoken = glrt-t0p\n",
            "[[runners]] # glrt-t0p\ntoken = \"\"\n",
            "[[runners]]\nname = \"x\" token = \"glrt-t0p\"\n",
            "[[runners]]\nenvironment = [\"A\", \"B=glrt-t0p\", 3]\n",
            "[[runners]]\nenvironment = [\n\"glrt-t0p\", 3]\n",
            "[[runners]]\nexecutor = 3\n[runners.autoscaler]\nplugin_config = 'glrt-t0p'\n",
            "[[runners]]\n[runners.machine]\nMachineOptions = [\"x=glrt-t0p\"\n]\nMachineOptionsWithName = ['glrt-t0p']\n",
            "runners = [{token = \"glrt-t0p\", limit = \"x\", nme = 'glrt-t0p'}]\n",
            "[[runners]]\ntoken = \"\"\"\nglrt-t0p \\q\n\"\"\"\n",
            "glrt-t0p\n",
            "[[runners]]\ntoken = \"$glrt-t0p\"\nurl = \"https://x\"",
            "[[runners]]\ntoken = \"a\"\nurl = \"x://me:t0p@x\"",
            "[[runners]]\npre_build_script = [\"login t0p\"]",
        ] {
            let parsed = crate::parse(text, &BTreeMap::new());
            let all = format!("{}{parsed:?}", shown(text));
            assert!(!all.contains("t0p"), "{text}\n{all}");
            assert!(parsed.problems.iter().any(Problem::is_finding), "{text}");
        }
    }

    #[test]
    fn nothing_is_written_that_a_terminal_obeys() {
        let shown = shown("\u{1b}[31m = 1\n[x\u{1b}]\nname\t= \"\u{7}\"\n");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown}");
    }
}
