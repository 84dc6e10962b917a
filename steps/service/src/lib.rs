//! `builtin://service`: a container beside a job, reached by its alias.
//!
//! The first service of a job makes the network of the job and tells later steps its name; later services and `builtin://docker` join it. What is
//! made goes when the job ends, by the clean-up command that is left with the host.

mod alias;
mod listening;
mod program;
mod readiness;
mod service;
mod variables;

pub use program::main;

/// The `func.yml` of `builtin://service`.
pub const DEFINITION: &str = include_str!("../func.yml");
