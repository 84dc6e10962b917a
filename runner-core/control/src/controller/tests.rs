//! The whole machine, one life at a time.

mod accepting;
mod ending;
mod lives;
mod restarts;
mod taking;
mod trouble;
