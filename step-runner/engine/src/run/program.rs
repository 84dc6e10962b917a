//! A step that is a program: what it finds in files of its own instead of its arguments (docs/reference/step-programs.md).

use crate::effect::{HandoverFile, Program, StepFiles};
use crate::run::Run;
use crate::run::frame::Frame;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::document::handover;
use step_model::plan::{HandedOver, Plan, PlannedDocument};
use step_model::value::{Data, Object, Value};

const INPUTS: &str = "STEP_RUNNER_INPUTS";
const HANDOVER: &str = "STEP_RUNNER_HANDOVER";
const OUTPUT_FILE: &str = "STEP_RUNNER_OUTPUT_FILE";
const EXPORT_FILE: &str = "STEP_RUNNER_EXPORT_FILE";
/// What the steps that are handed over may use, as it is typed: for who can hold all of their environment to it.
const LIMITS: &str = "STEP_RUNNER_LIMITS";

impl Program {
    /// The variables that say where its files are.
    pub(super) fn variables(&self, files: &StepFiles) -> Vec<(Arc<str>, Value)> {
        let handover = self.handover.as_ref().map(|handover| (HANDOVER, &handover.path));
        let limits = self.handover.as_ref().map(|handover| handover.plan.limits).filter(|limits| !limits.is_empty());
        let limits = limits.map(|limits| (Arc::from(LIMITS), Value::string(limits.to_string())));
        let always = [(EXPORT_FILE, &files.export), (INPUTS, &self.inputs_file), (OUTPUT_FILE, &files.output)];
        always.into_iter().chain(handover).map(|(name, path)| (Arc::from(name), Value::string(Arc::clone(path)))).chain(limits).collect()
    }
}

impl Run {
    /// What the step of a frame gets, if it is a program.
    pub(super) fn program(&self, frame: &Frame, files: &StepFiles) -> Option<Program> {
        let planned = frame.planned.as_ref().filter(|planned| planned.is_program())?;
        let is_template = |name: &str| planned.document.spec.inputs.iter().any(|(known, input)| **known == *name && input.template);
        let inputs = frame.inputs.iter().filter(|(name, _)| !is_template(name));
        let handover = frame.inner.as_ref().map(|inner| HandoverFile {
            path: Arc::from(format!("{}-handover", files.output)),
            plan: self.inner_plan(frame, planned, inner),
        });
        Some(Program {
            inputs_file: Arc::from(format!("{}-inputs", files.output)),
            inputs: inputs.map(|(name, value)| (Arc::clone(name), value.clone())).collect(),
            handover,
        })
    }

    /// The plan that travels. Levels 4 and 5 of the environment become its request's, so that exports of inner steps win over them; those that are
    /// nearer to the step stay around it.
    fn inner_plan(&self, frame: &Frame, callee: &PlannedDocument, inner: &Arc<PlannedDocument>) -> Plan {
        let mut request_env = self.plan.request_env.clone();
        request_env.extend(self.environment.exported().map(|(name, value)| (Arc::clone(name), value.clone())));
        let enclosing_env = frame.scope.as_ref().map_or_else(BTreeMap::new, |scope| scope.all());
        Plan {
            request_env,
            variables: self.plan.variables.clone(),
            file_variables: self.plan.file_variables.clone(),
            grace_period: self.plan.grace_period,
            level: self.plan.level,
            strict: self.plan.strict,
            limits: frame.limits,
            handover: Some(HandedOver { inputs: given_values(frame, callee), enclosing_env }),
            ..Plan::of(Arc::clone(inner), self.plan.places.clone())
        }
    }
}

/// The values that the inner steps see as `inputs.*`: the members of the struct `inputs`. A mark of the whole is one of each.
fn given_values(frame: &Frame, callee: &PlannedDocument) -> Object {
    let Some(name) = handover::values_of(&callee.document.spec) else { return Object::new() };
    let Some(values) = frame.inputs.get(name) else { return Object::new() };
    let Data::Object(members) = values.data() else { return Object::new() };
    members.iter().map(|(name, value)| (Arc::clone(name), value.clone().marked(values.is_sensitive()))).collect()
}
