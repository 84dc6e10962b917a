//! What a step hands over, resolved when the run reaches it: an earlier step may have written what it refers to.

use crate::effect::LoadId;
use crate::resolve::Resolver;
use crate::run::Run;
use crate::run::frame::{HandingOver, Phase};
use crate::run::invocation::{Callee, Checked};
use std::sync::Arc;
use step_model::diagnostic::Problem;
use step_model::document::{StepDocument, handover};
use step_model::result::FailureKind;
use step_model::time::Now;

impl Run {
    /// A step that passed all checks begins; where it hands steps over, their references are resolved before.
    pub(super) fn hand_over_or_enter(&mut self, checked: Checked, now: Now) {
        let inner = match self.inner_document(&checked) {
            Ok(None) => return self.enter(checked.invocation, checked.names_files_of_caller, now),
            Ok(Some(inner)) => inner,
            Err(why) => return self.fail_to_load(&Arc::clone(&checked.invocation.step), FailureKind::BadInput, &why),
        };
        let Inner { document, is_told } = inner;
        let caller = self.innermost().planned.clone();
        let (dir, file) = match &caller {
            Some(planned) => (Arc::clone(&planned.dir), Arc::clone(&planned.file)),
            None => (Arc::clone(&self.plan.places.build_dir), Arc::from("")),
        };
        let (resolver, effects) = Resolver::start_inner(document, dir, file, self.plan.builtins.clone(), LoadId(self.loads));
        self.loads = resolver.next_load().0;
        self.effects.extend(effects);
        self.phase = Phase::HandingOver(Box::new(HandingOver { resolver, checked, is_told }));
        self.hand_over_if_resolved(now);
    }

    /// What a step hands over: as it was read before the run, with the text of its file at hand, else as it is known now.
    fn inner_document(&self, checked: &Checked) -> Result<Option<Inner>, String> {
        let Callee::Document(callee) = &checked.invocation.callee else { return Ok(None) };
        if !callee.document.spec.takes_steps() {
            return Ok(None);
        }
        let frame = self.innermost();
        let Some(caller) = &frame.planned else { return Ok(None) };
        if let Some(inner) = frame.next.checked_sub(1).and_then(|index| caller.handovers.get(&index)) {
            return Ok(Some(Inner { document: Arc::clone(&inner.document), is_told: true }));
        }
        let holder = handover::Caller { document: &caller.document, is_file: !caller.file.is_empty(), text: None };
        let Some(inner) = handover::read(&checked.invocation.step, &callee.document.spec, holder) else { return Ok(None) };
        let told = |problem: &Problem| problem.is_error() || self.plan.strict;
        match inner.document {
            Some(document) => Ok(Some(Inner { document, is_told: false })),
            None => Err(inner
                .problems
                .iter()
                .filter(|problem| told(problem))
                .map(|problem| problem.message.clone())
                .collect::<Vec<_>>()
                .join("; ")),
        }
    }

    pub(super) fn hand_over_if_resolved(&mut self, now: Now) {
        match std::mem::replace(&mut self.phase, Phase::Ready) {
            Phase::HandingOver(handing_over) if handing_over.resolver.is_complete() => self.hand_over(*handing_over, now),
            phase => self.phase = phase,
        }
    }

    fn hand_over(&mut self, HandingOver { resolver, mut checked, is_told }: HandingOver, now: Now) {
        let refusal = resolver.refusal();
        match resolver.finish() {
            Ok((inner, problems)) => {
                let step = self.innermost().id;
                for problem in problems.iter().filter(|_| !is_told).flat_map(|document| &document.problems) {
                    self.warn(step, problem.message.clone());
                }
                checked.invocation.inner = Some(inner);
                self.enter(checked.invocation, checked.names_files_of_caller, now);
            }
            Err(problems) => {
                let first = || problems.iter().flat_map(|document| &document.problems).find(|problem| problem.is_error());
                let why = refusal.map(|failure| failure.message).or_else(|| first().map(|problem| problem.message.clone()));
                self.fail_to_load(&Arc::clone(&checked.invocation.step), FailureKind::BadInput, &why.unwrap_or_default());
            }
        }
    }
}

/// What is handed over, before its references are resolved.
struct Inner {
    document: Arc<StepDocument>,
    is_told: bool,
}
