//! Definitions with one change each. A change that no case notices is something that no case needs.

use std::sync::Arc;
use step_model::document::{AllowFailure, Body, Outputs, Sequence, Step, StepDocument, ValueTemplate};
use step_model::value::{Data, Value};

/// A definition with one change.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// What was changed: `drop step notify`. Unique within the definition.
    pub name: String,
    /// The line of the definition that is meant. `None`: none alone.
    pub line: Option<u32>,
    pub document: Arc<StepDocument>,
    /// The tested step's own exit code is taken as 0.
    pub ignores_exit: bool,
}

/// Every mutant of a definition, in a fixed order.
pub fn mutants(document: &StepDocument) -> Vec<Mutant> {
    let mut mutants = Mutants { original: document, found: Vec::new() };
    mutants.defaults();
    mutants.variables();
    match &document.definition.body {
        Body::Exec(exec) => {
            for (index, argument) in exec.command.iter().enumerate().skip(1) {
                mutants.change(format!("drop argument {index} `{}`", one_line(argument.source())), None, |document| {
                    if let Body::Exec(exec) = &mut document.definition.body {
                        exec.command.remove(index);
                    }
                });
            }
            let ignores =
                Mutant { name: "ignore the exit code".into(), line: None, document: Arc::new(document.clone()), ignores_exit: true };
            mutants.found.push(ignores);
        }
        Body::Sequence(sequence) => mutants.sequence(sequence),
    }
    mutants.found
}

struct Mutants<'a> {
    original: &'a StepDocument,
    found: Vec<Mutant>,
}

impl Mutants<'_> {
    fn change(&mut self, name: String, line: Option<u32>, change: impl FnOnce(&mut StepDocument)) {
        let mut document = self.original.clone();
        change(&mut document);
        // Two steps may have one name.
        let number = self.found.iter().filter(|mutant| mutant.name == name || mutant.name.starts_with(&format!("{name} #"))).count();
        let name = if number == 0 { name } else { format!("{name} #{}", number + 1) };
        if document != *self.original {
            self.found.push(Mutant { name, line, document: Arc::new(document), ignores_exit: false });
        }
    }

    fn change_step(&mut self, name: String, index: usize, change: impl FnOnce(&mut Step)) {
        let line = line_of(self.original, index);
        self.change(name, line, |document| {
            if let Body::Sequence(sequence) = &mut document.definition.body {
                change(Arc::make_mut(&mut sequence.steps[index]));
            }
        });
    }

    fn defaults(&mut self) {
        let original = self.original;
        for (index, (name, input)) in original.spec.inputs.iter().enumerate() {
            let Some(default) = &input.default else { continue };
            self.change(format!("change the default of input {name}"), None, |document| {
                document.spec.inputs[index].1.default = Some(other(default));
            });
        }
        let Outputs::Declared(outputs) = &original.spec.outputs else { return };
        for (index, (name, output)) in outputs.iter().enumerate() {
            let Some(default) = &output.default else { continue };
            self.change(format!("change the default of output {name}"), None, |document| {
                if let Outputs::Declared(outputs) = &mut document.spec.outputs {
                    outputs[index].1.default = Some(other(default));
                }
            });
        }
    }

    fn variables(&mut self) {
        for (index, (name, _)) in self.original.definition.env.iter().enumerate() {
            self.change(format!("drop variable {}", name.source()), None, |document| drop(document.definition.env.remove(index)));
        }
    }

    fn sequence(&mut self, sequence: &Sequence) {
        for (index, step) in sequence.steps.iter().enumerate() {
            let line = line_of(self.original, index);
            self.change(format!("drop step {}", step.name), line, |document| {
                if let Body::Sequence(sequence) = &mut document.definition.body {
                    sequence.steps.remove(index);
                }
            });
            self.change_step(format!("ignore the failure of step {}", step.name), index, |step| step.allow_failure = AllowFailure::Any);
            for (at, (name, _)) in step.inputs.iter().enumerate() {
                self.change_step(format!("drop input {} of step {}", name.source(), step.name), index, |step| drop(step.inputs.remove(at)));
            }
            for (at, (name, _)) in step.env.iter().enumerate() {
                self.change_step(format!("drop variable {} of step {}", name.source(), step.name), index, |step| drop(step.env.remove(at)));
            }
            for first in 0..step.inputs.len() {
                for second in first + 1..step.inputs.len() {
                    let [(left, left_value), (right, right_value)] = [&step.inputs[first], &step.inputs[second]];
                    if crate::plan::kind_of(left_value) == crate::plan::kind_of(right_value) {
                        let name = format!("swap inputs {} and {} of step {}", left.source(), right.source(), step.name);
                        self.change_step(name, index, |step| swap(&mut step.inputs, first, second));
                    }
                }
            }
        }
        for first in 0..sequence.outputs.len() {
            for second in first + 1..sequence.outputs.len() {
                let [left, right] = [&sequence.outputs[first].0, &sequence.outputs[second].0];
                if kind_of_output(self.original, left) == kind_of_output(self.original, right) {
                    self.change(format!("swap outputs {left} and {right}"), None, |document| {
                        if let Body::Sequence(sequence) = &mut document.definition.body {
                            swap(&mut sequence.outputs, first, second);
                        }
                    });
                }
            }
        }
    }
}

/// Swaps the values of two names.
fn swap<N>(entries: &mut [(N, ValueTemplate)], first: usize, second: usize) {
    let (head, tail) = entries.split_at_mut(second);
    std::mem::swap(&mut head[first].1, &mut tail[0].1);
}

fn line_of(document: &StepDocument, index: usize) -> Option<u32> {
    match &document.definition.body {
        Body::Sequence(sequence) => sequence.steps.get(index)?.place.as_ref().map(|place| place.line),
        Body::Exec(_) => None,
    }
}

fn kind_of_output(document: &StepDocument, name: &str) -> Option<step_model::value::Kind> {
    match &document.spec.outputs {
        Outputs::Declared(outputs) => outputs.iter().find(|(known, _)| **known == *name).map(|(_, output)| output.kind),
        Outputs::Delegate => None,
    }
}

/// Another value of the same kind.
fn other(value: &Value) -> Value {
    match value.data() {
        Data::Null => Value::NULL,
        Data::Boolean(boolean) => (!boolean).into(),
        Data::Number(number) => (number + 1.0).into(),
        Data::String(text) => format!("{text}-changed").into(),
        Data::Array(items) if items.is_empty() => Value::array([Value::from("changed")]),
        Data::Array(_) => Value::array([]),
        Data::Object(object) if object.is_empty() => Value::object([("changed", Value::from(true))]),
        Data::Object(_) => Value::object::<Arc<str>>([]),
    }
}

fn one_line(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(40).collect();
    if line.len() < text.len() { format!("{line}...") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::document::raw::read;

    fn names(text: &str) -> Vec<String> {
        mutants(&read(text, "func.yml").document.expect("a document")).into_iter().map(|mutant| mutant.name).collect()
    }

    #[test]
    fn a_sequence_loses_steps_inputs_variables_and_failures() {
        let text = "spec:\n  inputs: {a: {type: number, default: 1}, b: {type: string}}\n  outputs: {x: {type: string}, y: {type: string}, n: {type: number}}\n---\nenv: {E: e}\nrun:\n  - {name: one, func: ./one, inputs: {p: p, q: q}}\n  - {name: two, script: x, env: {V: v}}\noutputs: {x: x, y: y, n: 1}\n";
        assert_eq!(
            names(text),
            [
                "change the default of input a",
                "drop variable E",
                "drop step one",
                "ignore the failure of step one",
                "drop input p of step one",
                "drop input q of step one",
                "swap inputs p and q of step one",
                "drop step two",
                "ignore the failure of step two",
                "drop variable V of step two",
                "swap outputs x and y",
            ]
        );
    }

    #[test]
    fn a_command_loses_arguments_and_its_exit_code() {
        assert_eq!(
            names("{}\n---\nexec: {command: [a, -v, \"b\\nc\"]}\n"),
            ["drop argument 1 `-v`", "drop argument 2 `b...`", "ignore the exit code"]
        );
    }
}
