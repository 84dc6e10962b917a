//! The nouns of a step: values, references, documents, expressions, environments, plans and results.
//!
//! Everything here is a value. No clock, no environment, no file, no runtime: whoever needs the world passes it in.

pub mod builtin;
pub mod diagnostic;
pub mod document;
pub mod environment;
pub mod expression;
pub mod limits;
pub mod masking;
pub mod plan;
pub mod reference;
pub mod request;
pub mod result;
pub mod time;
pub mod trace;
pub mod value;

pub mod testing;
