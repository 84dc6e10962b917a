//! The whole machine, one life at a time.

mod lives;
