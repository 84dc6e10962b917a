//! A job that owns itself: drives the engine, hosts the processes, keeps the journal.

pub mod cleanup;
pub(crate) mod command;
mod drive;
#[cfg(unix)]
mod fronts;
mod host;
pub mod journal;
mod marker;
#[cfg(unix)]
mod preparation;
mod program_files;
mod pump;
mod random;
pub mod remains;
mod reserve;
#[cfg(unix)]
pub mod served;
mod shell;
pub mod spool;
pub(crate) mod step_files;
mod watch;
#[cfg(unix)]
mod watched;

#[cfg(target_os = "linux")]
pub(crate) use marker::is_in as is_marked;

use std::io;
use std::path::PathBuf;
use step_client::wire::result::Redaction;
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
    /// The directory in which the journal is kept. `None`: none is kept.
    pub journal: Option<PathBuf>,
    /// Ask for the commit of definitions that are loaded while the job runs.
    pub provenance: bool,
    /// Leave the step files where they are, for somebody who wants to look.
    pub keep_files: bool,
}

/// How the two output streams of a step reach the audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// One pipe for both: exact order, the stream is not known.
    Shared,
    /// Two pipes: the order holds within each stream.
    Separate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Output,
    Error,
    /// Both through one pipe.
    Both,
}

/// Who watches a run. What it gets is masked already.
///
/// It lives on a thread of its own and is called in the order in which things happened. It may block, for as long as the reader of our
/// standard output does: the steps then wait, while signals, timeouts and kills go on. Only when the job was asked to end, and the
/// audience does not get on, what it has not taken yet is dropped.
pub trait Audience: Send + 'static {
    fn started(&mut self, step: StepId, headline: &Headline);
    /// Bytes as the step wrote them, in pieces of any size.
    /// # Errors
    /// They cannot be written any more: the job ends, and nothing more is given to `output`.
    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()>;
    fn said(&mut self, step: StepId, line: &str, warning: bool);
    /// `tail`: the last lines that the step wrote, masked; empty for a sequence.
    fn ended(&mut self, step: StepId, headline: &Headline, tail: &[u8]);
    /// Called several times a second, for a live status line.
    fn tick(&mut self) {}
    /// Whether something waits for [`Audience::quiet`]: the beginning of a line, for example.
    fn holds_back(&self) -> bool {
        false
    }
    /// Nothing came for a moment: what is held back will not be completed soon.
    fn quiet(&mut self) {}
}

/// Somebody outside who wants the job to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Ask the steps to end, and kill them after the grace period.
    End,
    /// Kill at once.
    EndNow,
}

/// A job that is over.
#[derive(Debug)]
pub struct Ended<A> {
    /// The machine, with its result.
    pub run: Run,
    /// `None`: it is still stuck in a write that does not end (the job was asked to end meanwhile), or it panicked.
    pub audience: Option<A>,
    /// Those that were known before the first step, and those that the job brought forth.
    pub secrets: Secrets,
    /// What stands for them in the journal: a result that is written with it has the same marks.
    pub redaction: Redaction,
    /// To be closed when the log is complete.
    pub journal: Option<journal::Journal>,
    /// The log could not be written to its end, and this was known too late for the machine to take it into account.
    pub log_failure: Option<String>,
}

/// Runs a plan to its end and returns the machine with its result. No process of the job is left, whatever happens, also when the
/// returned future is dropped. Needs a runtime with IO and time; one thread is enough and best.
///
/// `asks` brings signals and requests; a closed channel brings none.
///
/// Only one job runs at a time in a process, further ones wait for their turn: what a job left behind is told by being a descendant of
/// ours, outside of our process group.
/// # Errors
/// The system refused what no job can do without, a thread for example. Nothing has run then.
pub async fn run<A: Audience>(
    plan: Plan,
    settings: Settings,
    audience: A,
    asks: tokio::sync::mpsc::UnboundedReceiver<Ask>,
) -> io::Result<Ended<A>> {
    drive::run(plan, settings, audience, asks).await
}
