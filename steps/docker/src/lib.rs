//! `builtin://docker`: makes a container and hands steps over into it.
//!
//! What decides and what acts are apart: [`settings`] checks inputs, [`specification`] says what the container is, [`owner`] whose it is, all of them
//! from values; [`engine`] asks the engine and decides nothing. The crate `step-service` builds on the same parts.

pub mod address;
pub mod agent_digest;
pub mod credentials;
pub mod ending;
pub mod engine;
pub mod held;
pub mod image_reference;
pub mod inputs;
pub mod job;
pub mod owner;
pub mod permissions;
pub mod program;
pub mod pulling;
pub mod quantity;
pub mod settings;
pub mod specification;
pub mod sweep;
pub mod trouble;

pub use program::main;

/// The `func.yml` of `builtin://docker`.
pub const DEFINITION: &str = include_str!("../func.yml");
