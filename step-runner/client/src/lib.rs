//! The wire meets the nouns: run requests in, results out. A client of the agent's API follows here.

pub mod logs;
pub mod wire;
