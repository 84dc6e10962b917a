//! What a step of a sequence refers to, when the run reaches it: known, read again, or named only now.

use crate::effect::{Effect, LoadId, LoadedDefinition};
use crate::event::LoadFault;
use crate::resolve::{self, Wanted};
use crate::run::Run;
use crate::run::frame::{Loading, Phase};
use crate::run::invocation::Callee;
use crate::run::scope::{ExpressionScope, text};
use std::sync::Arc;
use step_model::document::{Action, Dialect, Step};
use step_model::plan::{PlannedDocument, Target};
use step_model::reference::{LocalReference, StepReference};
use step_model::result::FailureKind;
use step_model::time::Now;

impl Run {
    /// The next step of the innermost sequence runs, if it can be loaded.
    pub(super) fn invoke(&mut self, index: usize, step: &Arc<Step>, now: Now) {
        let target = self.innermost().planned.as_ref().and_then(|planned| planned.targets.get(index)).cloned();
        match (resolve::wanted(&step.action), target) {
            (_, Some(Target::Document(planned))) => self.call(step, Callee::Document(planned), false, now),
            (Wanted::Script, _) => self.call(step, Callee::Script, false, now),
            (Wanted::ScriptLegacy, _) => {
                let callee = match &step.action {
                    Action::ScriptLegacy(script) => Callee::Legacy(script.clone()),
                    _ => Callee::LegacyByInputs,
                };
                self.call(step, callee, false, now);
            }
            (Wanted::Local(reference), Some(Target::Hole { seen })) => self.load(index, reference.clone(), seen, false),
            (Wanted::Local(reference), _) => self.load(index, reference.clone(), None, false),
            (Wanted::Dynamic(template), _) if self.plan.handover.is_some() => {
                self.fail_to_load(step, FailureKind::BadInput, &resolve::dynamic_inside(template.source()));
            }
            (Wanted::Remote(what), _) if self.plan.handover.is_some() => {
                self.fail_to_load(step, FailureKind::BadInput, &resolve::remote_inside(&what));
            }
            (Wanted::Dynamic(template), _) => match self.reference(template) {
                Ok(reference) => self.follow(index, step, &reference, now),
                Err(why) => self.fail_to_load(step, FailureKind::BadInput, &why),
            },
            (Wanted::Builtin(name), _) => self.call_builtin(step, name, false, now),
            (Wanted::Remote(what), _) => self.fail_to_load(step, FailureKind::BadInput, &what.to_string()),
        }
    }

    fn call_builtin(&mut self, step: &Arc<Step>, name: &str, dynamic: bool, now: Now) {
        match self.plan.builtins.get(name).cloned() {
            Ok(planned) => self.call(step, Callee::Document(planned), dynamic, now),
            Err(fault) => self.fail_to_load(step, FailureKind::BadInput, &resolve::no_builtin(&fault)),
        }
    }

    /// What a computed reference names. One whose text holds an expression again is computed again.
    fn reference(&self, template: &step_model::expression::Template) -> Result<StepReference, String> {
        let fault = |why: &dyn std::fmt::Display| format!("fetching step: interpolating reference: {why}");
        let scope = ExpressionScope::of(self, self.innermost());
        let dialect = self.innermost().planned.as_ref().map_or(Dialect::Steps, |planned| planned.document.dialect);
        let mut template = template.clone();
        // No honest reference needs more than a few rounds.
        for _ in 0..8 {
            let (name, _) = text(&template, &scope).map_err(|error| fault(&error))?;
            match resolve::parse_reference(&name, dialect)? {
                StepReference::Dynamic(again) => template = again,
                reference => return Ok(reference),
            }
        }
        Err(fault(&format!("`{}` always names another expression", template.source())))
    }

    fn follow(&mut self, index: usize, step: &Arc<Step>, reference: &StepReference, now: Now) {
        match resolve::wanted_by_reference(reference) {
            Wanted::Local(reference) => self.load(index, reference.clone(), None, true),
            Wanted::Script => self.call(step, Callee::Script, true, now),
            Wanted::ScriptLegacy => self.call(step, Callee::LegacyByInputs, true, now),
            Wanted::Builtin(name) => self.call_builtin(step, name, true, now),
            Wanted::Remote(what) => self.fail_to_load(step, FailureKind::BadInput, &what.to_string()),
            Wanted::Dynamic(template) => {
                let why = format!("fetching step: interpolating reference: `{}` is not a reference", template.source());
                self.fail_to_load(step, FailureKind::BadInput, &why);
            }
        }
    }

    fn load(&mut self, index: usize, reference: LocalReference, seen: Option<Arc<PlannedDocument>>, dynamic: bool) {
        let load = LoadId(self.loads);
        self.loads = self.loads.wrapping_add(1);
        let from =
            self.innermost().planned.as_ref().map_or_else(|| Arc::clone(&self.plan.places.build_dir), |planned| Arc::clone(&planned.dir));
        self.effects.push(Effect::Load { load, from, reference });
        self.phase = Phase::Loading(Box::new(Loading { load, index, seen, dynamic }));
    }

    pub(super) fn on_loaded(&mut self, load: LoadId, outcome: Result<LoadedDefinition, LoadFault>, now: Now) {
        if let Phase::HandingOver(handing_over) = &mut self.phase {
            let effects = handing_over.resolver.on_loaded(load, outcome);
            self.loads = handing_over.resolver.next_load().0;
            self.effects.extend(effects);
            return self.hand_over_if_resolved(now);
        }
        let waited_for = matches!(&self.phase, Phase::Loading(loading) if loading.load == load);
        if !waited_for {
            return;
        }
        let Phase::Loading(loading) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        let Loading { index, seen, dynamic, .. } = *loading;
        let Some(step) = self.innermost().sequence().and_then(|sequence| sequence.steps.get(index)).cloned() else { return };
        let planned = outcome.map_err(|fault| fault.message).and_then(|definition| self.plan_definition(definition, seen));
        match planned.and_then(|planned| self.check_nesting(&planned, dynamic).map(|()| planned)) {
            Ok(planned) => self.call(&step, Callee::Document(planned), dynamic, now),
            Err(why) => self.fail_to_load(&step, FailureKind::BadInput, &why),
        }
    }

    /// The document of a definition: the one that was seen before the run or during it, when the content is the same.
    fn plan_definition(
        &mut self,
        definition: LoadedDefinition,
        seen: Option<Arc<PlannedDocument>>,
    ) -> Result<Arc<PlannedDocument>, String> {
        let is_same = |planned: &PlannedDocument| {
            planned.digest == Some(definition.digest) && planned.dir == definition.dir && planned.file == definition.file
        };
        if let Some(seen) = seen.filter(|seen| is_same(seen)) {
            return Ok(seen);
        }
        let key = (Arc::clone(&definition.dir), Arc::clone(&definition.file), definition.digest);
        if let Some(known) = self.definitions.get(&key) {
            return Ok(Arc::clone(known));
        }
        let (planned, problems) = resolve::plan_alone(definition, &self.plan.builtins);
        let place = |problem| format!("{}/{}: {problem}", key.0, key.1);
        let (errors, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(|problem| problem.is_error() || self.plan.strict);
        let planned = match planned {
            Some(planned) if errors.is_empty() => planned,
            _ => return Err(errors.iter().map(place).collect::<Vec<_>>().join("; ")),
        };
        let step = self.innermost().id;
        warnings.iter().map(place).for_each(|warning| self.warn(step, warning));
        self.definitions.insert(key, Arc::clone(&planned));
        Ok(planned)
    }

    /// A definition that comes back to itself without a computed reference in between never ends.
    fn check_nesting(&self, planned: &PlannedDocument, dynamic: bool) -> Result<(), String> {
        if dynamic {
            return Ok(());
        }
        for (index, frame) in self.stack.iter().enumerate().rev() {
            let running = frame.planned.as_ref().filter(|running| !running.file.is_empty());
            if running.is_some_and(|running| running.dir == planned.dir && running.file == planned.file) {
                let path = self.stack.get(index..).unwrap_or_default().iter().filter_map(|frame| frame.planned.as_ref());
                let path: Vec<_> = path.map(|planned| resolve::file_name(planned)).chain([resolve::file_name(planned)]).collect();
                return Err(resolve::refers_to_itself(&path));
            }
            if frame.through_dynamic {
                break;
            }
        }
        Ok(())
    }

    fn call(&mut self, step: &Arc<Step>, callee: Callee, dynamic: bool, now: Now) {
        if self.stack.len() > resolve::MAXIMUM_NESTING {
            return self.fail_to_load(step, FailureKind::BadInput, &resolve::nests_too_deep());
        }
        let file_number = self.numbers.next();
        match self.check_invocation(self.innermost(), step, callee, file_number) {
            Ok(mut checked) => {
                checked.invocation.through_dynamic = dynamic;
                self.hand_over_or_enter(checked, now);
            }
            Err(error) => self.fail_to_load(step, FailureKind::BadInput, &error.to_string()),
        }
    }
}
