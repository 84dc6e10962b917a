//! The text of `steps` in a run request, as GitLab's runner writes it: an empty header, and the list under `run`.
//!
//! Source: GitLab Runner, `steps/steps.go` (original.md B.3): the keys of an item in the order of its struct, four spaces to a level.

use serde_json::{Map, Value};
use step_model::diagnostic::Problem;
use step_model::document::yaml::{Resolved, resolve};

/// The order of the keys of an item, and of what is in them; others follow by name.
const ORDER: [&str; 13] =
    ["action", "delegate", "env", "exec", "command", "work_dir", "inputs", "name", "outputs", "script", "step", "func", "run"];

/// From the JSON list of a job's `run`.
/// # Errors
/// The text is not a JSON list.
pub fn steps_text(run: &str) -> Result<String, Problem> {
    let list: Value = serde_json::from_str(run).map_err(|error| Problem::error("not-json", format!("`run` is not JSON: {error}"), None))?;
    if !list.is_array() {
        return Err(Problem::error("not-a-list", "`run` is not a list", None));
    }
    let mut text = String::from("{}\n---\nrun:");
    write_value(&mut text, &list, 0, true);
    Ok(text)
}

/// Writes a value behind `key:` or `- `, up to the end of its line or of its block. `level` is the column that the key begins at.
fn write_value(text: &mut String, value: &Value, level: usize, is_ordered: bool) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let column = next_level(level);
            text.push('\n');
            for item in items {
                text.extend(std::iter::repeat_n(' ', column));
                text.push_str("- ");
                match item {
                    Value::Object(members) if !members.is_empty() => write_members(text, members, column + 2, true, is_ordered),
                    Value::Array(items) if !items.is_empty() => text.push_str(&format!("{item}\n")), // JSON is YAML
                    _ => text.push_str(&format!("{}\n", scalar(item))),
                }
            }
        }
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            write_members(text, members, next_level(level), false, is_ordered);
        }
        _ => text.push_str(&format!(" {}\n", scalar(value))),
    }
}

/// The first key stands behind a dash when `is_item`.
fn write_members(text: &mut String, members: &Map<String, Value>, column: usize, is_item: bool, is_ordered: bool) {
    let mut keys: Vec<&String> = members.keys().collect();
    if is_ordered {
        keys.sort_by_key(|key| (ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len()), *key));
    }
    for (index, key) in keys.into_iter().enumerate() {
        if !(is_item && index == 0) {
            text.extend(std::iter::repeat_n(' ', column));
        }
        text.push_str(&string(key));
        text.push(':');
        write_value(text, &members[key], column, is_ordered && matches!(key.as_str(), "exec" | "run" | "step" | "func"));
    }
}

fn next_level(column: usize) -> usize {
    (column / 4 + 1) * 4
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        other => other.to_string(),
    }
}

/// Without quotes where no reader can take it for something else.
fn string(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '_'))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./+ ".contains(&byte))
        && !text.ends_with(' ')
        && matches!(resolve(text), Resolved::Text(_))
        && !matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if is_plain || text.strip_prefix("./").is_some_and(|rest| string(rest) == rest) {
        return text.to_owned();
    }
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use step_model::document::{Dialect, raw};

    #[test]
    fn wire_01_a_list_of_steps_becomes_two_documents() {
        assert_eq!(steps_text(r#"[{"name":"s","script":"a b"}]"#).as_deref(), Ok("{}\n---\nrun:\n    - name: s\n      script: a b\n"));
    }

    #[test]
    fn wire_02_inputs_come_before_name_and_reference() {
        let text = steps_text(r#"[{"name":"l","func":"./x","inputs":{"i":"v"}}]"#);
        assert_eq!(text.as_deref(), Ok("{}\n---\nrun:\n    - inputs:\n        i: v\n      name: l\n      func: ./x\n"));
    }

    #[test]
    fn wire_04_exec_comes_first_with_its_command() {
        let text = steps_text(r#"[{"name":"e","exec":{"command":["c","d"],"work_dir":"/w"},"inputs":{"i":"v"}}]"#);
        let expected = "{}\n---\nrun:\n    - exec:\n        command:\n            - c\n            - d\n        work_dir: /w\n      inputs:\n        i: v\n      name: e\n";
        assert_eq!(text.as_deref(), Ok(expected));
    }

    #[test]
    fn what_a_reader_could_mistake_is_quoted() {
        for text in ["yes", "1.10", "null", "a: b", "a #b", "", " a", "a ", "- a", "*a", "é", "a\nb", "${{ x }}", "./a: b"] {
            assert!(string(text).starts_with('"'), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        assert!(steps_text("{}").is_err() && steps_text("[").is_err() && steps_text("").is_err());
        assert_eq!(steps_text("[]").as_deref(), Ok("{}\n---\nrun: []\n"));
    }

    proptest! {
        /// What is written is read back as the same steps as the list itself.
        #[test]
        fn the_text_means_the_same_as_the_list(script in "\\PC{0,30}", key in "[a-z_]{1,8}", value in "\\PC{0,20}|[0-9.e+-]{1,6}") {
            let run = serde_json::json!([{"name": "a", "func": "./x", "inputs": {key.as_str(): [value.as_str(), {"k": value.as_str()}], "n": {"m": value.as_str()}}}, {"name": "b", "script": script, "env": {"E": value.as_str()}}]).to_string();
            let text = steps_text(&run).expect("a text");
            let read = raw::read_job(&text, Dialect::Functions);
            let (steps, problems) = raw::read_steps(&run, Some(Dialect::Functions));
            let Some(document) = read.document else {
                prop_assert!(problems.iter().any(Problem::is_error), "{:?}", read.problems);
                return Ok(());
            };
            let step_model::document::Body::Sequence(sequence) = &document.definition.body else { panic!("a sequence") };
            prop_assert_eq!(sequence.steps.len(), steps.len());
            for (written, meant) in sequence.steps.iter().zip(&steps) {
                prop_assert_eq!(&written.name, &meant.name);
                prop_assert_eq!(&written.action, &meant.action);
                prop_assert_eq!(&written.env, &meant.env);
                prop_assert_eq!(written.inputs.iter().collect::<Vec<_>>(), meant.inputs.iter().collect::<Vec<_>>());
            }
        }
    }
}
