//! A job that owns itself: drives the engine, hosts the processes, keeps the journal.

use std::path::PathBuf;
use step_engine::run::{Headline, Run, Seed};
use step_model::masking::Secrets;
use step_model::plan::Plan;
use step_model::result::StepId;

/// What a job process needs besides its plan.
#[derive(Debug, Clone)]
pub struct Settings {
    pub seed: Seed,
    /// Known before the first step: masked variables, contents of file variables, sensitive inputs.
    pub secrets: Secrets,
    pub streams: Streams,
    /// Where the journal is kept. `None`: none is kept.
    pub journal: Option<PathBuf>,
}

/// How the two output streams of a step reach the audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// One pipe for both: exact order, the stream is not known.
    Shared,
    /// Two pipes: the order holds within each stream.
    Separate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
    /// Both through one pipe.
    Both,
}

/// Who watches a run. What it gets is masked already. Called from the loop: it must not block for long.
pub trait Audience {
    fn started(&mut self, step: StepId, headline: &Headline);
    /// Bytes as the step wrote them, in pieces of any size.
    /// # Errors
    /// They cannot be written any more: the job ends.
    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> std::io::Result<()>;
    fn said(&mut self, step: StepId, line: &str, warning: bool);
    /// `tail`: the last lines that the step wrote, masked; empty for a sequence.
    fn ended(&mut self, step: StepId, headline: &Headline, tail: &[u8]);
    /// Called several times a second while something runs, for a live status line.
    fn tick(&mut self);
}

/// Somebody outside who wants the job to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Ask the steps to end, and kill them after the grace period.
    End,
    /// Kill at once.
    EndNow,
}

/// Runs a plan to its end on this thread and returns the machine with its result. No process of the job is left, whatever happens.
/// `asks` brings signals and requests.
pub async fn run(
    _plan: Plan,
    _settings: Settings,
    _audience: &mut dyn Audience,
    _asks: tokio::sync::mpsc::UnboundedReceiver<Ask>,
) -> std::io::Result<Run> {
    todo!()
}
