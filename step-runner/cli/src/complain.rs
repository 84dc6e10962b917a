//! How a problem of a document is shown: the place underlined, why, and a hint.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::ops::Range;
use step_model::diagnostic::{Place, Problem};

/// Where lines are cut.
const WIDEST: usize = 140;

/// Bytes of a line that is drawn. Of a longer one (a job as JSON, say) a few letters are quoted.
const LONGEST: usize = 4096;

/// A problem as a person reads it, with colours; a stream that has none takes them out. Ends with a newline.
///
/// `file` is how the reader would name the file; empty for a text that is none. `strict` shows warnings as what they are then.
pub fn shown(problem: &Problem, file: &str, text: Option<&str>, strict: bool) -> String {
    let level = if problem.is_error() || strict { Level::ERROR } else { Level::WARNING };
    let message = visible(&problem.message);
    let hint = problem.hint.as_deref().map(visible);
    let mut group = Group::with_title(level.primary_title(message.as_str()));
    let excerpt = text.zip(problem.place.as_ref()).map(|(text, place)| Excerpt::of(text, place));
    let name = visible(file);
    match &excerpt {
        Some(Excerpt::Line { text, line, span }) => {
            let path = (!name.is_empty()).then_some(name.as_str());
            let annotation = AnnotationKind::Primary.span(span.clone());
            group = group.element(Snippet::source(text.as_str()).line_start(*line).path(path).fold(false).annotation(annotation));
        }
        _ if name.is_empty() => {}
        _ => {
            let origin = Origin::path(name.as_str());
            group = group.element(match &problem.place {
                Some(place) => origin.line(place.line as usize).char_column(place.column as usize),
                None => origin,
            });
        }
    }
    if let Some(Excerpt::Part(part)) = &excerpt {
        group = group.element(Level::NOTE.message(part.as_str()));
    }
    if excerpt.is_none() && name.is_empty() {
        let hint = hint.map(|hint| format!(" hint: {hint}\n")).unwrap_or_default();
        return Renderer::styled().render(&[group]) + "\n" + &hint;
    }
    if let Some(hint) = &hint {
        group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
    }
    Renderer::styled().term_width(WIDEST).render(&[group]) + "\n"
}

/// What is shown of a text.
enum Excerpt {
    /// The first line of the place, and what of it is meant: what goes on below it is seen from there.
    Line { text: String, line: usize, span: Range<usize> },
    /// Some letters from the place on.
    Part(String),
}

impl Excerpt {
    fn of(text: &str, place: &Place) -> Self {
        let at = place.span.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let line = text[start..end].trim_end_matches('\r');
        if line.len() > LONGEST {
            return Self::Part(format!("in a long line: {}...", visible(&text[at..end].chars().take(WIDEST / 2).collect::<String>())));
        }
        let from = (at - start).min(line.len());
        let to = (place.span.end.max(at) - start).clamp(from, line.len());
        let meant = line[from..to].trim_end();
        // Tabs and what cannot be seen would move the underline or write to the terminal.
        let [before, meant, after] = [&line[..from], meant, &line[from + meant.len()..]].map(visible);
        let span = before.len()..before.len() + meant.len();
        Self::Line { text: format!("{before}{meant}{after}"), line: place.line as usize, span }
    }
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
    use step_model::document::raw::read;

    fn first(text: &str, file: &str, strict: bool) -> String {
        let problems = read(text, "step.yml").problems;
        anstream::adapter::strip_str(&shown(&problems[0], file, Some(text), strict)).to_string()
    }

    #[test]
    fn the_place_is_underlined() {
        insta::assert_snapshot!(first("spec:\n  inputs:\n    who: {type: strnig}\n---\nexec: {command: [a]}\n", "greet/step.yml", false), @r#"
        error: `strnig` is no type: value must be one of "string", "number", "boolean", "struct", "array"
         --> greet/step.yml:3:17
          |
        3 |     who: {type: strnig}
          |                 ^^^^^^
          |
          = hint: did you mean `string`?
        "#);
        insta::assert_snapshot!(first("spec: {}\n---\nrun:\n  - name: a\n    script: x\n    inputs:\n      a: 1\n", "a.yml", false), @r"
        error: the `script` keyword cannot be used with the `inputs` keyword
         --> a.yml:5:5
          |
        5 |     script: x
          |     ^^^^^^
          |
          = hint: a script takes values through `env`
        ");
    }

    #[test]
    fn a_warning_is_an_error_when_strict() {
        insta::assert_snapshot!(first("spec: {inptus: {}}\n---\nexec: {command: [a]}\n", "a.yml", false), @r"
        warning: unknown key `inptus` in `spec` is ignored
         --> a.yml:1:8
          |
        1 | spec: {inptus: {}}
          |        ^^^^^^
          |
          = hint: did you mean `inputs`?
        ");
        insta::assert_snapshot!(first("spec: {inptus: {}}\n---\nexec: {command: [a]}\n", "a.yml", true), @r"
        error: unknown key `inptus` in `spec` is ignored
         --> a.yml:1:8
          |
        1 | spec: {inptus: {}}
          |        ^^^^^^
          |
          = hint: did you mean `inputs`?
        ");
    }

    #[test]
    fn a_problem_of_the_whole_text_has_no_line() {
        insta::assert_snapshot!(first("", "a.yml", false), @r"
        error: decoding: EOF: the text is empty, but a definition has two documents
        --> a.yml
         = hint: write `{}` or `spec:`, a line `---`, and then `exec:` or `run:`
        ");
        insta::assert_snapshot!(first("{}\n", "", false), @r"
        error: decoding: EOF: the text ends after its first document, where the definition is missing
          |
        1 | {}
          |   ^
          |
          = hint: write a line `---`, and then `exec:` or `run:`; a step that takes and gives nothing has `{}` as its first document
        ");
    }

    #[test]
    fn a_problem_without_a_text_is_two_lines() {
        let problem = Problem::warning("code", "it is odd", None).with_hint("make it even");
        let shown = anstream::adapter::strip_str(&shown(&problem, "", None, false)).to_string();
        assert_eq!(shown, "warning: it is odd\n hint: make it even\n");
    }

    #[test]
    fn the_end_of_a_text_and_long_lines_can_be_shown() {
        let long = format!("{{}}\n---\nrun: [{{name: a, script: \"{}\"}}, {{nmae: b, script: x}}]", "x".repeat(1000));
        let endless = long.replace('x', "xxxxxxxx");
        insta::assert_snapshot!(first(&endless, "a.yml", false), @r"
        warning: unknown key `nmae` in a step of `run` is ignored
        --> a.yml:3:8031
         = note: in a long line: nmae: b, script: xxxxxxxx}]...
         = hint: did you mean `name`?
        ");
        insta::assert_snapshot!(first(&long, "a.yml", false), @r#"
        warning: unknown key `nmae` in a step of `run` is ignored
         --> a.yml:3:1031
          |
        3 | ...xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}, {nmae: b, script: x}]
          |                                                                   ^^^^
          |
          = hint: did you mean `name`?
        "#);
    }

    #[test]
    fn nothing_is_written_that_a_terminal_obeys() {
        let shown = first("spec: {}\n---\nexec: {\"com\\emand\": [a], command: [b]}\t# \u{1b}[31m ü\n", "a\u{1b}.yml", false);
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
