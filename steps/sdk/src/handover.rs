//! Steps handed over to an agent in an environment that the author of a step has made: a container, a machine behind SSH, a chroot.
//!
//! The author gives a byte stream to that agent. The plan goes there unread; the log of the inner steps comes into ours, each stream into its own;
//! the result comes back, and may be filtered before the host grafts it under the step.

mod greeting;
mod result;

pub use result::DelegatedResult;

use crate::{Cancellation, Failure, FailureKind, Step};
use ci_proto::step_runner::RunRequest;
use greeting::AfterGreeting;
use std::io::Write as _;
use std::time::Duration;
use step_client::connect::{ByteStream, Once};
use step_client::logs::{LogReader, Piece, Stream};
use step_client::{AgentClient, CallFailed};

/// How long an agent may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Where the inner steps run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// What people call it: `the container of postgres:16`.
    pub name: String,
    /// The directory there that stands for the job's own, absolute.
    pub work_dir: String,
    /// For all inner steps together. `None`: the job's own limit is enough.
    pub timeout: Option<Duration>,
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoverFailure {
    /// The stream ended. Whoever made the environment may know why.
    Lost {
        why: String,
    },
    Failed(Failure),
}

impl From<HandoverFailure> for Failure {
    fn from(failure: HandoverFailure) -> Self {
        match failure {
            HandoverFailure::Lost { why } => Self::step(format!("the agent is gone: {why}")),
            HandoverFailure::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for HandoverFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Step {
    /// Runs the steps of this step's template inputs by the agent at the other end of `stream`, and returns when they have ended: also when they have
    /// failed, which the result says. When the step is cancelled, so are they.
    /// # Errors
    /// The step has no template inputs, the agent does not take the plan, or the stream ended.
    pub async fn hand_over(
        &self,
        stream: impl ByteStream,
        environment: &Environment,
        cancellation: &Cancellation,
    ) -> Result<DelegatedResult, HandoverFailure> {
        let plan = self.plan()?.ok_or_else(|| Failure::bad_input("there are no steps to hand over: `STEP_RUNNER_HANDOVER` is not set"))?;
        let agent = AgentClient::new(Once::new(AfterGreeting::new(stream), environment.name.clone()));
        let agent = agent.waiting(Duration::ZERO).reconnecting(Duration::ZERO);
        let id = format!("handover-{}", uuid::Uuid::new_v4().simple());
        let request = RunRequest {
            id: id.clone(),
            work_dir: environment.work_dir.clone(),
            plan,
            timeout: environment.timeout.and_then(|timeout| timeout.try_into().ok()),
            traceparent: self.traceparent().unwrap_or_default().to_owned(),
            ..RunRequest::default()
        };
        let failed = |failure| failed(failure, environment);
        agent.run(request).await.map_err(failed)?;
        follow(&agent, &id, cancellation).await.map_err(failed)?;
        let result = agent.result(&id).await.map_err(failed)?;
        // The result is here; an agent that is gone already needs no goodbye.
        let _gone = tokio::time::timeout(GOODBYE, agent.close(&id)).await;
        DelegatedResult::read(&result.message).map_err(HandoverFailure::Failed)
    }
}

/// Shows the log until the job is over, and cancels it when that is asked.
async fn follow(agent: &AgentClient, id: &str, cancellation: &Cancellation) -> Result<(), CallFailed> {
    let (mut log, mut reader) = (agent.follow(id, 0), LogReader::new());
    let mut was_cancelled = false;
    loop {
        tokio::select! {
            piece = log.next() => match piece? {
                Some(bytes) => {
                    // Both of our streams may be one to the host: a line ends before the other stream goes on.
                    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                        reader.push(line, &mut show);
                        reader.quiet(&mut show);
                    }
                }
                None => break,
            },
            () = cancellation.asked(), if !was_cancelled => {
                was_cancelled = true;
                agent.cancel(id).await?;
            }
        }
    }
    reader.finish(&mut show);
    Ok(())
}

/// Whoever reads our log reads all of it: the host. When it has gone it has asked us to end, too.
fn show(piece: Piece<'_>) {
    let _unread = match piece.stream {
        Stream::Error => std::io::stderr().write_all(piece.bytes),
        Stream::Output | Stream::Unknown => {
            let mut output = std::io::stdout().lock();
            output.write_all(piece.bytes).and_then(|()| output.flush())
        }
    };
}

fn failed(failure: CallFailed, environment: &Environment) -> HandoverFailure {
    let name = &environment.name;
    match failure {
        CallFailed::NotConnected { why, .. } | CallFailed::Lost { why } => HandoverFailure::Lost { why },
        CallFailed::Missing { method } => {
            HandoverFailure::Failed(Failure::step(format!("the agent in {name} cannot take steps: it has no `{method}`")))
        }
        CallFailed::Refused { message, .. } => {
            HandoverFailure::Failed(Failure::new(FailureKind::BadInput, format!("the agent in {name} does not take the steps: {message}")))
        }
    }
}
