//! Places as an editor counts them: lines and UTF-16 units from 0.

use serde_json::{Value as Json, json};
use std::ops::Range;

/// A byte as line and unit.
pub fn position(text: &str, at: usize) -> Json {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    json!({"line": text[..start].matches('\n').count(), "character": text[start..at].encode_utf16().count()})
}

pub fn range(text: &str, span: &Range<usize>) -> Json {
    json!({"start": position(text, span.start), "end": position(text, span.end)})
}

/// The byte of a position; beyond the end of its line, that end.
pub fn byte(text: &str, position: &Json) -> usize {
    let number = |key: &str| position[key].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
    let mut start = 0;
    for _ in 0..number("line") {
        let Some(newline) = text[start..].find('\n') else { return text.len() };
        start += newline + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut units = 0;
    for (offset, letter) in line.char_indices() {
        if units >= number("character") {
            return start + offset;
        }
        units += letter.len_utf16();
    }
    start + line.len()
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_two_units_count_twice() {
        let text = "a\n𝄞ü: x\n";
        let at = text.find('x').expect("there");
        assert_eq!(position(text, at), json!({"line": 1, "character": 5}));
        assert_eq!(byte(text, &json!({"line": 1, "character": 5})), at);
        assert_eq!(byte(text, &json!({"line": 1, "character": 99})), text.len() - 1);
        assert_eq!(byte(text, &json!({"line": 9, "character": 0})), text.len());
    }
}
