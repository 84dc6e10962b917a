//! Decides what happens next in a run. A part that decides, and nothing else: every input is an argument, every wish an effect.
//!
//! ```text
//! StepDocument --Resolver--> Plan --Run--> effects for the agent, and at any moment a result
//! ```

pub mod effect;
pub mod event;
pub mod files;
pub mod invariants;
pub mod resolve;
pub mod run;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod world;
