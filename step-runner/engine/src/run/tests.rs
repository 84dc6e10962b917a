//! Runs on values, from a job to its result.

use crate::world::*;

mod execution;
