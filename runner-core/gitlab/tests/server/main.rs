//! A server with a scenario, a client for it, and what both say of each other.

mod delivery;
mod faults;
mod jobs;
mod logs;
mod runners;
mod tls;

use runner_gitlab::client::{Proxy, Timeouts, Unwatched};
use runner_gitlab::retry::RetryPolicy;
use runner_gitlab::{Client, ClientSettings, RunnerInfo, ServerUrl, SystemId, Token};
use runner_mock_gitlab::{Scenario, Server};
use std::sync::Arc;
use std::time::Duration;

const TOKEN: &str = "glrt-abcdefghijklmnopqrst";

/// A server with one runner, jobs for it, and more lines of a scenario.
async fn server(jobs: u64, more: &str) -> Server {
    Server::start(scenario(jobs, more)).await.expect("a port is free")
}

fn scenario(jobs: u64, more: &str) -> Scenario {
    let text = format!("{more}\n[[runner]]\ntoken = \"{TOKEN}\"\n[[jobs]]\ncount = {jobs}\n");
    Scenario::parse(&text).expect("a scenario")
}

/// With the rules of the real one, but waits that a test can bear.
fn settings(url: &str) -> ClientSettings {
    let url = ServerUrl::parse(url).expect("an address");
    let id = SystemId::parse("s_0123456789ab").expect("an id");
    let mut settings = ClientSettings::new(url, RunnerInfo::of_this_program("instance", "bash"), id);
    settings.retry = RetryPolicy { least: Duration::from_millis(1), most: Duration::from_millis(2), ..RetryPolicy::default() };
    settings.proxy = Proxy::None;
    settings.timeouts = Timeouts { answer: Duration::from_secs(20), ..Timeouts::default() };
    settings
}

fn client_of(settings: ClientSettings) -> Client {
    Client::new(settings, Arc::new(Unwatched))
}

fn client(server: &Server) -> Client {
    client_of(settings(&server.url()))
}

fn token() -> Token {
    Token::new(TOKEN)
}
