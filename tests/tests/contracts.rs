//! Each plug's fake and its real other side, held to one contract.

pub mod agent;
mod client;
mod fake_agent;
mod gitlab;
