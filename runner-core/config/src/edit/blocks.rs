//! Which lines of a file belong to an entry of `[[runners]]`.

use crate::raw::{Entry, Table, Value};
use std::ops::Range;

/// The table of an entry.
pub(super) fn entry(root: &Table, index: usize) -> Option<&Table> {
    match entries(root)?.get(index)? {
        (Value::Table(table), _) => Some(table),
        _ => None,
    }
}

fn entries(root: &Table) -> Option<Vec<(&Value, Range<usize>)>> {
    let found = root.entries.iter().find(|entry| entry.key.value.eq_ignore_ascii_case("runners"))?;
    Some(match &found.value.value {
        Value::List(items) => items.iter().map(|item| (&item.value, item.span.clone())).collect(),
        single => vec![(single, found.value.span.clone())],
    })
}

/// The blocks of lines of an entry and of the tables inside it, in order; `None` when it has no header of its own.
pub(super) fn of_entry(text: &str, root: &Table, index: usize) -> Option<Vec<Range<usize>>> {
    let entries = entries(root)?;
    let (Value::Table(table), span) = entries.get(index)? else { return None };
    if !is_header(text, span) {
        return None;
    }
    let mut own = vec![span.start];
    headers(text, table, &mut own);
    let mut all = Vec::new();
    headers(text, root, &mut all);
    all.sort_unstable();
    all.dedup();
    let mut starts: Vec<(usize, usize)> = all.iter().map(|header| (*header, block_start(text, *header, &all))).collect();
    starts.sort_unstable();
    let mut blocks = Vec::new();
    for (position, (header, start)) in starts.iter().enumerate() {
        if own.contains(header) {
            let end = starts.get(position + 1).map_or(text.len(), |(_, next)| *next);
            blocks.push(*start..kept_tail(text, *header, end, position + 1 == starts.len()));
        }
    }
    Some(blocks)
}

/// Where the headers of tables begin, however deep.
fn headers(text: &str, table: &Table, found: &mut Vec<usize>) {
    for Entry { value, .. } in &table.entries {
        match &value.value {
            Value::Table(inner) => {
                found.extend(is_header(text, &value.span).then_some(value.span.start));
                headers(text, inner, found);
            }
            Value::List(items) => {
                for item in items {
                    if let Value::Table(inner) = &item.value {
                        found.extend(is_header(text, &item.span).then_some(item.span.start));
                        headers(text, inner, found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_header(text: &str, span: &Range<usize>) -> bool {
    text.get(span.clone()).is_some_and(|slice| slice.starts_with('[')) && is_first_of_its_line(text, span.start)
}

/// The line of a header, with the comment lines above it when a blank line, or nothing, is above those.
fn block_start(text: &str, header: usize, headers: &[usize]) -> usize {
    let line = line_start(text, header);
    let mut start = line;
    while start > 0 {
        let above = line_start(text, start - 1);
        let content = text[above..start].trim();
        if content.is_empty() {
            return start;
        }
        if !content.starts_with('#') || headers.contains(&above) {
            return line;
        }
        start = above;
    }
    start
}

/// The end of a block: comments behind the last one stay when a blank line divides them from it.
fn kept_tail(text: &str, header: usize, end: usize, is_last: bool) -> usize {
    if !is_last {
        return end;
    }
    let mut tail = end;
    let mut kept = end;
    while tail > header {
        let above = line_start(text, tail - 1);
        let content = text[above..tail].trim();
        if content.is_empty() {
            kept = if text[tail..end].trim().is_empty() { kept } else { tail };
        } else if !content.starts_with('#') {
            break;
        }
        tail = above;
    }
    kept
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line behind this place begins; the end of the text when there is none.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |offset| at + offset + 1)
}

pub(super) fn is_first_of_its_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim().is_empty()
}

/// The blanks before a key.
pub(super) fn indent(text: &str, at: usize) -> &str {
    &text[line_start(text, at)..at]
}
