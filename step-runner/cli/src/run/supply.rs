//! Values that a job only names: from a file, from the environment, or from whoever sits at the terminal.

use super::dotenv;
use super::place::Place;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given;

/// Asks a person for the value of a name. `None`: there is nobody to ask.
pub type Ask<'a> = dyn FnMut(&str) -> Option<Result<String, Stop>> + 'a;

/// What can be supplied.
pub struct Supply<'a> {
    /// Of `--secrets`.
    given: BTreeMap<String, String>,
    place: &'a Place,
    ask: &'a mut Ask<'a>,
    /// A plan is only shown: what is missing is a part of it.
    only_shown: bool,
    missing: Vec<String>,
}

impl<'a> Supply<'a> {
    /// # Errors
    /// A file of secrets cannot be read.
    pub fn new(files: &[PathBuf], place: &'a Place, only_shown: bool, ask: &'a mut Ask<'a>) -> Result<Self, Stop> {
        Ok(Self { given: read_pairs(files)?.into_iter().collect(), place, ask, only_shown, missing: Vec::new() })
    }

    /// The values of `--secrets`.
    pub fn given(&self) -> &BTreeMap<String, String> {
        &self.given
    }

    /// Names for which no value was found; only when the plan is shown.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Translates until nothing is missing. `translate` says what is, with what it got.
    /// # Errors
    /// As `translate`; and all the names that nobody supplies.
    pub fn until_complete<T, E: From<Stop>>(
        &mut self,
        mut translate: impl FnMut(&BTreeMap<String, String>) -> Result<(Vec<String>, T), E>,
    ) -> Result<T, E> {
        let mut values = self.given.clone();
        loop {
            let (missing, translated) = translate(&values)?;
            let wanted: Vec<String> = missing.iter().filter(|name| !values.contains_key(*name)).cloned().collect();
            if wanted.is_empty() {
                return Ok(translated);
            }
            let (found, absent) = self.look_for(wanted)?;
            if !absent.is_empty() && !self.only_shown {
                return Err(Stop::all(Exit::BadInput, vec![all_missing(&absent)]).into());
            }
            if found.is_empty() {
                self.missing = absent;
                return Ok(translated);
            }
            values.extend(found);
        }
    }

    fn look_for(&mut self, names: Vec<String>) -> Result<(BTreeMap<String, String>, Vec<String>), Stop> {
        let mut found = BTreeMap::new();
        let mut absent = Vec::new();
        for name in names {
            if let Some(value) = self.place.env.get(&name) {
                found.insert(name, value.clone());
            } else if self.only_shown {
                absent.push(name);
            } else {
                match (self.ask)(&name) {
                    Some(answer) => drop(found.insert(name, answer?)),
                    None => absent.push(name),
                }
            }
        }
        Ok((found, absent))
    }
}

/// What is said about names for which there is no value.
pub fn all_missing(names: &[String]) -> Complaint {
    let message = match names {
        [one] => format!("the value of `{one}` is not in the job: it was replaced by its name"),
        _ => format!("the values of `{}` are not in the job: they were replaced by their names", names.join("`, `")),
    };
    Complaint::new(message).with_hint("give it in a file of NAME=VALUE lines, `--secrets FILE`, or in the environment")
}

/// The pairs of files: NAME=VALUE lines, or a JSON object of texts.
/// # Errors
/// Every line of every file that makes no sense.
pub fn read_pairs(files: &[PathBuf]) -> Result<Vec<(String, String)>, Stop> {
    let mut pairs = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        match read_file(file)? {
            Ok(found) => pairs.extend(found),
            Err(found) => {
                problems.extend(found.into_iter().map(|problem| Complaint::new(format!("`{}`, {problem}", file.display()))));
            }
        }
    }
    if problems.is_empty() { Ok(pairs) } else { Err(Stop::all(Exit::BadInput, problems)) }
}

type Pairs = Result<Vec<(String, String)>, Vec<String>>;

fn read_file(file: &Path) -> Result<Pairs, Stop> {
    let text = given::file(file)?.text;
    if !text.trim_start().starts_with('{') {
        return Ok(dotenv::parse(&text));
    }
    let object: serde_json::Map<String, serde_json::Value> = match serde_json::from_str(&text) {
        Ok(object) => object,
        // What a JSON reader says about a text it did not expect may hold the text; line and column are enough.
        Err(fault) => return Ok(Err(vec![format!("line {}, column {}: this is no JSON object", fault.line(), fault.column())])),
    };
    let mut pairs = Vec::new();
    let mut problems = Vec::new();
    for (name, value) in object {
        match value {
            serde_json::Value::String(text) => pairs.push((name, text)),
            serde_json::Value::Number(number) => pairs.push((name, number.to_string())),
            serde_json::Value::Bool(boolean) => pairs.push((name, boolean.to_string())),
            _ => problems.push(format!("`{name}`: the value must be a text")),
        }
    }
    Ok(if problems.is_empty() { Ok(pairs) } else { Err(problems) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { env: BTreeMap::from([("FROM_ENV".to_owned(), "e".to_owned())]), ..Place::default() }
    }

    /// Wants these names, and shows what it got.
    fn wants(names: &[&str]) -> impl FnMut(&BTreeMap<String, String>) -> Result<(Vec<String>, String), Stop> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        move |values| {
            let missing = names.iter().filter(|name| !values.contains_key(*name)).cloned().collect();
            let got: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Ok((missing, got.join(" ")))
        }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("a file can be written");
        file
    }

    #[test]
    fn a_value_comes_from_a_file_the_environment_or_a_person() {
        let (place, file) = (place(), file("A=1\nB=2\n"));
        let mut ask = |name: &str| Some(Ok(format!("told {name}")));
        let mut supply = Supply::new(&[file.path().into()], &place, false, &mut ask).expect("a file");
        assert_eq!(supply.until_complete(wants(&["A", "FROM_ENV", "C"])), Ok("A=1 B=2 C=told C FROM_ENV=e".into()));
    }

    #[test]
    fn without_anybody_to_ask_all_names_are_told_at_once() {
        let place = place();
        let mut ask = |_: &str| None;
        let mut supply = Supply::new(&[], &place, false, &mut ask).expect("no file");
        let refused = supply.until_complete(wants(&["A", "FROM_ENV", "C"])).expect_err("missing");
        insta::assert_snapshot!(refused, @"the values of `A`, `C` are not in the job: they were replaced by their names");
        assert_eq!((refused.exit, refused.problems[0].hints.len()), (Exit::BadInput, 1));
    }

    #[test]
    fn a_plan_that_is_only_shown_asks_nobody() {
        let place = place();
        let mut ask = |_: &str| -> Option<Result<String, Stop>> { panic!("asked") };
        let mut supply = Supply::new(&[], &place, true, &mut ask).expect("no file");
        assert_eq!(supply.until_complete(wants(&["A", "FROM_ENV"])), Ok("FROM_ENV=e".into()));
        assert_eq!(supply.missing(), ["A"]);
    }

    #[test]
    fn json_may_hold_the_values_and_is_never_shown() {
        let good = file("{\"A\": \"x\", \"N\": 12}");
        let pairs = read_pairs(&[good.path().into()]).expect("no problem");
        assert_eq!(pairs, [("A".to_owned(), "x".to_owned()), ("N".to_owned(), "12".to_owned())]);
        for (text, expected) in
            [("{\"A\": secret}", "line 1, column 7: this is no JSON object"), ("{\"A\": [1]}", "`A`: the value must be a text")]
        {
            let bad = file(text);
            let refused = read_pairs(&[bad.path().into()]).expect_err("a problem").to_string();
            assert!(refused.ends_with(expected), "{refused}");
        }
    }
}
