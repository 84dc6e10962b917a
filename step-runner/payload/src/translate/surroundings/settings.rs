//! What a job says of its surroundings in variables.

use crate::job::{Job, JobVariable};
use crate::variables::Variables;
use serde_json::{Value as Json, json};
use step_model::diagnostic::Problem;

/// Reads variables of the job; what makes no sense is told, and counts as not set.
pub(super) struct Settings<'a> {
    job: &'a Job,
    variables: Variables<'a>,
    pub problems: &'a mut Vec<Problem>,
}

impl<'a> Settings<'a> {
    pub fn new(job: &'a Job, problems: &'a mut Vec<Problem>) -> Self {
        Self { job, variables: Variables::new(&job.variables), problems }
    }

    /// The text with the variables of the job in it.
    pub fn expand(&self, text: &str) -> String {
        self.variables.expand_text(text)
    }

    /// The value, expanded. `None`: it is not set, or empty.
    pub fn value(&self, key: &str) -> Option<String> {
        let JobVariable { value, raw, .. } = self.job.variable(key)?;
        let value = if *raw { value.clone() } else { self.variables.expand_text(value) };
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Another word is an error.
    pub fn one_of(&mut self, key: &str, words: &[&str], default: &str) -> String {
        let Some(value) = self.value(key) else { return default.to_owned() };
        if words.contains(&value.as_str()) {
            return value;
        }
        let message = format!("`{key}` is `{}`, expected one of `{}`", value.escape_debug(), words.join("`, `"));
        self.problems.push(Problem::error("bad-variable", message, None));
        default.to_owned()
    }

    /// Another number is warned of.
    pub fn whole(&mut self, key: &str, least: u64, most: u64, default: u64) -> u64 {
        let Some(value) = self.value(key) else { return default };
        value.parse().ok().filter(|number| (least..=most).contains(number)).unwrap_or_else(|| {
            let message =
                format!("`{key}` is `{}`, expected a whole number from {least} to {most}: it is taken as {default}", value.escape_debug());
            self.problems.push(Problem::warning("bad-variable", message, None));
            default
        })
    }

    pub fn flag(&self, key: &str, default: bool) -> bool {
        match self.value(key).map(|value| value.to_lowercase()).as_deref() {
            Some("1" | "t" | "true") => true,
            Some("0" | "f" | "false") => false,
            _ => default,
        }
    }

    /// Words between spaces; the word `none` is none of them.
    pub fn flags(&self, key: &str, default: &[&str]) -> Json {
        match self.value(key) {
            None => json!(default),
            Some(value) if value == "none" => json!([]),
            Some(value) => value.split_whitespace().collect(),
        }
    }

    /// GitLab's words for how much time an archive may take.
    pub fn level(&mut self, key: &str) -> String {
        self.one_of(key, &["fastest", "fast", "default", "slow", "slowest"], "default")
    }
}
