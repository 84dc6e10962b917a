//! What the names in an expression stand for, at one place of a run (original.md C.2 and C.3).

use crate::run::Run;
use crate::run::frame::Frame;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::ValueTemplate;
use step_model::environment::Scope as Variables;
use step_model::expression::{ExpressionError, Scope, Template};
use step_model::result::StepId;
use step_model::value::{Data, Value};

/// The contexts that expressions of a frame see. Nothing is built before it is asked for.
pub(super) struct ExpressionScope<'a> {
    run: &'a Run,
    frame: &'a Frame,
    variables: Option<&'a Arc<Variables>>,
    /// Whose files `output_file` and `export_file` are.
    file_number: u32,
    /// One of the two files was named: it has to be there.
    files_named: Cell<bool>,
}

impl<'a> ExpressionScope<'a> {
    pub fn of(run: &'a Run, frame: &'a Frame) -> Self {
        Self::with_files(run, frame, frame.files.number)
    }

    /// The scope of a frame in which the two files are those of another step.
    pub fn with_files(run: &'a Run, frame: &'a Frame, file_number: u32) -> Self {
        Self { run, frame, variables: frame.scope.as_ref(), file_number, files_named: Cell::new(false) }
    }

    pub fn files_named(&self) -> bool {
        self.files_named.get()
    }

    fn file(&self, export: bool) -> Value {
        self.files_named.set(true);
        let files = self.run.numbers.files(&self.run.plan.places.files_dir, self.file_number);
        Value::string(if export { files.export } else { files.output })
    }

    fn environment(&self) -> Value {
        Value::object(self.run.environment.values(self.variables))
    }

    fn step(&self, id: StepId) -> Value {
        let outputs = self.run.nodes[id.0 as usize].outputs.clone().unwrap_or_default();
        Value::object([("outputs", Value::new(Data::Object(outputs)))])
    }
}

impl Scope for ExpressionScope<'_> {
    fn context(&self, name: &str) -> Option<Value> {
        Some(match name {
            "env" => self.environment(),
            "inputs" => Value::new(Data::Object(Arc::clone(&self.frame.inputs))),
            "vars" | "job" => object_of(&self.run.plan.variables),
            "steps" => Value::object(self.frame.results.iter().map(|(name, id)| (Arc::clone(name), self.step(*id)))),
            "func_dir" | "step_dir" => Value::string(Arc::clone(&self.frame.planned.as_ref()?.dir)),
            "work_dir" => Value::string(Arc::clone(&self.run.plan.places.work_dir)),
            "output_file" => self.file(false),
            "export_file" => self.file(true),
            _ => return None,
        })
    }

    fn attribute(&self, context: &str, key: &str) -> Option<Value> {
        match context {
            "env" => self.run.environment.get(self.variables, key).cloned(),
            "inputs" => self.frame.inputs.get(key).cloned(),
            "vars" | "job" => self.run.plan.variables.get(key).cloned(),
            "steps" => self.frame.results.get(key).map(|id| self.step(*id)),
            _ => self.context(context)?.as_object()?.get(key).cloned(),
        }
    }
}

fn object_of(variables: &BTreeMap<Arc<str>, Value>) -> Value {
    Value::object(variables.iter().map(|(name, value)| (Arc::clone(name), value.clone())))
}

/// Evaluates a text: the text, and its value with the mark.
/// # Errors
/// The first expression that fails.
pub(super) fn text(template: &Template, scope: &ExpressionScope<'_>) -> Result<(Arc<str>, Value), ExpressionError> {
    let value = template.evaluate_text(scope)?;
    let text = match value.data() {
        Data::String(text) => Arc::clone(text),
        _ => Arc::from(value.to_json().to_string()),
    };
    Ok((text, value))
}

/// A value as its document writes it: what is handed over unexpanded.
pub(super) fn unexpanded(template: &ValueTemplate) -> Value {
    match template {
        ValueTemplate::Scalar(value) => value.clone(),
        ValueTemplate::Text(text) => Value::from(text.source()),
        ValueTemplate::Array(items) => Value::array(items.iter().map(unexpanded)),
        ValueTemplate::Object(entries) => Value::object(entries.iter().map(|(key, value)| (key.source(), unexpanded(value)))),
    }
}
