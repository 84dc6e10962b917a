//! Decides which job runs where and when: offered, claimed, placed, connected, dispatched, followed, reported. Pure.
//!
//! ```text
//! source, provider, connector, agents, store --Event--> Controller --Effect--> one task each, whose outcome is the next event
//! ```

mod agenda;
mod attempt;
pub mod backoff;
pub mod classify;
mod concurrency;
mod controller;
mod desk;
mod dice;
pub mod effect;
pub mod event;
mod fleet;
mod health;
pub mod history;
pub mod id;
pub mod invariants;
mod job;
pub mod record;
pub mod report;
mod runner;
pub mod settings;
pub mod taskscaler;
mod turn;
pub mod view;
pub mod warnings;
pub mod why;

pub use controller::{Controller, Seed};
pub use fleet::instance::Retired;
pub use runner::HeldBack;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod testing;
