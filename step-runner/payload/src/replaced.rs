//! Values that were replaced by their names before a payload was saved: `[MASKED NAME]`.
//!
//! A payload can be saved as it was sent, with every secret as a mark that says which one stood there. The mark may be a whole value or a part of it
//! (`https://user:[MASKED DEPLOY_TOKEN]@host`). Before the run each mark becomes the value that was supplied under its name.

use crate::job::{Job, JobVariable};
use std::collections::{BTreeMap, BTreeSet};

const OPENING: &str = "[MASKED ";

/// Names of the job's own token. It is never asked for: it has ended with the job that it belonged to.
pub(crate) const JOB_TOKENS: [&str; 4] = ["CI_JOB_TOKEN", "CI_BUILD_TOKEN", "CI_REGISTRY_PASSWORD", "CI_DEPENDENCY_PROXY_PASSWORD"];

/// The mark that stands for a value in a saved payload.
pub fn mark(name: &str) -> String {
    format!("{OPENING}{name}]")
}

/// Puts the values of these names back wherever their marks stand in a text of JSON. Returns the names for which there is none. For a run request
/// that an agent has kept.
pub fn restore_in_json(text: &str, known: &BTreeSet<String>, supplied: &BTreeMap<String, String>) -> (String, BTreeSet<String>) {
    let mut missing = BTreeSet::new();
    let mut restored = String::new();
    let mut position = 0;
    for (name, range) in names(text).filter(|(name, _)| known.contains(*name)) {
        match supplied.get(name) {
            Some(value) => {
                restored.push_str(&text[position..range.start]);
                let quoted = serde_json::Value::from(value.as_str()).to_string();
                restored.push_str(&quoted[1..quoted.len() - 1]);
                position = range.end;
            }
            None => _ = missing.insert(name.to_owned()),
        }
    }
    restored.push_str(&text[position..]);
    (restored, missing)
}

/// Puts values back. Returns the names for which there is none, except those of the job's own token.
pub(crate) fn restore(job: &mut Job, supplied: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    for variable in &mut job.variables {
        restore_variable(variable, supplied, &mut missing);
    }
    let mut put_back = |text: &mut String, quote: fn(&str) -> String| replace(text, supplied, &mut missing, quote);
    put_back(&mut job.run, in_json);
    let scripts = job.steps.iter_mut().flat_map(|step| &mut step.script).chain(job.hooks.iter_mut().flat_map(|hook| &mut hook.script));
    scripts.for_each(|line| _ = put_back(line, str::to_owned));
    for image in job.image.iter_mut().chain(&mut job.services) {
        put_back(&mut image.name, str::to_owned);
        image
            .entrypoint
            .iter_mut()
            .chain(&mut image.command)
            .chain(image.variables.values_mut())
            .for_each(|text| _ = put_back(text, str::to_owned));
    }
    for secret in &job.secrets {
        match supplied.get(&secret.name) {
            Some(value) => {
                let variable = JobVariable {
                    key: secret.name.clone(),
                    value: value.clone(),
                    file: secret.file,
                    masked: true,
                    raw: true,
                    public: false,
                };
                job.variables.push(variable);
            }
            None => _ = missing.insert(secret.name.clone()),
        }
    }
    job.keep_last_of_each_name();
    missing.retain(|name| !JOB_TOKENS.contains(&name.as_str()));
    missing
}

/// A supplied value wins over the one in the payload and is taken as it is, without expansion.
fn restore_variable(variable: &mut JobVariable, supplied: &BTreeMap<String, String>, missing: &mut BTreeSet<String>) {
    if let Some(value) = supplied.get(&variable.key) {
        variable.value.clone_from(value);
        (variable.masked, variable.raw) = (true, true);
        return;
    }
    let quote = if variable.raw { str::to_owned } else { without_expansion };
    let whole = names(&variable.value).next().is_some_and(|(_, range)| range == (0..variable.value.len()));
    if replace(&mut variable.value, supplied, missing, quote) && whole {
        variable.masked = true;
    }
}

/// Whether something was put back.
fn replace(text: &mut String, supplied: &BTreeMap<String, String>, missing: &mut BTreeSet<String>, quote: fn(&str) -> String) -> bool {
    let mut replaced = String::new();
    let mut position = 0;
    let mut found = false;
    for (name, range) in names(text) {
        if let Some(value) = supplied.get(name) {
            replaced.push_str(&text[position..range.start]);
            replaced.push_str(&quote(value));
            position = range.end;
            found = true;
        } else {
            missing.insert(name.to_owned());
        }
    }
    if found {
        replaced.push_str(&text[position..]);
        *text = replaced;
    }
    found
}

/// Every mark in a text: its name and its bytes.
fn names(text: &str) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
    text.match_indices(OPENING).filter_map(|(start, _)| {
        let rest = &text[start + OPENING.len()..];
        let length = rest.find(']')?;
        let name = &rest[..length];
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        is_name.then_some((name, start..start + OPENING.len() + length + 1))
    })
}

fn without_expansion(value: &str) -> String {
    value.replace('$', "$$")
}

/// Inside a string of the JSON of `run`, where nothing of it is an expression.
fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::String(value.replace("${{", "\\${{")).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobStep, Secret};

    fn job(variables: &[(&str, &str)]) -> Job {
        let variables = variables.iter().map(|(key, value)| JobVariable {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            ..JobVariable::default()
        });
        Job { variables: variables.collect(), ..Job::default() }
    }

    fn supplied(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn value<'a>(job: &'a Job, key: &str) -> &'a str {
        &job.variable(key).expect("a variable").value
    }

    #[test]
    fn a_mark_becomes_its_value_also_inside_another() {
        let mut job = job(&[("KEY", "[MASKED KEY]"), ("URL", "https://u:[MASKED KEY]@h/[MASKED X")]);
        assert!(restore(&mut job, &supplied(&[("KEY", "a$b")])).is_empty());
        assert_eq!((value(&job, "KEY"), value(&job, "URL")), ("a$b", "https://u:a$$b@h/[MASKED X"));
        assert!(job.variable("KEY").expect("a variable").raw, "taken as it is");
    }

    #[test]
    fn every_missing_name_is_returned_but_the_token_of_the_job() {
        let mut job = job(&[("A", "[MASKED A] [MASKED B]"), ("CI_JOB_TOKEN", "[MASKED CI_JOB_TOKEN]"), ("C", "[MASKED] [MASKED a b]")]);
        job.steps = vec![JobStep { script: vec!["curl -H [MASKED C]".to_owned()], ..JobStep::default() }];
        job.secrets = vec![Secret { name: "DB".to_owned(), provider: "vault".to_owned(), file: true }];
        let missing = restore(&mut job, &BTreeMap::new());
        assert_eq!(Vec::from_iter(missing), ["A", "B", "C", "DB"]);
        assert_eq!(value(&job, "A"), "[MASKED A] [MASKED B]");
    }

    #[test]
    fn a_secret_becomes_a_masked_variable() {
        let mut job = Job { secrets: vec![Secret { name: "DB".to_owned(), provider: "vault".to_owned(), file: true }], ..Job::default() };
        assert!(restore(&mut job, &supplied(&[("DB", "p")])).is_empty());
        let expected = JobVariable { key: "DB".to_owned(), value: "p".to_owned(), file: true, masked: true, raw: true, public: false };
        assert_eq!(job.variables, [expected]);
    }

    #[test]
    fn a_value_in_run_is_quoted_and_is_no_expression() {
        let mut job = Job { run: r#"[{"name":"a","script":"echo [MASKED K]"}]"#.to_owned(), ..Job::default() };
        restore(&mut job, &supplied(&[("K", "a\"b${{ c")]));
        assert_eq!(job.run, r#"[{"name":"a","script":"echo a\"b\\${{ c"}]"#);
    }

    #[test]
    fn in_a_kept_request_only_the_names_of_its_variables_are_put_back() {
        let known = ["A".to_owned(), "B".to_owned()].into();
        let text = r#"{"a": "[MASKED A]", "steps": "x\\n[MASKED A] [MASKED B] [MASKED C] [MASKED]"}"#;
        let (restored, missing) = restore_in_json(text, &known, &supplied(&[("A", "1\"\n2"), ("C", "no")]));
        assert_eq!(restored, r#"{"a": "1\"\n2", "steps": "x\\n1\"\n2 [MASKED B] [MASKED C] [MASKED]"}"#);
        assert_eq!(Vec::from_iter(missing), ["B"]);
    }

    #[test]
    fn a_mark_is_found_again() {
        assert_eq!(names(&mark("A_1")).map(|(name, _)| name.to_owned()).collect::<Vec<_>>(), ["A_1"]);
    }
}
