//! `mock-gitlab`: a server for tests and demonstrations, and its judgement of what runners did.

use clap::Args;
use runner_mock_gitlab::{Certificates, Scenario, Server};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use step_console::exit::{Exit, Stop};
use step_console::given::{self, words};

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Prints its address as the first line. It ends on SIGINT or SIGTERM, or with `--until-done` when every job has ended, and prints what runners did: \n\
exit code 0 when each job has an end that a runner reported and nothing was done wrong, else 1."
)]
pub struct MockArguments {
    /// Which jobs come, and what goes wrong: a TOML file.
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Where it listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Serve TLS, with a certificate for localhost.
    #[arg(long)]
    pub tls: bool,
    /// End when every job has ended.
    #[arg(long)]
    pub until_done: bool,
    /// Print the judgement as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Serves until it is asked to end.
/// # Errors
/// The scenario makes no sense, or the address is taken.
pub fn run(arguments: &MockArguments) -> anyhow::Result<Exit> {
    let scenario = given::file(&arguments.scenario)?;
    let scenario = Scenario::parse(&scenario.text).map_err(|bad| Stop::bad_input(format!("{}: {bad}", scenario.name)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(serve(scenario, arguments))?)
}

async fn serve(scenario: Scenario, arguments: &MockArguments) -> Result<Exit, Stop> {
    let certificates = arguments.tls.then(Certificates::new);
    let server = Server::listen(scenario, arguments.listen, certificates).await;
    let server = server.map_err(|fault| Stop::bad_input(format!("could not listen on {}: {}", arguments.listen, words(&fault))))?;
    print(&format!("{}\n", server.url()))?;
    let no_signals = |fault: std::io::Error| Stop::new(Exit::Fault, format!("could not listen to signals: {}", words(&fault)));
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map_err(no_signals)?;
    let is_done = |world: &runner_mock_gitlab::world::World| {
        let report = world.report();
        arguments.until_done && report.open.is_empty() && report.waiting.is_empty()
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        () = server.until(is_done) => {}
    }
    let report = server.report();
    if arguments.json { print(&format!("{}\n", report.as_json())) } else { print(&report.to_string()) }?;
    Ok(if report.is_clean() { Exit::Done } else { Exit::Failed })
}

fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|fault| Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&fault))))
}
