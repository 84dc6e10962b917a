//! The checks between a definition that is at hand and a step that begins, in the order of the original (original.md F.2): unknown inputs, input
//! expansion, environment expansion, missing inputs; then what the original does not check: types, and where sensitive values go.

use crate::run::Run;
use crate::run::frame::Frame;
use crate::run::scope::{ExpressionScope, text, unexpanded};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use step_model::document::{Action, Body, Input, Outputs, ScriptLegacy, Spec, Step, StepDocument, ValueTemplate, handover};
use step_model::environment::Scope as Variables;
use step_model::expression::{ExpressionError, Path, Template, sensitive_refusal};
use step_model::plan::PlannedDocument;
use step_model::value::{Kind, Object, Value};

/// What a step of a sequence runs.
#[derive(Debug, Clone)]
pub(super) enum Callee {
    Document(Arc<PlannedDocument>),
    /// `script:`, `dist://script`, `builtin://script`.
    Script,
    /// A script of a GitLab job, as it stands.
    Legacy(ScriptLegacy),
    /// `builtin://script_legacy`: the same, given by inputs.
    LegacyByInputs,
}

/// A step that passed all checks and can begin.
#[derive(Debug)]
pub(super) struct Invocation {
    pub step: Arc<Step>,
    pub callee: Callee,
    pub through_dynamic: bool,
    /// As the caller gave them; defaults are not added.
    pub given: Option<Arc<Object>>,
    /// With defaults.
    pub inputs: Arc<Object>,
    /// The caller's variables and those of the invocation.
    pub scope: Option<Arc<Variables>>,
    pub file_number: u32,
    /// A script whose text or environment names its own files.
    pub files_named: bool,
    /// The steps that it hands over, resolved.
    pub inner: Option<Arc<PlannedDocument>>,
    /// Sensitive values that came into being with it.
    pub born: Vec<Value>,
    /// What the original lets pass.
    pub warnings: Vec<String>,
}

/// An invocation, and whether it made the files of its caller necessary.
#[derive(Debug)]
pub(super) struct Checked {
    pub invocation: Invocation,
    pub names_files_of_caller: bool,
}

/// Why a step could not be loaded. The texts are the original's where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LoadError {
    #[error("step does not accept input with name \"{0}\"")]
    UnknownInput(Arc<str>),
    #[error("expand input \"{0}\": {1}")]
    Input(Arc<str>, ExpressionError),
    #[error("env \"{0}\": {1}")]
    Environment(Arc<str>, ExpressionError),
    #[error(transparent)]
    Missing(#[from] MissingInput),
    #[error("input \"{name}\": mismatched types, declared as \"{declared}\" in step specification and received as type \"{received}\"")]
    Mismatched { name: Arc<str>, declared: Kind, received: Kind },
    #[error("input \"{name}\": {}", sensitive_refusal(.sources))]
    Sensitive {
        name: Arc<str>,
        /// The paths that are read, as written.
        sources: Vec<String>,
    },
}

/// A required input that nobody gave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse spec definition: input \"{0}\" required, but not defined")]
pub struct MissingInput(pub Arc<str>);

/// What the script step accepts: `script`, a text.
static SCRIPT: LazyLock<Spec> = LazyLock::new(|| Spec { inputs: vec![required("script", Kind::String)], outputs: Outputs::default() });

/// What `builtin://script_legacy` accepts (original.md B.4).
static SCRIPT_LEGACY: LazyLock<Spec> = LazyLock::new(|| {
    let switches = ["debug_trace", "posix_escape", "check_for_errors", "trace_sections"];
    let switches = switches.map(|name| with_default(required(name, Kind::Boolean), Value::from(false)));
    let inputs = std::iter::once(required("script", Kind::Array)).chain(switches).collect();
    Spec { inputs, outputs: Outputs::default() }
});

fn required(name: &str, kind: Kind) -> (Arc<str>, Input) {
    (Arc::from(name), Input { kind, default: None, sensitive: false, description: None, template: false })
}

fn with_default((name, input): (Arc<str>, Input), default: Value) -> (Arc<str>, Input) {
    (name, Input { default: Some(default), ..input })
}

impl Callee {
    fn spec(&self) -> Option<&Spec> {
        match self {
            Self::Document(planned) => Some(&planned.document.spec),
            Self::Script => Some(&SCRIPT),
            Self::LegacyByInputs => Some(&SCRIPT_LEGACY),
            Self::Legacy(_) => None,
        }
    }

    fn is_script(&self) -> bool {
        !matches!(self, Self::Document(_))
    }
}

impl Run {
    /// Evaluates what `caller` gives to one of its steps.
    pub(super) fn check_invocation(
        &self,
        caller: &Frame,
        step: &Arc<Step>,
        callee: Callee,
        file_number: u32,
    ) -> Result<Checked, LoadError> {
        // A script has files of its own, although its text belongs to the caller's document: else it could not export (compatibility.md).
        let scope =
            if callee.is_script() { ExpressionScope::with_files(self, caller, file_number) } else { ExpressionScope::of(self, caller) };
        let mut warnings = Vec::new();
        let given = given_inputs(step, callee.spec(), &scope)?;
        let variables = expand_environment(&step.env, &scope, LoadError::Environment)?;
        let inputs = self.all_inputs(caller, step, &callee, &given, &mut warnings)?;
        let files_named = scope.files_named();
        let is_script = callee.is_script();
        let invocation = Invocation {
            step: Arc::clone(step),
            callee,
            through_dynamic: false,
            born: inputs.values().chain(variables.values()).filter(|value| value.holds_sensitive()).cloned().collect(),
            inputs: Arc::new(inputs),
            given: (!given.is_empty()).then(|| Arc::new(given)),
            scope: Variables::over(caller.scope.as_ref(), variables),
            file_number,
            files_named: files_named && is_script,
            inner: None,
            warnings,
        };
        Ok(Checked { invocation, names_files_of_caller: files_named && !is_script })
    }

    /// The given inputs and the defaults, checked against what the callee declares.
    fn all_inputs(
        &self,
        caller: &Frame,
        step: &Step,
        callee: &Callee,
        given: &Object,
        warnings: &mut Vec<String>,
    ) -> Result<Object, LoadError> {
        let Some(spec) = callee.spec() else { return Ok(Object::new()) };
        let all = with_defaults(spec, given)?;
        let is_refused = caller.planned.as_ref().is_some_and(|planned| self.refuses_oddities(planned));
        for (name, input) in &spec.inputs {
            let Some(value) = given.get(name) else { continue };
            let faults = [
                mismatched(name, input, value),
                self.sensitive_into_plain(caller, step, name, input, value).filter(|_| !callee.is_script()),
            ];
            for fault in faults.into_iter().flatten() {
                if is_refused {
                    return Err(fault);
                }
                warnings.push(fault.to_string());
            }
        }
        Ok(all)
    }

    /// Only what is declared sensitive counts. A masked job variable travels with its mark: to refuse it would break every job that hands a token to
    /// a step that does not say `sensitive`.
    fn sensitive_into_plain(&self, caller: &Frame, step: &Step, name: &Arc<str>, input: &Input, value: &Value) -> Option<LoadError> {
        if input.sensitive || !value.holds_sensitive() {
            return None;
        }
        let template = step.inputs.iter().find(|(key, _)| key.as_literal() == Some(name)).map(|(_, template)| template)?;
        let mut paths = Vec::new();
        template.visit(&mut |text| paths.extend(text.paths()));
        let sensitive = paths.into_iter().filter(|path| self.is_declared_sensitive(caller, path));
        let sources: Vec<_> = sensitive.map(|path| path.parts.join(".")).collect();
        (!sources.is_empty()).then(|| LoadError::Sensitive { name: Arc::clone(name), sources })
    }

    fn is_declared_sensitive(&self, caller: &Frame, path: &Path) -> bool {
        let parts: Vec<&str> = path.parts.iter().map(|part| &**part).collect();
        match parts[..] {
            ["inputs", name, ..] => {
                let inputs = caller.planned.as_ref().map(|planned| &planned.document.spec.inputs);
                inputs.into_iter().flatten().any(|(key, input)| **key == *name && input.sensitive)
            }
            ["steps", step, "outputs", name, ..] => {
                let Some(node) = caller.results.get(step).map(|id| &self.nodes[id.0 as usize]) else { return false };
                match node.planned.as_ref().map(|planned| &planned.document.spec.outputs) {
                    Some(Outputs::Declared(outputs)) => outputs.iter().any(|(key, output)| **key == *name && output.sensitive),
                    Some(Outputs::Delegate) => node.outputs.as_ref().and_then(|outputs| outputs.get(name)).is_some_and(Value::is_sensitive),
                    None => false,
                }
            }
            _ => false,
        }
    }
}

/// The inputs that a step gives, expanded. All names are checked before the first value is expanded.
fn given_inputs(step: &Step, spec: Option<&Spec>, scope: &ExpressionScope<'_>) -> Result<Object, LoadError> {
    if let Action::Script(script) = &step.action {
        let (_, value) = text(script, scope).map_err(|error| LoadError::Input(Arc::from("script"), error))?;
        return Ok([(Arc::from("script"), value)].into_iter().collect());
    }
    let Some(spec) = spec else { return Ok(Object::new()) };
    let mut named = Vec::with_capacity(step.inputs.len());
    for (key, template) in &step.inputs {
        let (name, _) = text(key, scope).map_err(|error| LoadError::Input(Arc::from(key.source()), error))?;
        let Some((_, input)) = spec.inputs.iter().find(|(declared, _)| *declared == name) else {
            return Err(LoadError::UnknownInput(name));
        };
        named.push((name, input, template));
    }
    let given = named.into_iter().map(|(name, input, template)| Ok((Arc::clone(&name), expand_input(&name, input, template, scope)?)));
    let mut given: Object = given.collect::<Result<_, LoadError>>()?;
    if let (Some(inner), Some(steps)) = (&step.inner, handover::steps_of(spec)) {
        // No input says what is handed over; the names do, in the result.
        given.insert(Arc::clone(steps), names_of(inner));
    }
    Ok(given)
}

fn names_of(inner: &StepDocument) -> Value {
    let steps = match &inner.definition.body {
        Body::Sequence(sequence) => sequence.steps.as_slice(),
        Body::Exec(_) => &[],
    };
    Value::array(steps.iter().map(|step| Value::object([("name", Value::string(Arc::clone(&step.name)))])))
}

fn expand_input(name: &Arc<str>, input: &Input, template: &ValueTemplate, scope: &ExpressionScope<'_>) -> Result<Value, LoadError> {
    if input.template {
        return Ok(unexpanded(template));
    }
    let value = template.evaluate(scope).map_err(|error| LoadError::Input(Arc::clone(name), error))?;
    Ok(value.marked(input.sensitive))
}

/// What is given and, where nothing is, the defaults.
/// # Errors
/// The first input that has neither.
pub(super) fn with_defaults(spec: &Spec, given: &Object) -> Result<Object, MissingInput> {
    let mut all = Object::with_capacity(spec.inputs.len());
    for (name, input) in &spec.inputs {
        let value = given.get(name).or(input.default.as_ref()).ok_or_else(|| MissingInput(Arc::clone(name)))?;
        all.insert(Arc::clone(name), value.clone().marked(input.sensitive));
    }
    Ok(all)
}

fn mismatched(name: &Arc<str>, input: &Input, value: &Value) -> Option<LoadError> {
    let received = value.kind();
    // No definition declares null: what stands for a step that is not at hand takes anything.
    (received != input.kind && input.kind != Kind::Null).then(|| LoadError::Mismatched {
        name: Arc::clone(name),
        declared: input.kind,
        received,
    })
}

/// Names and values of an `env`, both expanded; of the same name the last counts. `fault` says whose environment it is.
pub(super) fn expand_environment<E>(
    env: &[(Template, Template)],
    scope: &ExpressionScope<'_>,
    fault: fn(Arc<str>, ExpressionError) -> E,
) -> Result<BTreeMap<Arc<str>, Value>, E> {
    let mut variables = BTreeMap::new();
    for (key, template) in env {
        let (name, _) = text(key, scope).map_err(|error| fault(Arc::from(key.source()), error))?;
        let (_, value) = text(template, scope).map_err(|error| fault(Arc::clone(&name), error))?;
        variables.insert(name, value);
    }
    Ok(variables)
}
