//! Result trees as protobuf JSON and text format, node by node, and read back.
//!
//! Names, order and omissions are those of GitLab's report (original.md S 2.7): one line without blanks, fields by number, zero values absent.

mod clear;
mod masked;
mod message;
mod read;
mod read_message;
mod redaction;
#[cfg(test)]
mod tests;
mod write;

pub use super::print::Format;
pub use clear::clear_json;
pub use masked::{redacted_env, redacted_message};
pub use message::{message_of, tree_message};
pub use read::{Unreadable, node_of, read};
pub(crate) use read::{failure_kind, status, timestamp};
pub use read_message::read_message;
pub use redaction::Redaction;
pub use step_model::result::OwnedTree;
pub use write::{Writing, write};
