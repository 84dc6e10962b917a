//! `NAME=VALUE` on the command line: one, or several with commas as GitLab's step-runner reads them.

/// Splits one `NAME=VALUE`.
/// # Errors
/// There is no `=`, or no name before it.
pub fn one(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err(format!("`{text}` has no name before the `=`")),
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err(format!("`{text}` must be formatted as NAME=VALUE")),
    }
}

/// Splits `NAME=VALUE,NAME=VALUE`. With a single `=` in it the text is one pair, whose value may hold commas; with more it is
/// a record of comma-separated values, in which a pair in double quotes may hold commas (Go's pflag, `StringToString`).
/// # Errors
/// A part without `=`, or a quote that is not closed.
pub fn several(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = match text.matches('=').count() {
        0 | 1 => vec![text.trim_matches('"').to_owned()],
        _ => record(text)?,
    };
    parts.iter().map(|part| one(part)).collect()
}

/// One line of comma-separated values.
fn record(text: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                quoted_field(quoted).ok_or_else(|| format!("`{text}` has a quote that is not closed or not followed by a comma"))?
            }
            None => match rest.split_once(',') {
                Some((field, after)) => (field.to_owned(), Some(after)),
                None => (rest.to_owned(), None),
            },
        };
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Ok(fields),
        }
    }
}

/// What is quoted (a doubled quote is one), and what follows the comma after it.
fn quoted_field(quoted: &str) -> Option<(String, Option<&str>)> {
    let mut field = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        if let Some(after) = rest.strip_prefix('"') {
            field.push('"');
            rest = after;
        } else if rest.is_empty() {
            return Some((field, None));
        } else {
            return Some((field, Some(rest.strip_prefix(',')?)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
        several(text)
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_value_may_hold_equal_signs_and_be_empty() {
        assert_eq!(one("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(one("a="), Ok(("a".into(), String::new())));
    }

    #[test]
    fn a_pair_needs_a_name_and_an_equal_sign() {
        assert_eq!(one("a"), Err("`a` must be formatted as NAME=VALUE".into()));
        assert_eq!(one("=b"), Err("`=b` has no name before the `=`".into()));
    }

    #[test]
    fn with_a_single_equal_sign_commas_belong_to_the_value() {
        assert_eq!(pairs("a=x,y"), Ok(owned(&[("a", "x,y")])));
        assert_eq!(pairs("\"a=x,y\""), Ok(owned(&[("a", "x,y")])));
    }

    #[test]
    fn with_more_equal_signs_commas_separate_pairs() {
        assert_eq!(pairs("a=1,b=2"), Ok(owned(&[("a", "1"), ("b", "2")])));
        assert_eq!(pairs("\"a=1,2\",b=\"x"), Ok(owned(&[("a", "1,2"), ("b", "\"x")])));
        assert_eq!(pairs("\"a={\"\"k\"\": 1, \"\"l\"\": 2}\",b=2"), Ok(owned(&[("a", "{\"k\": 1, \"l\": 2}"), ("b", "2")])));
        assert_eq!(pairs("a=b=c,d"), Err("`d` must be formatted as NAME=VALUE".into()));
    }

    #[test]
    fn a_quote_that_is_not_closed_is_named() {
        assert_eq!(pairs("\"a=1,b=2"), Err("`\"a=1,b=2` has a quote that is not closed or not followed by a comma".into()));
    }
}
