//! Documents as tests: the `console` blocks of a Markdown file are commands and what they print.
//!
//! A line that begins with `$ ` is a command; lines that begin with `> ` continue it; the lines below are its output. A line `...`
//! stands for any lines. Durations and sizes are not compared. In a block `console terminal` the first command gets a terminal, the
//! others are typed there, and the lines shown have to come in that order, among whatever else a terminal shows.

/// One command of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Counted from 1: where a person finds it.
    pub line: usize,
    pub command: String,
    /// What is typed into the terminal that the command gets; `None`: it gets none.
    pub typed: Option<Vec<String>>,
    pub shown: Vec<String>,
}

impl Command {
    /// As a line of a shell script, which needs `script` of util-linux for a terminal.
    pub fn as_script(&self) -> String {
        let Some(typed) = &self.typed else { return self.command.clone() };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let lines: Vec<String> = typed.iter().map(|line| quoted(line)).collect();
        format!(r"printf '%s\n' {} | script -qec {} /dev/null", lines.join(" "), quoted(&self.command))
    }

    /// Whether what was printed is what the document shows.
    /// # Errors
    /// What differs.
    pub fn compare(&self, printed: &str) -> Result<(), String> {
        if self.typed.is_none() {
            return matches(&self.shown, printed);
        }
        let printed = without_escapes(printed);
        let mut rest = printed.as_str();
        for line in self.shown.iter().map(|line| line.trim()).filter(|line| *line != "...") {
            let Some(at) = rest.find(line) else { return Err(format!("shown but not printed: {line}")) };
            rest = &rest[at + line.len()..];
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Commands,
    /// Before its first command.
    Terminal,
    /// After it.
    Typed,
    Other,
}

/// The commands of all `console` blocks, in order.
pub fn commands(markdown: &str) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut block = None;
    for (index, line) in markdown.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            block = match (block, info.trim()) {
                (None, "console") => Some(Block::Commands),
                (None, "console terminal") => Some(Block::Terminal),
                (None, _) => Some(Block::Other),
                (Some(_), _) => None,
            };
        } else if let Some(kind) = block {
            block = Some(take_line(&mut found, kind, index + 1, line));
        }
    }
    found
}

/// Takes one line of a block, and says what the next one is part of.
fn take_line(found: &mut Vec<Command>, block: Block, number: usize, line: &str) -> Block {
    let command = line.strip_prefix("$ ").map(str::to_owned);
    match (block, command, found.last_mut()) {
        (Block::Commands | Block::Terminal, Some(command), _) => {
            let typed = (block == Block::Terminal).then(Vec::new);
            found.push(Command { line: number, command, typed, shown: Vec::new() });
            return if block == Block::Terminal { Block::Typed } else { block };
        }
        (Block::Typed, Some(typed), Some(last)) => last.typed.get_or_insert_default().push(typed),
        (Block::Commands | Block::Typed, None, Some(last)) => match line.strip_prefix("> ") {
            Some(more) if last.shown.is_empty() => last.command += &format!("\n{more}"),
            _ => last.shown.push(line.to_owned()),
        },
        _ => {}
    }
    block
}

/// The text without what only a terminal obeys.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // Parameters, then one letter that ends them.
            while characters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
        } else if character != '\r' {
            plain.push(character);
        }
    }
    plain
}

/// Whether what was printed is what the document shows. Trailing blanks do not count.
/// # Errors
/// The first shown line that was not printed where it should have been.
fn matches(shown: &[String], printed: &str) -> Result<(), String> {
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
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_counted =
        |index: usize| words.get(index + 1).is_some_and(|next| ["bytes", "KiB", "MiB"].contains(next)) && is_number(words[index]);
    let comparable = |(index, word): (usize, &&str)| if is_counted(index) { "…".to_owned() } else { word_without_accident(word) };
    words.iter().enumerate().map(comparable).collect::<Vec<_>>().join(" ")
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
    fn a_terminal_is_typed_into() {
        let found = commands("```console terminal\n$ run --shell\n...\nit failed\n$ echo 'x'\nx\n$ exit\n```\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].as_script(), r"printf '%s\n' 'echo '\''x'\''' 'exit' | script -qec 'run --shell' /dev/null");
        assert_eq!(found[0].compare("\u{1b}[1mit\u{1b}[0m failed\r\n# echo 'x'\r\nx\r\n"), Ok(()));
        assert!(found[0].compare("x\r\nit failed\r\n").is_err());
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
