//! Files of `NAME=VALUE` lines, as `.env` files are written everywhere.
//!
//! ```text
//! # a comment
//! export PLAIN=text until the end of the line      # a comment needs a blank before it
//! SINGLE='as it stands, $ and \ too, also over
//! several lines'
//! DOUBLE="with \n \t \r \" \\ \$ escaped"
//! ```
//!
//! Nothing is expanded: a `$` is a `$`.

/// Reads all pairs in the order in which they are written.
/// # Errors
/// Every line that makes no sense, with its number.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let mut reader = Reader { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let mut pairs = Vec::new();
    let mut problems = Vec::new();
    while !reader.rest.is_empty() {
        let line = reader.line;
        match reader.pair() {
            Ok(pair) => pairs.extend(pair),
            Err(problem) => problems.push(format!("line {line}: {problem}")),
        }
        reader.skip_line();
    }
    if problems.is_empty() { Ok(pairs) } else { Err(problems) }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    /// The pair that starts here, or nothing on an empty line or a comment. Stays on the line where it ends.
    fn pair(&mut self) -> Result<Option<(String, String)>, String> {
        self.skip_blanks();
        if let Some(after) = self.rest.strip_prefix("export ") {
            self.rest = after;
            self.skip_blanks();
        }
        if self.rest.is_empty() || self.rest.starts_with(['#', '\n', '\r']) {
            return Ok(None);
        }
        let line = self.rest.lines().next().unwrap_or_default();
        let Some((name, _)) = line.split_once('=') else {
            return Err("there is no `=`".into());
        };
        let written = name.len();
        let name = name.trim_end();
        if !is_name(name) {
            return Err(format!("`{name}` is not a name: letters, digits and `_`, no digit first"));
        }
        let name = name.to_owned();
        self.rest = &self.rest[written + 1..];
        self.skip_blanks();
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            _ => self.plain(),
        };
        Ok(Some((name, value)))
    }

    fn plain(&mut self) -> String {
        let line = self.rest.lines().next().unwrap_or_default();
        let end = if line.starts_with('#') { 0 } else { line.find(" #").or_else(|| line.find("\t#")).unwrap_or(line.len()) };
        line[..end].trim_end().to_owned()
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut value = String::new();
        let mut characters = self.rest[1..].char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' if quote == '"' => match characters.next().map(|(_, escaped)| escaped) {
                    Some('n') => value.push('\n'),
                    Some('r') => value.push('\r'),
                    Some('t') => value.push('\t'),
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => value.push(escaped),
                    Some(other) => value.extend(['\\', other]),
                    None => break,
                },
                _ if character == quote => {
                    let text = &self.rest[..=at];
                    self.line += text.matches('\n').count();
                    self.rest = &self.rest[at + 2..];
                    let after = self.rest.lines().next().unwrap_or_default().trim();
                    return if after.is_empty() || after.starts_with('#') {
                        Ok(value)
                    } else {
                        Err(format!("`{after}` follows the closing {quote}"))
                    };
                }
                _ => value.push(character),
            }
        }
        Err(format!("the {quote} is not closed"))
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_line(&mut self) {
        self.line += 1;
        self.rest = self.rest.split_once('\n').map_or("", |(_, after)| after);
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (String, String) {
        parse(text).expect("no problem").remove(0)
    }

    #[test]
    fn comments_blank_lines_and_export_are_no_part_of_a_value() {
        let text = "\u{feff}# head\n\n  A=1\r\nexport B = two words  # tail\nC=#none\nD=a#b\n";
        let pairs = parse(text).expect("no problem");
        let expected = [("A", "1"), ("B", "two words"), ("C", ""), ("D", "a#b")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn quotes_keep_blanks_and_lines() {
        assert_eq!(one("K='a $b \\n\n c' # x").1, "a $b \\n\n c");
        assert_eq!(one("K=\"a\\n\\\"b\\\" \\$c \\d\"").1, "a\n\"b\" $c \\d");
    }

    #[test]
    fn every_wrong_line_is_named() {
        let problems = parse("A=1\nnothing\n1B=2\nC='x\ny' z\nD=3\nE=\"open\n").expect_err("problems");
        assert_eq!(
            problems,
            [
                "line 2: there is no `=`",
                "line 3: `1B` is not a name: letters, digits and `_`, no digit first",
                "line 4: `z` follows the closing '",
                "line 7: the \" is not closed",
            ]
        );
    }
}
