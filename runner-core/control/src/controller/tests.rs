//! The whole machine, one life at a time.

mod accepting;
mod ending;
mod lives;
mod published;
mod restarts;
mod scaling;
mod taking;
mod trouble;
