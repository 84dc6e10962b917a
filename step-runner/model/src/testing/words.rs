//! A command as one line of text and as words: blanks part words, quotes keep them together.

use std::sync::Arc;

/// The words of a line. Quotes are `'` and `"`, a backslash takes the next letter as it is, outside of `'`.
/// # Errors
/// A quote is not closed.
pub fn words_of(line: &str) -> Result<Vec<Arc<str>>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_whitespace() => words.extend(word.take().map(Arc::from)),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(Arc::from));
    if quote.is_some() { Err("a quote is not closed") } else { Ok(words) }
}

/// Words as a line that [`words_of`] takes apart again.
pub fn in_words(words: &[Arc<str>]) -> String {
    let quoted = |word: &Arc<str>| {
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+~^".contains(letter);
        if !word.is_empty() && word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blanks_part_words_and_quotes_keep_them_together() {
        let words = |line| words_of(line).map(|words| words.join("|"));
        assert_eq!(words("docker build -t 'a b' \"c\\\"d\" e\\ f ''"), Ok("docker|build|-t|a b|c\"d|e f|".into()));
        assert_eq!(words("  "), Ok(String::new()));
        assert_eq!(words("a 'b"), Err("a quote is not closed"));
    }

    proptest! {
        #[test]
        fn words_as_a_line_are_the_same_words(words in proptest::collection::vec(".*", 0..5)) {
            let words: Vec<Arc<str>> = words.into_iter().map(Arc::from).collect();
            prop_assert_eq!(words_of(&in_words(&words)), Ok(words));
        }
    }
}
