//! Where jobs come from.

pub mod gitlab;
mod slots;
