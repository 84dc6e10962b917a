//! A file of ours in its usual form, with its comments: indented by two, one blank behind a dash and a colon, no blanks at the ends of lines, no
//! two empty lines in a row, one newline at the end.
//!
//! Only white space between what is written is changed: quotes, flow collections, block texts and the order of keys stay. So nothing has to be
//! invented for a comment, and what a file says cannot change; who calls [`format`] gets proof, since both texts are read and compared.

use super::yaml::{self, Content, Node, Stream};
use crate::diagnostic::{Lines, Problem};
use std::collections::BTreeMap;

/// Why a text has no usual form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoForm {
    #[error("it is not YAML")]
    Unreadable(Vec<Problem>),
    /// A fault of ours: the text stays as it is.
    #[error("its usual form would not say the same")]
    Different,
}

/// The usual form.
/// # Errors
/// The text is not YAML.
pub fn format(text: &str) -> Result<String, NoForm> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let lines = Lines::of(&text);
    let before = yaml::parse(&text, usize::MAX, &lines);
    if !before.problems.is_empty() {
        return Err(NoForm::Unreadable(before.problems));
    }
    let mut layout = Layout { text: &text, lines: &lines, columns: BTreeMap::new(), shifts: BTreeMap::new(), gaps: Vec::new() };
    for root in before.documents.iter().flatten() {
        layout.node(root, 0);
    }
    layout.gaps.sort_by_key(|gap| gap.start);
    let formatted = layout.written();
    let after = yaml::parse(&formatted, usize::MAX, &Lines::of(&formatted));
    if says_the_same(&before, &after) { Ok(formatted) } else { Err(NoForm::Different) }
}

fn says_the_same(before: &Stream<'_>, after: &Stream<'_>) -> bool {
    let same = |(left, right): (&Option<Node<'_>>, &Option<Node<'_>>)| match (left, right) {
        (Some(left), Some(right)) => is_same(left, right),
        (left, right) => left.is_none() && right.is_none(),
    };
    after.problems.is_empty() && before.documents.len() == after.documents.len() && before.documents.iter().zip(&after.documents).all(same)
}

fn is_same(left: &Node<'_>, right: &Node<'_>) -> bool {
    left.tag == right.tag
        && match (left.content(), right.content()) {
            (Content::Scalar { text, plain }, Content::Scalar { text: other, plain: also }) => text == other && plain == also,
            (Content::List(items), Content::List(others)) => {
                items.len() == others.len() && items.iter().zip(others).all(|(left, right)| is_same(left, right))
            }
            (Content::Map(entries), Content::Map(others)) => {
                let pairs = entries.iter().zip(others);
                entries.len() == others.len() && pairs.clone().all(|(left, right)| is_same(&left.0, &right.0) && is_same(&left.1, &right.1))
            }
            _ => false,
        }
}

struct Layout<'t> {
    text: &'t str,
    lines: &'t Lines,
    /// The column that the first word of a line gets, by line.
    columns: BTreeMap<u32, usize>,
    /// Of lines within a text or a flow collection: a column, and the one that it moves to.
    shifts: BTreeMap<u32, (usize, usize)>,
    /// White space that becomes one blank: bytes of the text.
    gaps: Vec<std::ops::Range<usize>>,
}

impl Layout<'_> {
    fn node(&mut self, node: &Node<'_>, column: usize) {
        // What an alias stands for was laid out where it stands.
        if matches!(node.content, Content::Shared(_)) {
            return;
        }
        let span = node.span.range();
        let is_flow = self.text[span.start..].starts_with(['[', '{']);
        match node.content() {
            Content::Map(entries) if !is_flow => {
                // A key that is merged in stands elsewhere.
                for (key, value) in entries.iter().filter(|(key, _)| span.contains(&key.span.range().start)) {
                    self.place(key.span.range().start, column);
                    self.entry(key, value, column);
                }
            }
            Content::List(items) if !is_flow => {
                for item in items {
                    self.item(item, column);
                }
            }
            _ => {
                self.place(span.start, column);
                self.follow(span.start, span);
            }
        }
    }

    /// Something that stands first on its line gets this column.
    fn place(&mut self, at: usize, column: usize) {
        let line = self.lines.line(at);
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        if self.text[start..at].trim().is_empty() {
            self.columns.insert(line, column);
        }
    }

    fn entry(&mut self, key: &Node<'_>, value: &Node<'_>, column: usize) {
        let (end, start) = (key.span.range().end, value.span.range().start);
        let colon = self.text.get(end..).and_then(|rest| rest.find(':')).map(|offset| end + offset);
        let Some(colon) = colon.filter(|colon| self.text[end..*colon].trim().is_empty() && *colon < start.max(end + 1)) else { return };
        let is_on_one_line = start > colon && !self.text[colon..start].contains('\n');
        if self.is_block_text(colon + 1, value) {
            self.block_text(colon + 1, value.span.range().end, column);
        } else if is_on_one_line {
            let behind = colon + 1;
            let gap = behind + blanks(&self.text[behind..]);
            self.gaps.push(behind..gap);
            self.follow(key.span.range().start, value.span.range());
        } else if start > colon {
            self.node(value, column + 2);
        }
    }

    fn item(&mut self, item: &Node<'_>, column: usize) {
        let start = item.span.range().start;
        let line = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        // The text of a block begins below its dash.
        let before = if self.text[line..start].trim().is_empty() { self.text[..start].trim_end().len() } else { start };
        let Some(dash) = self.text[..before].rfind('-') else { return };
        if self.is_block_text(dash + 1, item) {
            self.place(dash, column);
            self.gaps.push(dash + 1..dash + 1 + blanks(&self.text[dash + 1..]));
            return self.block_text(dash + 1, item.span.range().end, column);
        }
        if self.text[dash..start].contains('\n') || self.text[dash..start].contains('#') {
            return self.node(item, column + 2);
        }
        let gap = dash + 1 + blanks(&self.text[dash + 1..]);
        self.place(dash, column);
        self.gaps.push(dash + 1..gap);
        let is_flow = self.text[start..].starts_with(['[', '{']);
        match item.content() {
            Content::Map(_) | Content::List(_) if !is_flow => self.node(item, column + 2),
            _ => self.follow(dash, item.span.range()),
        }
    }

    fn is_block_text(&self, behind: usize, value: &Node<'_>) -> bool {
        matches!(value.content(), Content::Scalar { plain: false, .. })
            && self.text[behind..].trim_start_matches(' ').starts_with(['|', '>'])
    }

    /// A text by lines, whose sign stands behind `at`: its lines stand two columns behind what it belongs to. With a number for its indentation,
    /// they move as that does.
    fn block_text(&mut self, at: usize, end: usize, column: usize) {
        self.gaps.push(at..at + blanks(&self.text[at..]));
        let sign = self.text[at..].lines().next().unwrap_or_default().trim_start();
        let has_number = sign.chars().skip(1).take(2).any(|letter| letter.is_ascii_digit());
        let keeps_end = sign.chars().skip(1).take(2).any(|letter| letter == '+');
        let first = self.lines.line(at) + 1;
        let content = &self.text[..end.min(self.text.len())];
        let content = if keeps_end { content.trim_end_matches(' ') } else { content.trim_end() };
        let last = self.lines.line(content.len()) - u32::from(content.ends_with('\n'));
        let all: Vec<&str> = self.text.lines().skip(first as usize - 2).take((last + 2 - first) as usize).collect();
        let Some((above, content)) = all.split_first() else { return };
        let old = blanks(above);
        let new = self.columns.get(&(first - 1)).copied().unwrap_or(old);
        let base = content.iter().find(|line| !line.trim().is_empty()).map_or(column + 2, |line| blanks(line));
        let shift = if has_number { (old, new) } else { (base, column + 2) };
        self.shifts.extend((first..=last).map(|number| (number, shift)));
    }

    /// The further lines of something move with the line of `at`.
    fn follow(&mut self, at: usize, span: std::ops::Range<usize>) {
        let first = self.lines.line(at);
        let line = self.text.lines().nth(first as usize - 1).unwrap_or_default();
        let old = blanks(line);
        let new = self.columns.get(&first).copied().unwrap_or(old);
        let end = self.text[..span.end.min(self.text.len()).max(span.start)].trim_end().len();
        for line in self.lines.line(span.start) + 1..=self.lines.line(end) {
            self.shifts.insert(line, (old, new));
        }
    }

    fn written(&self) -> String {
        let all: Vec<&str> = self.text.split('\n').collect();
        let mut out = String::with_capacity(self.text.len());
        let mut offset = 0;
        let mut empty = 0;
        for (index, line) in all.iter().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let content = line.trim_start_matches(' ');
            let indent = line.len() - content.len();
            let is_inside = self.shifts.contains_key(&number);
            let column = match self.shifts.get(&number) {
                Some((from, to)) => (indent + to).saturating_sub(*from),
                None if content.starts_with('#') => self.column_of_comment(&all, index, indent),
                None => self.columns.get(&number).copied().unwrap_or(indent),
            };
            let text = if is_inside { (*line).trim_start_matches(' ').to_owned() } else { self.without_gaps(content, offset + indent) };
            offset += line.len() + 1;
            let text = if is_inside { text.as_str() } else { text.trim_end() };
            if text.trim().is_empty() && !is_inside {
                empty += 1;
                continue;
            }
            if empty > 0 && !out.is_empty() {
                out.push('\n');
            }
            empty = 0;
            if !text.is_empty() {
                out.push_str(&" ".repeat(column));
                out.push_str(text);
            }
            out.push('\n');
        }
        let is_last_inside = self.shifts.contains_key(&u32::try_from(all.len() - 1).unwrap_or(u32::MAX));
        let kept = out.trim_end_matches('\n').len();
        if !is_last_inside {
            out.truncate(kept);
            out.push('\n');
        }
        out
    }

    /// A comment stands with what follows it; behind the last line of a block, with what is before it.
    fn column_of_comment(&self, all: &[&str], index: usize, indent: usize) -> usize {
        let below = (index + 1..all.len()).find(|next| is_content(all[*next]));
        let above = (0..index).rev().find(|before| is_content(all[*before]));
        let column = |line: usize| self.columns.get(&u32::try_from(line + 1).unwrap_or(u32::MAX)).copied();
        let was = |line: usize| all[line].len() - all[line].trim_start_matches(' ').len();
        match (below, above) {
            (Some(below), _) if was(below) == indent => column(below).unwrap_or(indent),
            (_, Some(above)) if was(above) == indent => column(above).unwrap_or(indent),
            (Some(below), _) => column(below).unwrap_or(indent),
            (None, Some(above)) => column(above).unwrap_or(indent),
            (None, None) => 0,
        }
    }

    fn without_gaps(&self, content: &str, from: usize) -> String {
        let mut text = String::with_capacity(content.len());
        let mut at = from;
        let end = from + content.len();
        let first = self.gaps.partition_point(|gap| gap.start < from);
        for gap in self.gaps[first..].iter().take_while(|gap| gap.start < end) {
            if gap.start < at || gap.end > end {
                continue;
            }
            text.push_str(&self.text[at..gap.start]);
            text.push(' ');
            at = gap.end;
        }
        text.push_str(&self.text[at..end]);
        text
    }
}

/// How many blanks a text begins with.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::raw::read;
    use proptest::prelude::*;

    #[test]
    fn white_space_is_made_usual_and_comments_stay() {
        let text = "# top\nspec:\n    inputs:\n        who:   {type: string,  default: \"a: b\"}   # whom\n\n\n\n        # last\n---\nenv:\n    A: x\nrun:\n- name:   one\n  script: |\n      echo   hi\n        deep   \n\n      # no comment\n-   name: two\n    # about func\n    func:  ./two\n    inputs:\n          list: [1,\n                 2]\n          text: >-\n            folded\n              more\n# end";
        insta::assert_snapshot!(format(text).unwrap(), @r#"
        # top
        spec:
          inputs:
            who: {type: string,  default: "a: b"}   # whom

            # last
        ---
        env:
          A: x
        run:
          - name: one
            script: |
              echo   hi
                deep   

              # no comment
          - name: two
            # about func
            func: ./two
            inputs:
              list: [1,
                     2]
              text: >-
                folded
                  more
        # end
        "#);
    }

    #[test]
    fn what_is_no_yaml_has_no_form() {
        assert!(matches!(format("a: [1\nb: 2"), Err(NoForm::Unreadable(problems)) if problems.len() == 1));
    }

    #[test]
    fn a_file_in_its_usual_form_stays_as_it_is() {
        let text = "spec:\n  inputs:\n    who: {type: string}\n---\nrun:\n  - name: one\n    script: |\n      echo hi\n\n  - name: two\n    func: ./two\n";
        assert_eq!(format(text).as_deref(), Ok(text));
    }

    /// Definitions with any indentation.
    fn definition() -> impl Strategy<Value = String> {
        let pad = || (1_usize..6).prop_map(|count| " ".repeat(count));
        let step = (pad(), pad(), prop::bool::ANY, "[a-z]{1,5}", 0_usize..3).prop_map(|(pad, more, is_script, name, blank)| {
            let rest = if is_script {
                format!("script: |\n  {pad}{more}echo '{name}'\n{}  {pad}{more}  done", "\n".repeat(blank))
            } else {
                format!("func:  ./x # why\n  {pad}inputs:\n  {pad}{more}a:   '{name}'\n  {pad}{more}b: [1,\n  {pad}{more} 2]")
            };
            format!(
                "- {pad_short}name: {name}\n  {pad_rest}{rest}\n",
                pad_short = &pad[1..],
                pad_rest = &pad[1..],
                rest = rest.replace(&format!("\n  {pad}"), &format!("\n  {}", &pad[1..]))
            )
        });
        (pad(), prop::collection::vec(step, 1..4), prop::bool::ANY).prop_map(|(pad, steps, is_indented)| {
            let steps: String = steps.concat();
            let steps = if is_indented { steps.lines().map(|line| format!("{pad}{line}\n")).collect() } else { steps };
            format!("spec:\n{pad}inputs:\n{pad}{pad}who:  {{type: string}}\n# between\n---\nenv:\n{pad}A:  x\nrun:\n{steps}")
        })
    }

    proptest! {
        #[test]
        fn the_usual_form_says_the_same_and_is_its_own_usual_form(text in definition()) {
            let formatted = format(&text).map_err(|why| TestCaseError::fail(format!("{why:?}\n{text}")))?;
            let again = format(&formatted);
            prop_assert_eq!(again.as_deref(), Ok(&*formatted));
            let (before, after) = (read(&text, "func.yml"), read(&formatted, "func.yml"));
            let spec = |reading: &crate::document::raw::Reading| reading.draft.as_ref().map(|document| (document.spec.clone(), document.definition.env.clone()));
            prop_assert_eq!(spec(&before), spec(&after));
            prop_assert_eq!(before.problems.len(), after.problems.len());
        }

        #[test]
        fn any_text_is_formatted_or_refused(text in "[a-c:\\- \n#\\[\\]{}|>'\"&*,]{0,60}") {
            if let Ok(formatted) = format(&text) {
                prop_assert!(format(&formatted).is_ok());
            }
        }
    }
}
