//! The tables in `cases/`: what the original does, one row per case.

use crate::repository;

/// One row of a table.
#[derive(Debug, Clone)]
pub struct Case {
    /// `EXP-03`
    pub id: String,
    /// Ours differs on purpose.
    pub differs: bool,
}

impl Case {
    /// `exp_03_`: how the name of its test begins.
    pub fn test_prefix(&self) -> String {
        format!("{}_", self.id.to_lowercase().replace('-', "_"))
    }
}

/// All rows of all tables, in order of file and row.
pub fn all() -> Vec<Case> {
    repository::files_ending_in(&[".md"])
        .iter()
        .filter(|file| file.path.starts_with("tests/cases/"))
        .flat_map(|file| file.text.lines().filter_map(case_of_row).collect::<Vec<_>>())
        .collect()
}

fn case_of_row(line: &str) -> Option<Case> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect();
    let id = *cells.first()?;
    is_id(id).then(|| Case { id: id.to_owned(), differs: cells.get(4).is_some_and(|ours| !ours.is_empty()) })
}

/// Whether a text is an id: capitals, a hyphen, two or three digits.
pub fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(table, number)| {
        !table.is_empty()
            && table.bytes().all(|byte| byte.is_ascii_uppercase())
            && (2..=3).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_an_id_and_may_differ() {
        let case = case_of_row("| EXP-10 | T | `${{ a }} }}` | error | text |").expect("a row");
        assert_eq!((case.id.as_str(), case.differs, case.test_prefix().as_str()), ("EXP-10", true, "exp_10_"));
        assert!(!case_of_row("| EXP-11 | T | `a` | error |  |").expect("a row").differs);
        assert!(case_of_row("| id | basis | input | expected |").is_none());
        assert!(case_of_row("|---|---|").is_none());
    }
}
