//! JSON from outside: with a limit on how deep it nests, and errors that say where.

use serde::Deserialize as _;
use serde_json::Value as Json;

/// Why a text is no JSON that we read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    #[error("it is empty")]
    Empty,
    #[error("it is cut off: the JSON has no end (line {line}, column {column})")]
    CutOff { line: usize, column: usize },
    #[error("it is no JSON: {fault}")]
    Syntax { fault: String },
    #[error("it nests deeper than {limit} levels")]
    TooDeep { limit: usize },
}

/// Reads one value that fills the text and nests at most `limit` levels.
/// # Errors
/// It does not.
pub(super) fn parse(text: &str, limit: usize) -> Result<Json, NotJson> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(NotJson::Empty);
    }
    if is_deeper_than(limit, text) {
        return Err(NotJson::TooDeep { limit });
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The depth was looked at above, with a limit of ours.
    deserializer.disable_recursion_limit();
    let value = Json::deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|fault| {
        if fault.is_eof() {
            return NotJson::CutOff { line: fault.line(), column: fault.column() };
        }
        NotJson::Syntax { fault: fault.to_string() }
    })
}

/// Looks at the brackets only, so that nothing recurses before the depth is known.
fn is_deeper_than(limit: usize, text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_said() {
        assert_eq!(parse(" \n", 9), Err(NotJson::Empty));
        assert_eq!(parse("{\"a\": [1,", 9), Err(NotJson::CutOff { line: 1, column: 9 }));
        assert_eq!(parse("{} x", 9).unwrap_err().to_string(), "it is no JSON: trailing characters at line 1 column 4");
        assert_eq!(parse("{\"a\": 'x'}", 9).unwrap_err().to_string(), "it is no JSON: expected value at line 1 column 7");
    }

    #[test]
    fn ten_thousand_levels_are_refused() {
        assert_eq!(parse(&"[".repeat(10_000), 100), Err(NotJson::TooDeep { limit: 100 }));
        assert_eq!(parse(&format!("{}{}", "[".repeat(300), "]".repeat(300)), 300).map(|_| ()), Ok(()));
        assert_eq!(parse(r#"{"[[[[": "\"[[[["}"#, 1).map(|_| ()), Ok(()));
    }
}
