//! Where in a JSON text the value at a path stands.

use step_model::diagnostic::{Lines, Place};

/// The place of the value at a path such as `steps[0].script`; that of the innermost value on the way that exists. `None` in a text that is not JSON.
pub(super) fn place_of(text: &str, path: &str) -> Option<Place> {
    let bytes = text.as_bytes();
    let mut start = skip_space(bytes, 0);
    for part in parts(path) {
        let next = match part {
            Part::Key(key) => member(bytes, start, key),
            Part::Index(index) => element(bytes, start, index),
        };
        let Some(next) = next else { break };
        start = next;
    }
    let end = end_of_value(bytes, start)?;
    Some(place(text, start..end))
}

/// A place from bytes. Only its first line is underlined.
pub(super) fn place(text: &str, span: std::ops::Range<usize>) -> Place {
    let start = floor(text, span.start);
    let end = floor(text, span.end).max(start);
    let end = text[start..end].find('\n').map_or(end, |newline| start + newline);
    Lines::of(text).place(text, start..end)
}

/// The byte that a line and a column, both counted from 1, mean; the column counts bytes, as `serde_json` does.
pub(super) fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    floor(text, (start + column.saturating_sub(1)).min(text.len()))
}

fn floor(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|offset| text.is_char_boundary(*offset)).unwrap_or(0)
}

enum Part<'a> {
    Key(&'a str),
    Index(usize),
}

fn parts(path: &str) -> impl Iterator<Item = Part<'_>> {
    path.split(['.', '[']).filter(|part| !part.is_empty()).map(|part| match part.strip_suffix(']').map(str::parse) {
        Some(Ok(index)) => Part::Index(index),
        _ => Part::Key(part),
    })
}

fn member(bytes: &[u8], start: usize, key: &str) -> Option<usize> {
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    let mut position = start + 1;
    let mut found = None;
    loop {
        position = skip_space(bytes, position);
        if bytes.get(position) != Some(&b'"') {
            return found;
        }
        let end = end_of_string(bytes, position)?;
        let matches = bytes[position + 1..end - 1] == *key.as_bytes();
        position = skip_space(bytes, end);
        position = skip_space(bytes, position + 1);
        if matches {
            found = Some(position); // The last of a name wins.
        }
        position = skip_space(bytes, end_of_value(bytes, position)?);
        if bytes.get(position) == Some(&b',') {
            position += 1;
        }
    }
}

fn element(bytes: &[u8], start: usize, index: usize) -> Option<usize> {
    if bytes.get(start) != Some(&b'[') {
        return None;
    }
    let mut position = skip_space(bytes, start + 1);
    for _ in 0..index {
        position = skip_space(bytes, end_of_value(bytes, position)?);
        if bytes.get(position) != Some(&b',') {
            return None;
        }
        position = skip_space(bytes, position + 1);
    }
    (bytes.get(position) != Some(&b']')).then_some(position)
}

fn end_of_value(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => end_of_string(bytes, start),
        b'{' | b'[' => {
            let mut depth = 0usize;
            let mut position = start;
            loop {
                match bytes.get(position)? {
                    b'"' => {
                        position = end_of_string(bytes, position)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                position += 1;
                if depth == 0 {
                    return Some(position);
                }
            }
        }
        _ => {
            let length =
                bytes[start..].iter().take_while(|byte| !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace()).count();
            (length > 0).then_some(start + length)
        }
    }
}

fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    loop {
        match bytes.get(position)? {
            b'\\' => position += 2,
            b'"' => return Some(position + 1),
            _ => position += 1,
        }
    }
}

fn skip_space(bytes: &[u8], start: usize) -> usize {
    start + bytes.iter().skip(start).take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"a\": 1,\n  \"steps\": [\n    {\"name\": \"é\", \"script\": [\"x\"]},\n    {\"script\": 7}\n  ]\n}";

    fn at(path: &str) -> (u32, u32, &'static str) {
        let place = place_of(TEXT, path).expect("a place");
        (place.line, place.column, &TEXT[place.span])
    }

    #[test]
    fn a_value_is_found_by_its_path() {
        assert_eq!(at("steps[0].script"), (4, 29, "[\"x\"]"));
        assert_eq!(at("steps[0].script[0]"), (4, 30, "\"x\""));
        assert_eq!(at("steps[1].script"), (5, 16, "7"));
    }

    #[test]
    fn what_is_missing_is_shown_at_its_parent() {
        assert_eq!(at("steps[1].name"), (5, 5, "{\"script\": 7}"));
        assert_eq!(at("nope"), (1, 1, "{"));
    }

    #[test]
    fn a_broken_text_has_no_places() {
        assert_eq!(place_of("{\"a\": [", "a"), None);
        assert_eq!(place_of("", "a"), None);
    }
}
