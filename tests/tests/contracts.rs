//! Each plug's fake and its real other side, held to one contract.

mod agent;
mod client;
mod fake_agent;
