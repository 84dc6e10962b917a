//! Values of a job: scripts, variables, images and the like, each with what GitLab says when it is something else.

use super::assemble::Fault;
use super::tree::{Content, Tree};
use crate::job::{Artifact, Cache, Image, JobVariable};
use std::collections::BTreeMap;
use step_model::document::When;

/// Lists in lists in a script: GitLab's limit.
const MAXIMUM_NESTING: usize = 10;

/// Commands of one script: far more than any person writes, and far less than aliases of aliases can make.
const MAXIMUM_LINES: usize = 100_000;

/// Reads values and notes what is wrong with them.
#[derive(Debug)]
pub(super) struct Values<'f> {
    pub faults: &'f mut Vec<Fault>,
}

impl Values<'_> {
    pub fn fault(&mut self, value: &Tree, message: impl Into<String>) {
        self.faults.push(Fault { at: value.at, message: message.into(), hint: None });
    }

    fn fault_with_hint(&mut self, value: &Tree, message: impl Into<String>, hint: &str) {
        self.faults.push(Fault { at: value.at, message: message.into(), hint: Some(hint.to_owned()) });
    }

    pub fn text(&mut self, value: &Tree, name: &str) -> String {
        match alphanumeric(value) {
            Some(text) => text,
            None => {
                self.fault(value, format!("{name} config should be a string, and this is {}", value.kind_name()));
                String::new()
            }
        }
    }

    fn optional_text(&mut self, map: &Tree, key: &str, name: &str) -> String {
        map.get(key).map(|value| self.text(value, &format!("{name}:{key}"))).unwrap_or_default()
    }

    pub fn texts(&mut self, value: &Tree, name: &str) -> Vec<String> {
        value.one_or_several().iter().map(|item| self.text(item, name)).collect()
    }

    fn optional_texts(&mut self, map: &Tree, key: &str, name: &str) -> Vec<String> {
        map.get(key).map(|value| self.texts(value, &format!("{name}:{key}"))).unwrap_or_default()
    }

    fn flag(&mut self, map: &Tree, key: &str, name: &str) -> bool {
        match map.get(key).map(|value| (value, &value.content)) {
            None => false,
            Some((_, Content::Boolean(flag))) => *flag,
            Some((value, _)) => {
                self.fault(value, format!("{name}:{key} config should be a boolean value"));
                false
            }
        }
    }

    fn when(&mut self, map: &Tree, name: &str) -> When {
        match map.get("when").map(|value| (value, value.as_text())) {
            None => When::OnSuccess,
            Some((_, Some(text))) if &**text == "on_success" => When::OnSuccess,
            Some((_, Some(text))) if &**text == "on_failure" => When::OnFailure,
            Some((_, Some(text))) if &**text == "always" => When::Always,
            Some((value, _)) => {
                self.fault(value, format!("{name}:when should be one of: on_success, on_failure, always"));
                When::OnSuccess
            }
        }
    }

    /// The commands of a script, lists in lists made flat.
    pub fn script(&mut self, value: &Tree, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        self.commands(value, name, 0, &mut lines);
        if lines.len() > MAXIMUM_LINES {
            self.fault(value, format!("{name} has more than {MAXIMUM_LINES} commands"));
        }
        lines
    }

    fn commands(&mut self, value: &Tree, name: &str, level: usize, lines: &mut Vec<String>) {
        match &value.content {
            _ if lines.len() > MAXIMUM_LINES => {}
            Content::Text(text) => lines.push(text.to_string()),
            Content::List(items) if level <= MAXIMUM_NESTING => items.iter().for_each(|item| self.commands(item, name, level + 1, lines)),
            // The value of a reference that could not be found: that has been said.
            Content::Null if !self.faults.is_empty() => {}
            Content::Map(_) => {
                let message = format!("{name} config should be a string or a nested array of strings up to 10 levels deep");
                self.fault_with_hint(value, message, "quote a command that holds `: `");
            }
            _ => self.fault(value, format!("{name} config should be a string or a nested array of strings up to 10 levels deep")),
        }
    }

    pub fn variables(&mut self, value: &Tree, name: &str) -> Vec<JobVariable> {
        let Some(map) = value.as_map() else {
            self.fault(value, format!("{name} config should be a hash of key value pairs"));
            return Vec::new();
        };
        map.0.iter().filter_map(|(key, value)| self.variable(key, value, name)).collect()
    }

    fn variable(&mut self, key: &str, value: &Tree, name: &str) -> Option<JobVariable> {
        let (value, raw) = match value.as_map() {
            None => (value, false),
            Some(_) => {
                let expand = value.get("expand").map(|expand| (expand, &expand.content));
                let raw = match expand {
                    None => false,
                    Some((_, Content::Boolean(expand))) => !expand,
                    Some((expand, _)) => {
                        self.fault(expand, format!("{name}:{key} config expand should be a boolean value"));
                        false
                    }
                };
                match value.get("value") {
                    Some(value) => (value, raw),
                    None => return Some(JobVariable { key: key.to_owned(), raw, public: true, ..JobVariable::default() }),
                }
            }
        };
        let Some(text) = alphanumeric(value) else {
            let message = format!("{name}:{key} variable definition must be either a string or a hash");
            self.fault_with_hint(value, message, "quote the value: `\"1.10\"`, `\"true\"`");
            return None;
        };
        Some(JobVariable { key: key.to_owned(), value: text, raw, public: true, ..JobVariable::default() })
    }

    pub fn image(&mut self, value: &Tree, name: &str) -> Image {
        if value.as_map().is_none() {
            return Image { name: self.text(value, name), ..Image::default() };
        }
        let docker = value.get("docker");
        let variables = value.get("variables").map(|variables| self.variables(variables, &format!("{name}:variables"))).unwrap_or_default();
        let image = Image {
            name: self.optional_text(value, "name", name),
            aliases: self
                .optional_text(value, "alias", name)
                .split([',', ' '])
                .filter(|alias| !alias.is_empty())
                .map(str::to_owned)
                .collect(),
            entrypoint: self.optional_texts(value, "entrypoint", name),
            command: self.optional_texts(value, "command", name),
            variables: variables.into_iter().map(|variable| (variable.key, variable.value)).collect::<BTreeMap<_, _>>(),
            pull_policy: self.optional_texts(value, "pull_policy", name),
            platform: docker.map(|docker| self.optional_text(docker, "platform", name)).unwrap_or_default(),
            user: docker.map(|docker| self.optional_text(docker, "user", name)).unwrap_or_default(),
        };
        if image.name.is_empty() {
            self.fault(value, format!("{name} name can't be blank"));
        }
        image
    }

    pub fn cache(&mut self, value: &Tree, name: &str) -> Option<Cache> {
        if value.as_map().is_none() {
            self.fault(value, format!("{name} config should be a hash"));
            return None;
        }
        let key = match value.get("key") {
            None => "default".to_owned(),
            // The key is a hash of the files' content, which is not known here; the files name it as well.
            Some(key) if key.as_map().is_some() => {
                let prefix = self.optional_text(key, "prefix", name);
                let files = self.optional_texts(key, "files", name).join("-");
                if prefix.is_empty() { files } else { format!("{prefix}-{files}") }
            }
            Some(key) => self.text(key, &format!("{name}:key")),
        };
        Some(Cache {
            key,
            untracked: self.flag(value, "untracked", name),
            paths: self.optional_texts(value, "paths", name),
            policy: self.optional_text(value, "policy", name),
            when: self.when(value, name),
            fallback_keys: self.optional_texts(value, "fallback_keys", name),
        })
    }

    /// The archive, and one more for each report, as GitLab puts them into a payload.
    pub fn artifacts(&mut self, value: &Tree, name: &str) -> Vec<Artifact> {
        if value.as_map().is_none() {
            self.fault(value, format!("{name} config should be a hash"));
            return Vec::new();
        }
        let expire_in = self.optional_text(value, "expire_in", name);
        let archive = Artifact {
            name: self.optional_text(value, "name", name),
            untracked: self.flag(value, "untracked", name),
            paths: self.optional_texts(value, "paths", name),
            exclude: self.optional_texts(value, "exclude", name),
            when: self.when(value, name),
            kind: "archive".to_owned(),
            format: "zip".to_owned(),
            expire_in: expire_in.clone(),
        };
        let mut artifacts = vec![archive];
        for (kind, report) in value.get("reports").and_then(Tree::as_map).into_iter().flat_map(|reports| &reports.0) {
            let report = report.get("path").unwrap_or(report);
            let paths = self.texts(report, &format!("{name}:reports:{kind}"));
            artifacts.push(Artifact {
                paths,
                kind: kind.to_string(),
                when: When::Always,
                expire_in: expire_in.clone(),
                ..Artifact::default()
            });
        }
        artifacts
    }
}

/// A text or a whole number, as GitLab's Ruby reads YAML 1.1. `None`: anything else, which it refuses.
fn alphanumeric(value: &Tree) -> Option<String> {
    match &value.content {
        Content::Text(text) => Some(text.to_string()),
        Content::Number { number, written } => whole_number(*number, written),
        _ => None,
    }
}

fn whole_number(number: f64, written: &str) -> Option<String> {
    if written.starts_with("0o") || written.contains(['e', 'E']) && !written.contains(['.', 'x', 'X']) {
        return Some(written.to_owned()); // YAML 1.1 knows neither: a text.
    }
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written.strip_prefix('+').unwrap_or(written)),
    };
    let digits = digits.replace('_', "");
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Some(match digits.len() > 1 && digits.starts_with('0') {
            false => format!("{sign}{digits}"),
            true if digits.contains(['8', '9']) => written.to_owned(),
            true => format!("{number:.0}"),
        });
    }
    (digits.starts_with("0x") || digits.starts_with("0b")).then(|| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_the_texts_that_ruby_makes_of_them() {
        let text = |written: &str| super::super::tree::parse(written, 0).root.as_ref().and_then(alphanumeric);
        for (written, expected) in [
            ("1", "1"),
            ("-5", "-5"),
            ("0", "0"),
            ("0777", "511"),
            ("08", "08"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("1e3", "1e3"),
            ("0o17", "0o17"),
            ("12345678901234567890", "12345678901234567890"),
            ("1.2.3", "1.2.3"),
            ("'1.10'", "1.10"),
        ] {
            assert_eq!(text(written).as_deref(), Some(expected), "{written}");
        }
        for refused in ["1.10", "1.", "true", "~", "[a]", ".inf"] {
            assert_eq!(text(refused), None, "{refused}");
        }
    }
}
