//! How the programs speak with people: exit codes, what is said when something is wrong, texts that are given, result trees, manual pages.
//!
//! `step-runner` and `runner-core` have it in common, so that the same mistake is told in the same words and ends with the same number.

pub mod complaint;
pub mod exit;
pub mod given;
pub mod manual;
pub mod output;
pub mod pipeline;
pub mod tree;
