//! Whether an outcome is what a case expects: every difference at once, each where the case says what it expects.

use crate::outcome::{Found, Outcome, Reached};
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::diagnostic::Place;
use step_model::document::Dialect;
use step_model::expression::{Template, evaluate_expression, nearest};
use step_model::masking::MASK;
use step_model::testing::suite::{Case, Expected, FileMatch, Given, Placed, StepExpectation, StepStatus, TextCondition, TextMatch};
use step_model::testing::{Contexts, in_words};
use step_model::value::{Data, Kind, Value};

/// Something that is not as the case says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// In the file of the case.
    pub place: Place,
    /// A lowercase fragment without a final period.
    pub message: String,
    pub difference: Option<Difference>,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub expected: String,
    pub got: String,
}

/// What the comparison needs besides the case and what came out.
#[derive(Debug)]
pub struct Against<'a> {
    pub scope: &'a Contexts,
    /// By the names in the case. `None`: there is no such file.
    pub goldens: &'a BTreeMap<Arc<str>, Option<String>>,
    /// Replaced in what is compared with a golden file, since they differ from run to run: what, and by what.
    pub replaced: &'a [(Arc<str>, &'static str)],
}

/// The differences, and what golden files should hold if all is well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub findings: Vec<Finding>,
    /// Golden files that are missing or differ, with their new text.
    pub updates: BTreeMap<Arc<str>, String>,
}

/// Compares.
pub fn compare(case: &Case, outcome: &Outcome, against: &Against<'_>) -> Comparison {
    let mut comparing = Comparing { case, outcome, against, comparison: Comparison::default() };
    comparing.end();
    comparing.own_values();
    comparing.files();
    for step in &case.expect.steps {
        comparing.step(step);
    }
    comparing.calls();
    comparing.doubles();
    for condition in &case.expect.that {
        comparing.condition(condition);
    }
    comparing.comparison
}

struct Comparing<'a> {
    case: &'a Case,
    outcome: &'a Outcome,
    against: &'a Against<'a>,
    comparison: Comparison,
}

impl Comparing<'_> {
    fn find(&mut self, place: &Place, message: impl Into<String>) -> &mut Finding {
        let finding = Finding { place: place.clone(), message: message.into(), difference: None, hint: None };
        self.comparison.findings.push_mut(finding)
    }

    fn differ(&mut self, place: &Place, message: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) {
        self.find(place, message).difference = Some(Difference { expected: expected.into(), got: got.into() });
    }

    /// How the step ended.
    fn end(&mut self) {
        let (case, outcome) = (self.case, self.outcome);
        for fault in &outcome.faults {
            self.find(&case.place, fault.clone());
        }
        let message = outcome.failure.as_ref().map_or("", |failure| &failure.message);
        if outcome.timed_out() && case.expect.failure.is_none() {
            let limit = case.timeout.map_or_else(String::new, |limit| format!(" of {}", seconds(limit)));
            let finding = self.find(&case.place, format!("the case did not end within its limit{limit}, and was ended: {message}"));
            finding.hint = Some("give it more time: `timeout: 1m`, or find out what it waits for: standard input is empty".into());
            return;
        }
        match (&case.expect.exit, outcome.succeeded) {
            (None, false) if case.expect.failure.is_none() && outcome.faults.is_empty() => {
                let finding = self.find(&case.place, format!("the step failed: {message}"));
                finding.hint = outcome.exit.map(|exit| format!("if that is meant, write `expect: {{exit: {exit}}}`"));
            }
            (None, true) if case.expect.failure.is_some() => {
                self.find(&case.place, "the step should fail, but ended well");
            }
            (Some(Placed { it: 0, place }), false) => {
                self.find(place, format!("the step failed: {message}"));
            }
            (Some(Placed { it: code @ 1.., place }), true) => {
                self.differ(place, "the step should fail, but ended well", code.to_string(), "0")
            }
            (Some(Placed { it: code, place }), false) if outcome.exit != Some(*code) => {
                let got = outcome.exit.map_or_else(|| "none".into(), |exit| exit.to_string());
                self.differ(place, format!("the step failed with another exit code: {message}"), code.to_string(), got);
            }
            _ => {}
        }
        if let (Some(expected), false) = (&case.expect.failure, outcome.succeeded) {
            self.text(expected, message, "the failure");
        }
    }

    fn own_values(&mut self) {
        let (case, outcome) = (self.case, self.outcome);
        if outcome.succeeded || !outcome.outputs.is_empty() {
            self.values(&case.expect.outputs, &outcome.outputs, "output");
        }
        let exports: Vec<(Arc<str>, Value)> = outcome.exports.iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect();
        self.values(&case.expect.exports, &exports, "export");
        if let Some(log) = &case.expect.log {
            self.text(log, &outcome.log, "the log");
        }
    }

    fn values(&mut self, expected: &[Given<Expected>], got: &[(Arc<str>, Value)], what: &str) {
        for given in expected {
            let Some((_, value)) = got.iter().find(|(name, _)| *name == given.name) else {
                let near = nearest(&given.name, got.iter().map(|(name, _)| &**name)).map(|near| format!("did you mean `{near}`?"));
                self.find(&given.place, format!("there is no {what} `{}`", given.name)).hint = near;
                continue;
            };
            self.value(&given.value, value, &format!("{what} `{}`", given.name));
        }
    }

    fn value(&mut self, expected: &Expected, got: &Value, what: &str) {
        if let (Some(text), true) = (&expected.text, got.kind() != Kind::Struct) {
            let is_secret = got.holds_sensitive();
            let got = got.as_str().map_or_else(|| got.to_json().to_string(), str::to_owned);
            let first = self.comparison.findings.len();
            self.text(text, &got, what);
            for difference in self.comparison.findings[first..].iter_mut().filter_map(|finding| finding.difference.as_mut()) {
                if is_secret {
                    difference.got = MASK.into();
                }
            }
            return;
        }
        match expected.value.evaluate(self.against.scope) {
            Ok(value) if value == *got || value.to_json() == got.to_json() => {}
            Ok(value) if value.kind() != got.kind() => {
                let message = format!("{what} is {}, not {}", described(got.kind()), described(value.kind()));
                self.differ(&expected.place, message, shown(&value), shown(got));
            }
            Ok(value) => self.differ(&expected.place, format!("{what} differs"), shown(&value), shown(got)),
            Err(error) => {
                self.find(&expected.place, format!("{what}: {error}"));
            }
        }
    }

    fn text(&mut self, expected: &TextMatch, got: &str, what: &str) {
        for condition in &expected.conditions {
            self.text_condition(condition, got, what);
        }
    }

    fn text_condition(&mut self, condition: &Placed<TextCondition>, got: &str, what: &str) {
        let place = &condition.place;
        match &condition.it {
            TextCondition::Equals(template) => {
                let Some(expected) = self.evaluated(template, place) else { return };
                // What a program prints ends with a newline that nobody wants to write down.
                if got != expected && got.strip_suffix('\n') != Some(&expected) {
                    self.differ(place, format!("{what} differs"), expected, got);
                }
            }
            TextCondition::Contains(template) => {
                let Some(expected) = self.evaluated(template, place) else { return };
                if !got.contains(expected.trim_end_matches('\n')) {
                    self.differ(place, format!("{what} does not contain this"), expected, got);
                }
            }
            TextCondition::Excludes(template) => {
                let Some(unwanted) = self.evaluated(template, place) else { return };
                if got.contains(unwanted.trim_end_matches('\n')) {
                    self.find(place, format!("{what} contains `{}`", unwanted.trim_end_matches('\n')));
                }
            }
            TextCondition::Matches(expression) => {
                // One that is none was told when the file was read.
                let is_match = regex::Regex::new(expression).is_ok_and(|expression| expression.is_match(got));
                if !is_match {
                    self.differ(place, format!("{what} does not match this"), expression.to_string(), got);
                }
            }
            TextCondition::Golden(path) => self.golden(path, place, got, what),
        }
    }

    fn golden(&mut self, path: &Arc<str>, place: &Place, got: &str, what: &str) {
        let got = self.against.replaced.iter().fold(got.to_owned(), |text, (from, to)| text.replace(&**from, to));
        let finding = match self.against.goldens.get(path) {
            Some(Some(text)) if *text == got => return,
            Some(Some(text)) => {
                let text = text.clone();
                self.differ(place, format!("{what} is not what the golden file `{path}` holds"), text, got.as_str());
                self.comparison.findings.last_mut()
            }
            _ => Some(self.find(place, format!("the golden file `{path}` is missing"))),
        };
        if let Some(finding) = finding {
            finding.hint = Some("`step-runner test --update` writes what came out into golden files".into());
        }
        self.comparison.updates.insert(Arc::clone(path), got);
    }

    fn evaluated(&mut self, template: &Template, place: &Place) -> Option<String> {
        match template.evaluate_text(self.against.scope) {
            Ok(value) => value.as_str().map(str::to_owned),
            Err(error) => {
                self.find(place, error.to_string());
                None
            }
        }
    }

    fn files(&mut self) {
        let (case, outcome) = (self.case, self.outcome);
        for file in &case.expect.files {
            let found = outcome.files.get(&file.name).unwrap_or(&Found::Nothing);
            match (&file.value, found) {
                (FileMatch::Absent, Found::Nothing) | (FileMatch::Present, Found::File(_)) => {}
                (FileMatch::Absent, _) => {
                    self.find(&file.place, format!("there is a file `{}`, and there should be none", file.name));
                }
                (_, Found::Nothing) => {
                    self.find(&file.place, format!("there is no file `{}`", file.name));
                }
                (_, Found::Other(why)) => {
                    self.find(&file.place, format!("the file `{}` cannot be read: {why}", file.name));
                }
                (FileMatch::Text(text), Found::File(bytes)) => {
                    self.text(text, &String::from_utf8_lossy(bytes), &format!("the file `{}`", file.name));
                }
            }
        }
    }

    fn step(&mut self, expected: &StepExpectation) {
        let path = expected.path.join("/");
        let outcome = self.outcome;
        let reached = outcome.step(&path);
        let status = match reached {
            None => StepStatus::Skipped,
            Some(step) if step.succeeded => StepStatus::Success,
            Some(_) => StepStatus::Failure,
        };
        match &expected.status {
            Some(Placed { it, place }) if *it != status => {
                let message = match reached.and_then(|step| step.failure.as_ref()) {
                    Some(failure) => format!("step `{path}` failed: {}", failure.message),
                    None => format!("step `{path}` ended otherwise"),
                };
                return self.differ(place, message, it.name(), status.name());
            }
            Some(Placed { it: StepStatus::Skipped, .. }) => return,
            _ => {}
        }
        let Some(step) = reached else {
            let finding = self.find(&expected.place, format!("step `{path}` was not reached"));
            finding.hint = Some(reached_so_far(&outcome.steps));
            return;
        };
        if let Some(Placed { it, place }) = &expected.exit
            && step.exit != Some(*it)
        {
            let got = step.exit.map_or_else(|| "none".into(), |exit| exit.to_string());
            self.differ(place, format!("step `{path}` has another exit code"), it.to_string(), got);
        }
        let env: Vec<(Arc<str>, Value)> = step.env.iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect();
        for (expected, got, what) in [
            (&expected.inputs, &step.inputs, "input"),
            (&expected.outputs, &step.outputs, "output"),
            (&expected.exports, &step.exports, "export"),
            (&expected.env, &env, "variable"),
        ] {
            let first = self.comparison.findings.len();
            self.values(expected, got, what);
            for finding in &mut self.comparison.findings[first..] {
                finding.message = format!("step `{path}`: {}", finding.message);
            }
        }
    }

    fn calls(&mut self) {
        let Some(Placed { it: expected, place }) = &self.case.expect.calls else { return };
        let got: Vec<String> = self.outcome.calls.iter().map(|call| in_words(&whole(&call.name, &call.args))).collect();
        let is_as_expected = expected.len() == got.len()
            && expected.iter().zip(&self.outcome.calls).all(|(expected, call)| expected.it == whole(&call.name, &call.args));
        if !is_as_expected {
            let expected: Vec<String> = expected.iter().map(|call| in_words(&call.it)).collect();
            let message = format!("the calls of stubs differ: {} expected, {} made", expected.len(), got.len());
            self.differ(place, message, expected.join("\n"), got.join("\n"));
        }
    }

    /// How often fakes and stubs were used. One that nobody needed makes a reader believe what is not true.
    fn doubles(&mut self) {
        let (case, outcome) = (self.case, self.outcome);
        let of_stub = |name: &str| outcome.calls.iter().filter(|call| *call.name == *name).count() as u64;
        let of_fake = |index: usize| outcome.fakes.get(&index).copied().unwrap_or_default();
        for given in &case.expect.called {
            let fake = case.fakes.iter().position(|fake| fake.name == given.name);
            let got = fake.map_or_else(|| of_stub(&given.name), of_fake);
            if got != given.value {
                self.differ(&given.place, format!("`{}` was called {}", given.name, times(got)), times(given.value), times(got));
            }
        }
        let is_counted = |name: &Arc<str>| case.expect.called.iter().any(|given| given.name == *name);
        for (index, fake) in case.fakes.iter().enumerate() {
            if of_fake(index) == 0 && !fake.optional && !is_counted(&fake.name) {
                let finding = self.find(&fake.place, format!("the fake `{}` was never reached", fake.name));
                finding.hint = Some(format!("remove it, or say that it need not be: `optional: true`; {}", reached_so_far(&outcome.steps)));
            }
        }
        for stub in &case.stubs {
            if of_stub(&stub.name) == 0 && !stub.optional && !is_counted(&stub.name) {
                let finding = self.find(&stub.place, format!("the stub `{}` was never called", stub.name));
                finding.hint = Some("remove it, or say that it need not be: `optional: true`".into());
            }
        }
    }

    fn condition(&mut self, condition: &Placed<Arc<str>>) {
        let outcome = self.outcome;
        let object = |values: &[(Arc<str>, Value)]| Value::object(values.iter().cloned());
        let steps = outcome.steps.iter().filter(|step| step.path.len() == 1).map(|step| {
            let value = Value::object([
                ("outputs", object(&step.outputs)),
                ("inputs", object(&step.inputs)),
                ("exports", object(&step.exports)),
                ("exit", step.exit.map_or(Value::NULL, |exit| f64::from(exit).into())),
            ]);
            (Arc::clone(&step.path[0]), value)
        });
        let exports = Value::object(outcome.exports.iter().map(|(name, value)| (Arc::clone(name), value.clone())));
        let scope = self.against.scope.clone();
        let scope = scope.with("outputs", object(&outcome.outputs)).with("exports", exports).with("steps", Value::object(steps));
        let scope = scope.with("log", outcome.log.as_str()).with("exit", f64::from(outcome.exit.unwrap_or_default()));
        match evaluate_expression(&condition.it, Dialect::Functions, &scope) {
            Ok(value) if *value.data() == Data::Boolean(true) => {}
            Ok(value) => self.differ(&condition.place, format!("`{}` is not true", condition.it), "true", shown(&value)),
            Err(error) => {
                self.find(&condition.place, format!("`{}` has no value: {error}", condition.it));
            }
        }
    }
}

fn whole(name: &Arc<str>, args: &[Arc<str>]) -> Vec<Arc<str>> {
    [name].into_iter().chain(args).cloned().collect()
}

fn reached_so_far(steps: &[Reached]) -> String {
    let names: Vec<String> = steps.iter().filter(|step| !step.path.is_empty()).map(|step| format!("`{}`", step.path.join("/"))).collect();
    if names.is_empty() { "no step was reached".into() } else { format!("reached were {}", names.join(", ")) }
}

fn times(number: u64) -> String {
    match number {
        0 => "never".into(),
        1 => "once".into(),
        number => format!("{number} times"),
    }
}

pub(crate) fn seconds(duration: std::time::Duration) -> String {
    if duration.subsec_nanos() == 0 { format!("{}s", duration.as_secs()) } else { format!("{}ms", duration.as_millis()) }
}

fn described(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Boolean => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Struct => "a struct",
    }
}

/// As people read it: a text as it is, anything else as JSON. Nothing secret is shown.
fn shown(value: &Value) -> String {
    if value.holds_sensitive() {
        return MASK.into();
    }
    match value.as_str() {
        Some(text) => text.into(),
        None => {
            let json = value.to_json();
            let is_short = json.to_string().len() < 60;
            if is_short { json.to_string() } else { format!("{json:#}") }
        }
    }
}
