//! Whether a sequence gives what its spec declares (compatibility.md).

use super::keys::Fields;
use super::reader::Reader;
use crate::document::interface::literal_kind;
use crate::document::lint::MOST_CANDIDATES;
use crate::document::yaml::Node;
use crate::document::{Output, Outputs, Sequence, Spec};
use crate::expression::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl<'t> Reader<'t> {
    pub(super) fn compare_outputs(&mut self, fields: &Fields<'_, 't>, run: &Node<'t>, sequence: &Sequence, spec: &Spec) {
        match &spec.outputs {
            Outputs::Delegate => self.compare_delegate(fields, run, sequence),
            Outputs::Declared(declared) => {
                if let Some((key, _)) = fields.entry("delegate").filter(|_| sequence.delegate.is_some()) {
                    let message = "`delegate` has no effect: the first document does not say `outputs: delegate`";
                    self.warning("delegate-without-effect", key, message, "remove it, or declare `outputs: delegate`");
                }
                self.compare_declared(fields, run, sequence, declared);
            }
        }
    }

    fn compare_delegate(&mut self, fields: &Fields<'_, 't>, run: &Node<'t>, sequence: &Sequence) {
        if let Some((key, _)) = fields.entry("outputs").filter(|_| !sequence.outputs.is_empty()) {
            let message = "`outputs` has no effect: the first document says `outputs: delegate`";
            self.warning("outputs-without-effect", key, message, "remove it, or declare each output in the first document");
        }
        let Some(name) = &sequence.delegate else {
            let message = "outputs: delegate: could not find step with name \"\": `delegate` is missing";
            let hint = "add `delegate: NAME` with the step whose outputs become those of the sequence";
            self.odd("unknown-delegate", run, message, Some(hint.into()));
            return;
        };
        if self.around.has_step(name) {
            return;
        }
        let Some(node) = fields.get("delegate") else { return };
        let message = format!("outputs: delegate: could not find step with name \"{name}\"");
        let near = nearest(name, self.around.steps().iter().map(|step| &**step).take(MOST_CANDIDATES));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        self.odd("unknown-delegate", node, message, hint);
    }

    fn compare_declared(&mut self, fields: &Fields<'_, 't>, run: &Node<'t>, sequence: &Sequence, declared: &[(Arc<str>, Output)]) {
        let entries = fields.get("outputs").and_then(Node::as_map).unwrap_or_default();
        let written: BTreeMap<&str, _> = entries.iter().filter_map(|(key, value)| Some((key.source_text()?, (key, value)))).collect();
        let known: BTreeMap<&str, &Output> = declared.iter().map(|(name, output)| (&**name, output)).collect();
        for (name, value) in &sequence.outputs {
            let (key, node) = written.get(&**name).copied().unwrap_or((run, run));
            let Some(output) = known.get(&**name) else {
                let message = format!("key \"{name}\": unexpected output, remove from step outputs or define in step specification");
                let near = if self.is_full() { None } else { nearest(name, known.keys().copied().take(MOST_CANDIDATES)) };
                self.odd("unexpected-output", key, message, near.map(|near| format!("did you mean `{near}`?")));
                continue;
            };
            let given = literal_kind(value);
            if let Some(given) = given.filter(|given| *given != output.kind) {
                let message = format!(
                    "key \"{name}\": mismatched types, declared as \"{}\" in step specification and received from step as type \"{given}\"",
                    output.kind
                );
                self.odd("output-of-other-type", node, message, None);
            }
        }
        let given: BTreeSet<&str> = sequence.outputs.iter().map(|(name, _)| &**name).collect();
        for (name, _) in declared.iter().filter(|(name, output)| output.default.is_none() && !given.contains(&**name)) {
            let message = format!("key \"{name}\": missing output, add to step outputs or remove from step specification");
            let at = fields.entry("outputs").or_else(|| fields.entry("run")).map_or(run, |(key, _)| key);
            self.odd("missing-output", at, message, Some(format!("add `{name}: ${{{{ steps.NAME.outputs.{name} }}}}` to `outputs`")));
        }
    }
}
