//! `builtin://artifact`: uploads what a job made, and downloads what earlier jobs did.
//!
//! [`settings`] checks the inputs, [`answers`] says from values what an answer of the server means and what follows, [`upload`] and [`download`] act.

pub mod answers;
mod client;
mod content;
mod download;
mod inputs;
mod kept;
mod message;
mod program;
mod progress;
pub mod settings;
mod upload;

pub use program::main;

/// The `func.yml` of `builtin://artifact`.
pub const DEFINITION: &str = include_str!("../func.yml");
