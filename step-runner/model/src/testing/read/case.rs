//! One case: what it is given, and how it is called.

use super::fields::{Reader, first_line};
use crate::document::yaml::Node;
use crate::testing::suite::{Case, Expectation, Given};
use std::time::Duration;

const KEYS: [&str; 13] =
    ["name", "skip", "table", "inputs", "env", "variables", "files", "fakes", "stubs", "hermetic", "timeout", "expect", "description"];
const DEFAULTS: [&str; 8] = ["inputs", "env", "variables", "files", "fakes", "stubs", "hermetic", "timeout"];

impl<'t> Reader<'t> {
    /// What every case has unless it says otherwise.
    pub(super) fn defaults(&mut self, node: &Node<'t>) -> Case {
        self.read_case(node, "`defaults`", &DEFAULTS).unwrap_or_else(|| empty(self.place(node.span)))
    }

    /// `None`: it has no name. A case with other problems is read as far as possible; nothing of the file runs then.
    pub(super) fn case(&mut self, node: &Node<'t>) -> Option<Case> {
        let mut case = self.read_case(node, "a case", &KEYS)?;
        case.name = match node.get("name").filter(|name| !name.is_null()) {
            Some(name) => self.text(name, "`name`")?,
            None => {
                let mut problem = self.error("missing-key", first_line(self.text, node.span), "a case has a `name`");
                problem.hint("say what it shows: `- name: it greets the world`");
                return None;
            }
        };
        if case.name.chars().any(char::is_control) {
            self.error("name", node.get("name").map_or(node.span, |name| name.span), "a name is one line without control characters");
        }
        Some(case)
    }

    fn read_case(&mut self, node: &Node<'t>, what: &str, keys: &[&str]) -> Option<Case> {
        let fields = self.fields(node, what, keys)?;
        let mut case = empty(self.place(first_line(self.text, node.span)));
        case.skip = fields.get("skip").and_then(|node| self.text(node, "`skip`"));
        case.inputs = self.given_values(fields.get("inputs"), "inputs");
        case.env = self.given_templates(fields.get("env"), "env");
        case.variables = self.variables(fields.get("variables"));
        case.files = self.files(fields.get("files"));
        case.fakes = self.fakes(fields.get("fakes"));
        case.stubs = self.stubs(fields.get("stubs"));
        case.hermetic = fields.get("hermetic").and_then(|node| self.boolean(node, "`hermetic`")).unwrap_or(false);
        case.timeout = fields.get("timeout").and_then(|node| self.duration(node));
        case.expect = fields.get("expect").map(|node| self.expectation(node)).unwrap_or_default();
        Some(case)
    }

    /// `90s`, `500ms`, `2m`.
    fn duration(&mut self, node: &Node<'t>) -> Option<Duration> {
        let text = self.text(node, "`timeout`")?;
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let unit = match &text[digits..] {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            _ => None,
        };
        match (text[..digits].parse::<u64>(), unit) {
            (Ok(number @ 1..), Some(unit)) => Some(Duration::from_millis(number.saturating_mul(unit))),
            _ => {
                self.error("duration", node.span, format!("`{text}` is no length of time")).hint("write `500ms`, `10s` or `2m`");
                None
            }
        }
    }
}

fn empty(place: crate::diagnostic::Place) -> Case {
    Case {
        name: "".into(),
        place,
        skip: None,
        inputs: Vec::new(),
        env: Vec::new(),
        variables: Vec::new(),
        files: Vec::new(),
        fakes: Vec::new(),
        stubs: Vec::new(),
        hermetic: false,
        timeout: None,
        expect: Expectation::default(),
    }
}

impl Case {
    /// Takes what `defaults` has and the case does not say. A fake or stub of the defaults need not be reached in every case.
    pub(super) fn complete_with(&mut self, defaults: &Case) {
        complete(&mut self.inputs, &defaults.inputs);
        complete(&mut self.env, &defaults.env);
        complete(&mut self.variables, &defaults.variables);
        complete(&mut self.files, &defaults.files);
        for fake in &defaults.fakes {
            if !self.fakes.iter().any(|own| own.of == fake.of) {
                self.fakes.push(crate::testing::suite::Fake { optional: true, ..fake.clone() });
            }
        }
        for stub in &defaults.stubs {
            if !self.stubs.iter().any(|own| own.name == stub.name) {
                self.stubs.push(crate::testing::suite::Stub { optional: true, ..stub.clone() });
            }
        }
        self.hermetic |= defaults.hermetic;
        self.timeout = self.timeout.or(defaults.timeout);
    }
}

fn complete<T: Clone>(own: &mut Vec<Given<T>>, defaults: &[Given<T>]) {
    let missing: Vec<Given<T>> = defaults.iter().filter(|given| !own.iter().any(|own| own.name == given.name)).cloned().collect();
    own.extend(missing);
}
