//! Jobs of an agent that is elsewhere, or here behind a socket: run, follow, ask, end.

mod ended_job;
mod jobs;
mod request;
mod run;
mod r#where;

use clap::{Args, Subcommand};
use std::time::Duration;
use step_client::AgentClient;
use step_console::exit::{Exit, Stop};
use r#where::Where;

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "WHERE is a socket (a path, or `unix:PATH`), `ssh:user@host`, `docker:CONTAINER`, or `exec:COMMAND ...`, any command whose standard input and output\n\
are the connection: `exec:ssh host step-runner proxy`. Without it: $STEP_RUNNER_SOCKET, else step-runner.sock in $TMPDIR, where `step-runner serve` listens."
)]
pub struct RemoteArguments {
    /// Where the agent is.
    #[arg(long, global = true, value_name = "WHERE")]
    connect: Option<String>,
    #[command(subcommand)]
    command: RemoteCommand,
}

#[derive(Debug, Subcommand)]
enum RemoteCommand {
    /// Run a job there and tell of it, as `run` does here.
    Run(Box<RemoteRunArguments>),
    /// Print the log of a job, to its end.
    Follow(FollowArguments),
    /// Print how jobs are doing.
    Status(StatusArguments),
    /// Print the result of a job as a tree.
    Result(ResultArguments),
    /// Ask jobs to end; their steps are given their grace period.
    Cancel(JobsArguments),
    /// End jobs at once, if they still run, and forget them with their logs and results.
    Close(JobsArguments),
    /// Print a job as it was received: a run request that `step-runner run FILE` takes.
    Payload(PayloadArguments),
}

#[derive(Debug, Args)]
pub struct RemoteRunArguments {
    #[command(flatten)]
    pub run: crate::run::RunArguments,
    /// Print the id of the job and leave it alone.
    #[arg(long)]
    pub detach: bool,
    /// What the job is called there. [default: made up]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// The directory there in which the job runs. [default: the same as here for a socket, else the agent's own]
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<String>,
    /// How long to wait for an agent that is not there yet, `90s`, `5m`. [default: not at all]
    #[arg(long, value_name = "TIME")]
    pub wait: Option<String>,
}

#[derive(Debug, Args)]
pub struct FollowArguments {
    #[arg(value_name = "ID")]
    id: String,
    /// Begin at this byte of what the agent sends.
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    offset: u64,
    /// Print what the agent sends as it is, with its stamps.
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// All jobs when none is named.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// The form: `text` for people, `json` for programs (a line for each job).
    #[arg(long, value_name = "FORM", value_enum, default_value_t, hide_default_value = true)]
    output: crate::run::typed::Output,
}

#[derive(Debug, Args)]
pub struct ResultArguments {
    #[arg(value_name = "ID")]
    id: String,
    /// Also commands, exports, used resources and where the definitions came from.
    #[arg(long, short)]
    verbose: bool,
    /// The form: `text` for people, `json` for programs (the result itself, on one line).
    #[arg(long, value_name = "FORM", value_enum, default_value_t = crate::show::Form::Text, hide_default_value = true)]
    output: crate::show::Form,
}

#[derive(Debug, Args)]
pub struct JobsArguments {
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub struct PayloadArguments {
    #[arg(value_name = "ID")]
    id: String,
}

/// # Errors
/// The command line makes no sense, or the agent does not do it.
pub fn run(arguments: &RemoteArguments) -> anyhow::Result<Exit> {
    let place = Where::read(arguments.connect.as_deref()).map_err(|complaint| Stop::all(Exit::Usage, vec![complaint]))?;
    let exit = match &arguments.command {
        RemoteCommand::Run(run) => return run::run(run, &place),
        RemoteCommand::Follow(follow) => {
            with_agent(&place, async |agent| jobs::follow(&agent, &place, &follow.id, follow.offset, follow.raw).await)
        }
        RemoteCommand::Status(status) => with_agent(&place, async |agent| jobs::status(&agent, &place, &status.ids, status.output).await),
        RemoteCommand::Result(result) => {
            with_agent(&place, async |agent| jobs::result(&agent, &place, &result.id, result.verbose, result.output).await)
        }
        RemoteCommand::Cancel(jobs) => with_agent(&place, async |agent| jobs::cancel(&agent, &place, &jobs.ids).await),
        RemoteCommand::Close(jobs) => with_agent(&place, async |agent| jobs::close(&agent, &place, &jobs.ids).await),
        RemoteCommand::Payload(payload) => with_agent(&place, async |agent| jobs::payload(&agent, &place, &payload.id).await),
    };
    Ok(exit?)
}

/// One thread is enough: nothing here waits for anything but the agent.
fn with_agent(place: &Where, command: impl AsyncFnOnce(AgentClient) -> Result<Exit, Stop>) -> Result<Exit, Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|fault| Stop::new(Exit::Fault, format!("could not start: {fault}")))?;
    runtime.block_on(async {
        let agent = place.client(Duration::ZERO);
        command(agent).await
    })
}
