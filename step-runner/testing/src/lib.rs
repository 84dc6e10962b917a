//! Tests of steps: the cases of a `step_test.yml`, or cases written in Rust, carried out by the engine that runs jobs.
//!
//! ```text
//! step_test.yml --read, check--> Case --stand_ins, plan--> Plan --Run--> Effect --stage--> fakes, stubs, processes
//!                                  |                                                          |
//!                                  '-- Expectation --compare-------- Outcome <----------------'
//! ```
//!
//! A fake is a command that the engine starts like any other and the stage answers by itself: a case of values and fakes alone makes no process
//! and no file. See `docs/design/0006-steps-are-tested-with-fakes.md`.

pub mod check;
pub mod compare;
pub mod coverage;
pub mod difference;
pub mod mutant;
pub mod mutate;
pub mod outcome;
pub mod plan;
mod process;
pub mod scenario;
pub mod stage;
pub mod stub;
pub mod subject;
pub mod suite_file;
pub mod workers;
