//! The payload of a job as it may be kept: every secret replaced by its name, as `step-runner run` takes it.

use serde_json::Value;
use step_model::masking::{MINIMUM, Secrets};
use step_payload::replaced::mark;

/// What passwords of registries are called: a job has them under this name too.
const REGISTRY: &str = "CI_REGISTRY_PASSWORD";
const JOB_TOKEN: &str = "CI_JOB_TOKEN";

/// The same job with marks such as `[MASKED PASSWORD]` in place of the values of masked and file variables, sensitive inputs, tokens and passwords,
/// wherever they stand. `None`: it is not JSON.
pub fn without_secrets(payload: &[u8]) -> Option<String> {
    let mut payload: Value = serde_json::from_slice(payload).ok()?;
    let mut named = named(&payload);
    // A secret that holds another one is replaced as a whole.
    named.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    named.dedup_by(|one, other| one.1 == other.1);
    let mut secrets = Secrets::default();
    for (_, value) in &named {
        // One that is too short to be masked is replaced where it is the whole value.
        let _ = secrets.add(value);
    }
    variables(&mut payload);
    replace(&mut payload, &named, &secrets);
    Some(payload.to_string())
}

/// Secrets by their names. Variables come before tokens that have the same value: a variable can be supplied.
fn named(payload: &Value) -> Vec<(String, String)> {
    let mut named = Vec::new();
    let mut add = |name: &str, value: &Value| {
        let value = value.as_str().unwrap_or_default().trim();
        if value.chars().count() >= MINIMUM {
            named.push((name.to_owned(), value.to_owned()));
        }
    };
    for variable in items(&payload["variables"]).filter(|variable| is_secret(variable)) {
        add(variable["key"].as_str().unwrap_or_default(), &variable["value"]);
    }
    for input in items(&payload["inputs"]).filter(|input| input["value"]["sensitive"] == true) {
        add(input["key"].as_str().unwrap_or("INPUT"), &input["value"]["content"]);
    }
    add(JOB_TOKEN, &payload["token"]);
    items(&payload["dependencies"]).for_each(|dependency| add(JOB_TOKEN, &dependency["token"]));
    items(&payload["credentials"]).for_each(|credential| add(REGISTRY, &credential["password"]));
    named
}

fn is_secret(variable: &Value) -> bool {
    variable["masked"] == true || variable["file"] == true
}

fn variables(payload: &mut Value) {
    for variable in payload["variables"].as_array_mut().into_iter().flatten().filter(|variable| is_secret(variable)) {
        let name = variable["key"].as_str().map(mark);
        if let (Some(name), Some(value)) = (name, variable.get_mut("value")) {
            *value = Value::String(name);
        }
    }
}

fn replace(value: &mut Value, named: &[(String, String)], secrets: &Secrets) {
    match value {
        Value::String(text) => {
            for (name, secret) in named {
                if text.contains(secret) {
                    *text = text.replace(secret, &mark(name));
                }
            }
            // Encoded, or split over lines: without its name.
            if let std::borrow::Cow::Owned(masked) = secrets.mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, named, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, named, secrets)),
        _ => {}
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use step_payload::{Here, steps_of};

    fn payload() -> Value {
        json!({
            "id": 7, "token": "job-token-7", "job_info": {"name": "x"},
            "git_info": {"repo_url": "https://gitlab-ci-token:job-token-7@gitlab.example/a.git"},
            "variables": [
                {"key": "PASSWORD", "value": "correct horse", "masked": true},
                {"key": "URL", "value": "https://u:correct horse@h"},
                {"key": "KEY", "value": "-----BEGIN", "file": true},
                {"key": "PIN", "value": "123", "masked": true},
                {"key": "CI_JOB_TOKEN", "value": "job-token-7", "masked": true},
            ],
            "credentials": [{"type": "registry", "password": "reg-password"}],
            "steps": [{"name": "script", "script": ["echo Y29ycmVjdCBob3JzZQ== 123"]}],
        })
    }

    #[test]
    fn every_secret_is_replaced_by_its_name_wherever_it_stands() {
        let kept = without_secrets(payload().to_string().as_bytes()).expect("JSON");
        for secret in ["correct horse", "job-token-7", "-----BEGIN", "reg-password", "Y29ycmVjdCBob3JzZQ"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        let value = |at: usize| kept["variables"][at]["value"].as_str().unwrap_or_default();
        assert_eq!((value(0), value(1), value(3)), ("[MASKED PASSWORD]", "https://u:[MASKED PASSWORD]@h", "[MASKED PIN]"));
        assert_eq!(kept["git_info"]["repo_url"], "https://gitlab-ci-token:[MASKED CI_JOB_TOKEN]@gitlab.example/a.git");
    }

    #[test]
    fn a_laptop_is_asked_for_exactly_what_was_replaced() {
        let kept = without_secrets(payload().to_string().as_bytes()).expect("JSON");
        let here = Here { builtins: vec!["checkout".to_owned()], ..Here::default() };
        let translation = steps_of(&kept, &here, &BTreeMap::new()).expect("a job");
        assert_eq!(translation.missing, ["KEY", "PASSWORD", "PIN"]);
    }

    #[test]
    fn what_is_no_json_is_not_kept() {
        assert_eq!(without_secrets(b"{"), None);
    }
}
