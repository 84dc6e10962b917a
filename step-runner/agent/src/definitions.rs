//! Definitions on this machine: reads what references name, within the repository.

use std::sync::Arc;
use step_engine::resolve::DocumentProblems;
use step_model::document::StepDocument;
use step_model::plan::PlannedDocument;

/// Resolves a job, or a definition file, as far as that is possible before the first step. `dir`: what its relative references are
/// relative to; absolute. `provenance`: look up the commit of each definition, which costs one `git` per directory.
/// # Errors
/// Every problem of every document that was reached, when one of them is an error.
pub fn resolve(
    _root: Arc<StepDocument>,
    _dir: &str,
    _provenance: bool,
) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
    #[expect(clippy::todo, reason = "skeleton")]
    {
        todo!()
    }
}
