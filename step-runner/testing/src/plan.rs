//! A case becomes a plan: its fakes stand for steps, its values are evaluated, the definition is wrapped as `step-runner run` does it. Nothing is done.

use crate::subject::Subject;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use step_engine::resolve::{StandIn, StandIns};
use step_model::builtin::Builtins;
use step_model::document::{Body, Dialect, Exec, Input, Output, Outputs, Step, StepDocument, ValueTemplate};
use step_model::expression::{ExpressionError, Template};
use step_model::plan::{Places, Plan, PlannedDocument, Target as PlanTarget};
use step_model::reference::{LocalReference, StepReference};
use step_model::testing::Contexts;
use step_model::testing::suite::{Case, Fake, Given, Target};
use step_model::value::{Kind, Value};

/// The program of a fake: no file can have this name, so the stage never confuses it with a real one.
pub const FAKE: &str = "\0fake";

/// How long a process may take to end after it was asked to.
const GRACE: Duration = Duration::from_millis(500);

/// Names in expressions of a case.
pub fn scope(work_dir: &str, step_dir: &str) -> Contexts {
    Contexts::default().with("work_dir", work_dir).with("func_dir", step_dir).with("step_dir", step_dir)
}

/// What stands for the steps that the case fakes. A fake's command is [`FAKE`] and its position in the case.
pub fn stand_ins(case: &Case) -> StandIns {
    let mut stand_ins = StandIns::default();
    for (index, fake) in case.fakes.iter().enumerate() {
        let stand_in = stand_in(index, fake);
        match &fake.of {
            Target::Step(path) => stand_ins.for_step(path.clone(), stand_in),
            Target::Reference(reference) => stand_ins.for_reference(reference.clone(), stand_in),
        }
    }
    stand_ins
}

fn stand_in(index: usize, fake: &Fake) -> StandIn {
    // Naming the output file is what makes the engine read it.
    let files = Template::parse("${{ output_file }}", Dialect::Functions).unwrap_or_else(|_| Template::literal(""));
    let command = vec![Template::literal(FAKE), Template::literal(index.to_string()), files];
    let declared = |given: &Given<ValueTemplate>| {
        (Arc::clone(&given.name), Output { kind: kind_of(&given.value), default: None, sensitive: false, description: None })
    };
    StandIn {
        exec: Exec { command, work_dir: None },
        // One that fails gives nothing, and nobody can say what it would have given.
        outputs: if fake.exit == 0 { Outputs::Declared(fake.outputs.iter().map(declared).collect()) } else { Outputs::Delegate },
        inputs: fake.inputs.clone(),
    }
}

/// The fake that a command stands for.
pub fn fake_of(command: &[Value]) -> Option<usize> {
    match command {
        [program, index, ..] if program.as_str() == Some(FAKE) => index.as_str()?.parse().ok(),
        _ => None,
    }
}

/// The kind that a value has whatever its expressions give; null where that is not known.
pub(crate) fn kind_of(value: &ValueTemplate) -> Kind {
    match value {
        ValueTemplate::Scalar(value) => value.kind(),
        ValueTemplate::Text(text) if text.is_one_expression() => Kind::Null,
        ValueTemplate::Text(_) => Kind::String,
        ValueTemplate::Array(_) => Kind::Array,
        ValueTemplate::Object(_) => Kind::Struct,
    }
}

/// The definition as if every input had been given: what is resolved at the top cannot be called with inputs.
pub fn with_all_inputs(document: &StepDocument) -> StepDocument {
    let mut document = document.clone();
    for (_, input) in &mut document.spec.inputs {
        input.default.get_or_insert_with(|| match input.kind {
            Kind::Boolean => false.into(),
            Kind::Number => 0.0.into(),
            Kind::Array => Value::array([]),
            Kind::Struct => Value::object::<Arc<str>>([]),
            Kind::String | Kind::Null => "".into(),
        });
    }
    document
}

/// Directories of a case. Absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    pub work: Arc<str>,
    pub home: Arc<str>,
    pub temporary: Arc<str>,
    /// Output and export files of steps.
    pub files: Arc<str>,
    /// The stubs. First on PATH where there are any.
    pub stubs: Arc<str>,
    /// File variables.
    pub variables: Arc<str>,
}

impl Directories {
    /// Those below `top`.
    pub fn below(top: &str) -> Self {
        let below = |name: &str| Arc::from(format!("{top}/{name}"));
        Self {
            work: below("work"),
            home: below("home"),
            temporary: below("tmp"),
            files: below("files"),
            stubs: below("stubs"),
            variables: below("variables"),
        }
    }
}

/// What a case needs besides the definition.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub directories: &'a Directories,
    /// The PATH of whoever runs the tests.
    pub path: &'a str,
    /// Where the case says nothing.
    pub timeout: Duration,
    pub builtins: &'a Builtins,
}

/// Why a case cannot be planned, with the name of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}`: {error}")]
pub struct NoValue {
    pub name: Arc<str>,
    pub place: step_model::diagnostic::Place,
    pub error: ExpressionError,
}

/// The plan of a case. `resolved`: what [`with_all_inputs`] of `document` was resolved to.
/// # Errors
/// Every value of the case that cannot be evaluated.
pub fn plan(
    subject: &Subject,
    document: &Arc<StepDocument>,
    resolved: &PlannedDocument,
    case: &Case,
    around: &Surroundings<'_>,
) -> Result<Plan, Vec<NoValue>> {
    let directories = around.directories;
    let scope = scope(&directories.work, &subject.dir);
    let mut faults = Vec::new();
    let mut inputs = Vec::with_capacity(case.inputs.len());
    for given in &case.inputs {
        match given.value.evaluate(&scope) {
            Ok(value) => inputs.push((Template::literal(Arc::clone(&given.name)), literal(&value))),
            Err(error) => faults.push(NoValue { name: Arc::clone(&given.name), place: given.place.clone(), error }),
        }
    }
    let mut texts = |given: &[Given<Template>]| {
        let mut values = BTreeMap::new();
        for given in given {
            match given.value.evaluate_text(&scope) {
                Ok(value) => drop(values.insert(Arc::clone(&given.name), value)),
                Err(error) => faults.push(NoValue { name: Arc::clone(&given.name), place: given.place.clone(), error }),
            }
        }
        values
    };
    let request_env = texts(&case.env);
    let templates: Vec<Given<Template>> = case
        .variables
        .iter()
        .map(|given| Given { name: Arc::clone(&given.name), value: given.value.value.clone(), place: given.place.clone() })
        .collect();
    let mut variables = texts(&templates);
    for given in &case.variables {
        let Some(value) = variables.get_mut(&given.name) else { continue };
        if given.value.file {
            *value = Value::from(format!("{}/{}", directories.variables, given.name));
        } else {
            *value = value.clone().marked(given.value.masked);
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let action = step_model::document::Action::Reference(StepReference::Local(LocalReference {
        path: vec!["/".into(), subject.dir.trim_start_matches('/').into()],
        file: Some(Arc::clone(&subject.file)),
    }));
    let step = Step { inputs, ..Step::new("", action) };
    let tested = PlannedDocument {
        document: Arc::clone(document),
        file: Arc::clone(&subject.file),
        digest: Some(subject.digest),
        ..resolved.clone()
    };
    let mut root = PlannedDocument::of_job(Arc::new(StepDocument::of_steps(document.dialect, [step])), Arc::clone(&subject.dir));
    root.targets = vec![PlanTarget::Document(Arc::new(tested))];
    let places = Places {
        work_dir: Arc::clone(&directories.work),
        build_dir: Arc::clone(&subject.boundary),
        files_dir: Arc::clone(&directories.files),
    };
    Ok(Plan {
        process_env: clean_environment(case, around),
        request_env,
        variables,
        timeout: Some(case.timeout.unwrap_or(around.timeout)),
        grace_period: GRACE,
        strict: true,
        builtins: around.builtins.clone(),
        ..Plan::of(Arc::new(root), places)
    })
}

/// The same on every machine, but for PATH.
fn clean_environment(case: &Case, around: &Surroundings<'_>) -> BTreeMap<Arc<str>, Value> {
    let directories = around.directories;
    let path = if case.stubs.is_empty() { around.path.to_owned() } else { format!("{}:{}", directories.stubs, around.path) };
    let variables: [(&str, Value); 6] = [
        ("CI_STEPS_LOG_LEVEL", "info".into()),
        ("HOME", Arc::clone(&directories.home).into()),
        ("LANG", "C.UTF-8".into()),
        ("PATH", path.into()),
        ("TMPDIR", Arc::clone(&directories.temporary).into()),
        ("TZ", "UTC".into()),
    ];
    variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A value as a document would write it, with nothing in it an expression.
pub(crate) fn literal(value: &Value) -> ValueTemplate {
    use step_model::value::Data;
    match value.data() {
        Data::String(text) => ValueTemplate::Text(Template::literal(Arc::clone(text))),
        Data::Array(items) => ValueTemplate::Array(items.iter().map(literal).collect()),
        Data::Object(object) => {
            ValueTemplate::Object(object.iter().map(|(key, value)| (Template::literal(Arc::clone(key)), literal(value))).collect())
        }
        _ => ValueTemplate::Scalar(value.clone()),
    }
}

/// The fakes that a plan holds, with the interface that each has to fit.
pub fn faked(planned: &PlannedDocument) -> Vec<(usize, Arc<StepDocument>)> {
    let mut found = Vec::new();
    let mut open = vec![planned];
    while let Some(planned) = open.pop() {
        if let Body::Exec(exec) = &planned.document.definition.body
            && exec.command.first().and_then(Template::as_literal) == Some(FAKE)
        {
            let index = exec.command.get(1).and_then(Template::as_literal).and_then(|index| index.parse().ok());
            found.extend(index.map(|index| (index, Arc::clone(&planned.document))));
        }
        for target in &planned.targets {
            match target {
                PlanTarget::Document(document) | PlanTarget::Hole { seen: Some(document) } => open.push(document),
                PlanTarget::Script | PlanTarget::Hole { seen: None } => {}
            }
        }
    }
    found
}

/// Names and kinds of inputs, for messages and for the checks of a case.
pub fn input<'d>(document: &'d StepDocument, name: &str) -> Option<&'d Input> {
    document.spec.inputs.iter().find(|(known, _)| **known == *name).map(|(_, input)| input)
}
