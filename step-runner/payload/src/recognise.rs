//! What the content of a file or of standard input is, so that `run` need not be told.

/// What `run` was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// A run request as protobuf JSON: its `steps` are a text of YAML.
    RunRequest,
    /// The 201 body of `jobs/request`.
    GitlabPayload,
    /// `.gitlab-ci.yml`: jobs by name.
    GitlabCi,
    /// A definition: `spec:` and, in a second document, `exec:` or `run:`.
    Definition,
    /// One invocation: text that begins with `step:` or `func:`.
    Invocation,
    /// None of them.
    Unknown,
}

/// Looks at the content only. Never fails: what is broken is recognised by what is there, so that the reader of that kind can say what is wrong.
pub fn recognise(text: &str) -> Recognised {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') && !begins_with_empty_header(text) {
        return recognise_json(text);
    }
    recognise_yaml(text)
}

/// `{}` and `---`: the header of a definition without inputs and outputs.
fn begins_with_empty_header(text: &str) -> bool {
    text.strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix('}')).is_some_and(|rest| rest.trim_start().starts_with("---"))
}

fn recognise_json(text: &str) -> Recognised {
    let keys = top_level_keys(text);
    let has = |name: &str| keys.iter().any(|(key, _)| *key == name);
    let is_text = |name: &str| keys.iter().any(|(key, value)| *key == name && *value == b'"');
    if ["job_info", "git_info", "runner_info"].into_iter().any(has) || (has("token") && (has("variables") || has("steps") || has("run"))) {
        return Recognised::GitlabPayload;
    }
    // What no text of steps can say travels beside it.
    if is_text("steps") || has("jobSteps") || has("job_steps") {
        return Recognised::RunRequest;
    }
    if has("spec") || has("exec") || has("run") || has("steps") || has("delegate") {
        return Recognised::Definition;
    }
    if has("step") || has("func") {
        return Recognised::Invocation;
    }
    Recognised::Unknown
}

/// The keys of the outermost object and the first byte of each value, as far as the text goes.
fn top_level_keys(text: &str) -> Vec<(&str, u8)> {
    let bytes = text.as_bytes();
    let mut keys = Vec::new();
    let mut depth = 0usize;
    let mut position = 0;
    let mut key: Option<&str> = None;
    while position < bytes.len() {
        let byte = bytes[position];
        match byte {
            b'"' => {
                let end = end_of_string(bytes, position);
                if depth == 1 {
                    match key.take() {
                        Some(name) => keys.push((name, b'"')),
                        None if followed_by_colon(bytes, end) => key = text.get(position + 1..end.saturating_sub(1)),
                        None => {}
                    }
                }
                position = end;
                continue;
            }
            b'{' | b'[' => {
                if let (1, Some(name)) = (depth, key.take()) {
                    keys.push((name, byte));
                }
                depth += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' | b',' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                if let (1, Some(name)) = (depth, key.take()) {
                    keys.push((name, byte));
                }
            }
        }
        position += 1;
    }
    keys
}

/// The position after the closing quote of the string that begins at `start`; the end of the text if there is none.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while position < bytes.len() {
        match bytes[position] {
            b'\\' => position += 2,
            b'"' => return position + 1,
            _ => position += 1,
        }
    }
    bytes.len()
}

fn followed_by_colon(bytes: &[u8], position: usize) -> bool {
    bytes[position..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// The keys that a definition or an invocation can have at its outermost level.
const KEYS_OF_STEPS: [&str; 14] =
    ["spec", "exec", "run", "steps", "env", "outputs", "delegate", "type", "step", "func", "inputs", "name", "script", "action"];

/// By the keys that stand at the beginning of a line, in the last document that has any.
fn recognise_yaml(text: &str) -> Recognised {
    if begins_with_empty_header(text) {
        return Recognised::Definition;
    }
    let mut keys: Vec<&str> = Vec::new();
    let mut new_document = false;
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            new_document = true;
            continue;
        }
        if line.starts_with(['#', ' ', '\t', '-', '%', ']', '}']) || line.trim().is_empty() {
            continue;
        }
        if std::mem::take(&mut new_document) {
            keys.clear();
        }
        if let Some((key, _)) = line.split_once(':') {
            keys.push(key.trim().trim_matches(['"', '\'']));
        }
    }
    match keys.first() {
        None => Recognised::Unknown,
        Some(_) if !keys.iter().all(|key| KEYS_OF_STEPS.contains(key)) => Recognised::GitlabCi,
        Some(_) if ["spec", "exec", "run", "steps"].iter().any(|key| keys.contains(key)) => Recognised::Definition,
        Some(&("step" | "func")) => Recognised::Invocation,
        Some(_) if keys.contains(&"step") || keys.contains(&"func") => Recognised::Invocation,
        Some(_) => Recognised::Definition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_request_has_its_steps_as_text() {
        assert_eq!(recognise(r#"{"id": "1", "steps": "{}\n---\nrun: []\n"}"#), Recognised::RunRequest);
        assert_eq!(recognise(r#"{"id": "1", "jobSteps": {"steps": []}}"#), Recognised::RunRequest);
    }

    #[test]
    fn a_job_payload_is_known_by_its_fields_also_when_it_is_cut_off() {
        let payload = r#"{"id": 1, "token": "t", "job_info": {"name": "steps"}, "steps": [{"name": "script"}]}"#;
        assert_eq!(recognise(payload), Recognised::GitlabPayload);
        assert_eq!(recognise(&payload[..50]), Recognised::GitlabPayload);
        assert_eq!(recognise(r#"{"token": "t", "run": "[]"}"#), Recognised::GitlabPayload);
    }

    #[test]
    fn a_definition_may_be_json_or_yaml() {
        assert_eq!(recognise("spec:\n  inputs: {}\n---\nexec:\n  command: [true]\n"), Recognised::Definition);
        assert_eq!(recognise("{}\n---\nrun:\n  - {name: a, script: b}\n"), Recognised::Definition);
        assert_eq!(recognise("# a comment\nspec:\n---\nrun:\n- name: a\n  script: b\n"), Recognised::Definition);
        assert_eq!(recognise(r#"{"spec": {}}"#), Recognised::Definition);
    }

    #[test]
    fn an_invocation_names_a_step() {
        assert_eq!(recognise("step: ./a\ninputs: {a: 1}\n"), Recognised::Invocation);
        assert_eq!(recognise("func: ./a"), Recognised::Invocation);
        assert_eq!(recognise(r#"{"func": "./a", "inputs": {}}"#), Recognised::Invocation);
    }

    #[test]
    fn a_ci_file_has_jobs_by_name_also_with_a_header() {
        assert_eq!(recognise("stages: [a]\n\nbuild:\n  script: make\n"), Recognised::GitlabCi);
        assert_eq!(recognise("spec:\n  inputs: {}\n---\nbuild:\n  script: make\n"), Recognised::GitlabCi);
    }

    #[test]
    fn anything_else_is_unknown() {
        assert_eq!(recognise(""), Recognised::Unknown);
        assert_eq!(recognise("- a\n- b\n"), Recognised::Unknown);
        assert_eq!(recognise(r#"{"a": 1}"#), Recognised::Unknown);
        assert_eq!(recognise("{\"a"), Recognised::Unknown);
    }
}
