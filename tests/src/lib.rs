//! What the tests of the whole stand on: the repository as a thing to read, the programs as things to run.

pub mod cases;
pub mod docker;
pub mod document;
pub mod kit;
pub mod measure;
pub mod program;
pub mod repository;
pub mod skipped;
pub mod workshop;
