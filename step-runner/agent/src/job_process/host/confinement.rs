//! The limits of the steps of one job: who holds each, the groups that are made for them, and what those counted.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(target_os = "linux")]
pub use linux::{Confiner, remove_recorded};
#[cfg(not(target_os = "linux"))]
pub use none::{Confiner, remove_recorded};
