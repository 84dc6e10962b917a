//! What is around a place of a text that somebody is still typing: told by lines and their indentation, since such a text is seldom whole.

/// Where the cursor is.
#[derive(Debug, PartialEq, Eq)]
pub enum Around<'t> {
    /// In `${{ }}`: the dotted path that begins before the cursor and goes on behind it, and the part up to the cursor.
    Expression { whole: &'t str, typed: &'t str },
    /// Below these keys, the outermost first; `-` for an item of a list. The last is what is typed so far on this line.
    Keys(Vec<&'t str>),
}

/// Looks around byte `at`.
pub fn around(text: &str, at: usize) -> Around<'_> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    if let Some(open) = line.rfind("${{").filter(|open| !line[*open..].contains("}}")) {
        let is_path = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
        let typed = &line[open + 3..];
        let begin = start + open + 3 + typed.rfind(|letter| !is_path(letter)).map_or(0, |last| last + 1);
        let end = at + text[at..].find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(text.len() - at);
        return Around::Expression { whole: &text[begin..end], typed: &text[begin..at] };
    }
    let mut keys = vec![line.trim_start().trim_start_matches("- ").trim_start()];
    let mut below = indent(line);
    if line.trim_start().starts_with('-') {
        keys.push("-");
    }
    for above in text[..start].lines().rev() {
        let trimmed = above.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if trimmed.starts_with("---") && indent(above) == 0 {
            break;
        }
        let dash = trimmed.starts_with("- ").then(|| above.len() - trimmed.len());
        let content = trimmed.trim_start_matches("- ").trim_start();
        let column = above.len() - content.len();
        if column < below {
            keys.push(content.split(':').next().unwrap_or_default().trim());
            below = column;
        }
        if let Some(dash) = dash.filter(|dash| *dash < below) {
            keys.push("-");
            below = dash;
        }
    }
    keys.reverse();
    Around::Keys(keys)
}

fn indent(line: &str) -> usize {
    let trimmed = line.trim_start();
    let content = trimmed.trim_start_matches("- ").trim_start();
    line.len() - content.len()
}

/// What the step that holds byte `at` refers to: the value of `func:` or `step:` at the same depth.
pub fn reference(text: &str, at: usize) -> Option<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let number = text[..at.min(text.len())].matches('\n').count();
    let begin = (0..=number.min(lines.len().saturating_sub(1))).rev().find(|line| lines[*line].trim_start().starts_with("- "))?;
    let dash = lines[begin].len() - lines[begin].trim_start().len();
    let is_further = |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() > dash;
    let of_step = lines[begin + 1..].iter().take_while(is_further);
    std::iter::once(&lines[begin]).chain(of_step).find_map(|line| {
        let content = line.trim_start().trim_start_matches("- ").trim_start_matches('{').trim_start();
        let value = ["func:", "step:"].iter().find_map(|key| {
            let behind = content.find(key).filter(|found| *found == 0 || content[..*found].ends_with([' ', ',']))?;
            Some(&content[behind + key.len()..])
        })?;
        let value = value.split(" #").next().unwrap_or_default();
        let value = if content.contains('{') || line.contains('{') { value.split(',').next().unwrap_or_default() } else { value };
        Some(value.trim().trim_matches(['"', '\'', '}'])).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_mark(text: &str) -> (String, usize) {
        let at = text.find('|').expect("a mark");
        (text.replacen('|', "", 1), at)
    }

    #[test]
    fn keys_are_told_by_indentation() {
        let (text, at) = at_mark("{}\n---\nrun:\n  - name: a\n    func: ./x\n    # why\n    inputs:\n      wh|\n");
        assert_eq!(around(&text, at), Around::Keys(vec!["run", "-", "inputs", "wh"]));
        assert_eq!(reference(&text, at), Some("./x"));
        let (text, at) = at_mark("run:\n  - na|\n");
        assert_eq!(around(&text, at), Around::Keys(vec!["run", "-", "na"]));
    }

    #[test]
    fn an_expression_is_the_path_around_the_cursor() {
        let (text, at) = at_mark("a: x ${{ 1 + steps.bui|ld.outputs }}\n");
        assert_eq!(around(&text, at), Around::Expression { whole: "steps.build", typed: "steps.bui" });
        let (text, at) = at_mark("a: ${{ b }} c|\n");
        assert!(matches!(around(&text, at), Around::Keys(_)));
    }

    #[test]
    fn the_reference_of_a_step_on_one_line_is_found() {
        let text = "run:\n  - {name: a, func: ./x, inputs: {b: 1}}\n  - name: c\n    step: \"./y\" # z\n";
        assert_eq!(reference(text, text.find("inputs").expect("there")), Some("./x"));
        assert_eq!(reference(text, text.find("step").expect("there")), Some("./y"));
    }
}
