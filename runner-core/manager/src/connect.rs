//! The way to an instance's agent.

use runner_fleeting::{ConnectInfo, protocol};
use step_client::AgentClient;
use step_client::connect::UnixSocket;

/// Why there is no way to an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    #[error(
        "instances that are reached by `{protocol}` are not supported yet; those with an agent on a socket (`{}`) are",
        protocol::AGENT_SOCKET
    )]
    Protocol { protocol: String },
    #[error("the plugin gives no socket for instance `{instance}`")]
    NoAddress { instance: String },
}

/// A client of the agent. It connects at its first call, and again after a connection was lost.
/// # Errors
/// The instance is reached in a way that is not known here.
pub fn agent(info: &ConnectInfo) -> Result<AgentClient, NoWay> {
    match info.connector.protocol.as_str() {
        protocol::AGENT_SOCKET if info.internal_address.is_empty() => Err(NoWay::NoAddress { instance: info.id.to_string() }),
        protocol::AGENT_SOCKET => Ok(AgentClient::new(UnixSocket::new(&info.internal_address))),
        other => Err(NoWay::Protocol { protocol: other.to_owned() }),
    }
}
