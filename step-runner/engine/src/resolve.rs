//! From a document to a plan: asks for every definition that is named, checks all of them, and marks the holes.

use crate::effect::{Effect, LoadId, LoadedDefinition};
use crate::event::LoadFault;
use std::sync::Arc;
use step_model::diagnostic::Problem;
use step_model::document::StepDocument;
use step_model::plan::PlannedDocument;

/// A document on its way to a plan.
#[derive(Debug)]
pub struct Resolver {}

/// Problems of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentProblems {
    /// Directory and file, as in messages; empty for the job itself.
    pub file: Arc<str>,
    /// The text of the file, to show the place; `None` for the job itself.
    pub text: Option<Arc<str>>,
    pub problems: Vec<Problem>,
}

impl Resolver {
    /// Begins with the job itself (or a definition file), whose relative references are relative to `dir`.
    pub fn start(_root: Arc<StepDocument>, _dir: Arc<str>) -> (Self, Vec<Effect>) {
        todo!()
    }

    /// The outcome of a `Load`; more loads may follow. Complete when there are none and [`Resolver::is_complete`].
    pub fn on_loaded(&mut self, _load: LoadId, _outcome: Result<LoadedDefinition, LoadFault>) -> Vec<Effect> {
        todo!()
    }

    pub fn is_complete(&self) -> bool {
        todo!()
    }

    /// The planned document, and every problem of every document that was reached (warnings too).
    /// # Errors
    /// The problems, when one of them is an error.
    pub fn finish(self) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
        todo!()
    }
}
