//! What a report has to know of a job that is over, wherever it ran.

use step_engine::run::{Headline, Run};
use step_model::result::{Failure, ResultTree as _, Status, StepId};

/// A job that is over.
pub trait Outline {
    fn status(&self) -> Status;
    /// Why it did not succeed.
    fn failure(&self) -> Option<&Failure>;
    /// The step that failed the job.
    fn failed_step(&self) -> Option<StepId>;
    fn headline(&self, step: StepId) -> Headline;
    /// In the order in which they ran.
    fn children(&self, step: StepId) -> Vec<StepId>;
}

impl std::fmt::Debug for dyn Outline + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outline").field("status", &self.status()).field("failure", &self.failure()).finish_non_exhaustive()
    }
}

impl Outline for Run {
    fn status(&self) -> Status {
        Run::status(self)
    }

    fn failure(&self) -> Option<&Failure> {
        Run::failure(self)
    }

    fn failed_step(&self) -> Option<StepId> {
        Run::failed_step(self)
    }

    fn headline(&self, step: StepId) -> Headline {
        self.result().headline(step)
    }

    fn children(&self, step: StepId) -> Vec<StepId> {
        self.result().children(step)
    }
}
