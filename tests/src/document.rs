//! Documents as tests: the `console` blocks of a Markdown file are commands and what they print.
//!
//! A line that begins with `$ ` is a command; lines that begin with `> ` continue it; the lines below are its output. A line `...`
//! stands for any lines. Durations, times and process ids are not compared.

/// One command of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Counted from 1: where a person finds it.
    pub line: usize,
    pub command: String,
    pub shown: Vec<String>,
}

/// The commands of all `console` blocks, in order.
pub fn commands(markdown: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut inside = false;
    for (index, line) in markdown.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            inside = !inside && info.trim() == "console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            found.push(Command { line: index + 1, command: command.to_owned(), shown: Vec::new() });
        } else if inside && let Some(last) = found.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) if last.shown.is_empty() => last.command += &format!("\n{more}"),
                _ => last.shown.push(line.to_owned()),
            }
        }
    }
    found
}

/// Whether what was printed is what the document shows. Trailing blanks do not count.
/// # Errors
/// The first shown line that was not printed where it should have been.
pub fn matches(shown: &[String], printed: &str) -> Result<(), String> {
    let printed: Vec<String> = printed.trim_end().lines().map(comparable).collect();
    let mut next = 0;
    let mut anything = false;
    for line in shown {
        if line.trim() == "..." {
            anything = true;
            continue;
        }
        let wanted = comparable(line);
        let rest = printed.get(next..).unwrap_or_default();
        let position =
            if anything { rest.iter().position(|line| *line == wanted) } else { rest.first().filter(|line| **line == wanted).map(|_| 0) };
        let Some(position) = position else {
            return Err(format!("shown but not printed: {line}"));
        };
        next += position + 1;
        anything = false;
    }
    match printed.get(next) {
        Some(line) if !anything => Err(format!("printed but not shown: {line}")),
        _ => Ok(()),
    }
}

/// A line without what differs from run to run.
fn comparable(line: &str) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(word_without_accident).collect();
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn word_without_accident(word: &str) -> String {
    let bare = word.trim_matches(|c: char| "()[],;:".contains(c));
    if is_duration(bare) || is_size(bare) {
        return word.replace(bare, "…");
    }
    word.to_owned()
}

/// `12ms`, `1.20s`, `2m05s`, `1h02m`.
fn is_duration(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm'])
        && word.chars().all(|c| c.is_ascii_digit() || ".hmsµ".contains(c))
}

fn is_size(word: &str) -> bool {
    ["KiB", "MiB", "kB", "MB", "B"].iter().any(|unit| word.strip_suffix(unit).is_some_and(is_number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_continue_and_show_output() {
        let found = commands("text\n```console\n$ a \\\n> b\nout\n\n$ c\n```\n```sh\n$ not this\n```\n");
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].line, found[0].command.as_str(), found[0].shown.as_slice()),
            (3, "a \\\nb", &["out".to_owned(), String::new()][..])
        );
        assert_eq!(found[1].command, "c");
    }

    #[test]
    fn durations_are_not_compared() {
        let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(matches(&shown("build ok (1.2s)"), "build ok (340ms)\n"), Ok(()));
        assert_eq!(matches(&shown("a\n...\nd"), "a\nb\nc\nd\n"), Ok(()));
        assert!(matches(&shown("a\nd"), "a\nb\nd\n").is_err());
        assert!(matches(&shown("a"), "a\nb\n").is_err());
    }
}
