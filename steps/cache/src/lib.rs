//! `builtin://cache`: restores and saves what a later job can use again.
//!
//! [`settings`] checks the inputs, [`restore`] and [`save`] are the two things that it does, [`store`] is where caches are kept: a directory, a bucket, or
//! addresses that somebody signed.

mod inputs;
mod program;
mod restore;
mod retry;
mod save;
pub mod settings;
pub mod store;

pub use program::main;

/// The `func.yml` of `builtin://cache`.
pub const DEFINITION: &str = include_str!("../func.yml");
