//! Between the messages of the wire and the nouns of the model (proto <-> model), in JSON and in text format.

pub mod definition;
mod json;
pub mod kept_request;
pub mod plan;
mod print;
pub mod request;
pub mod result;
pub mod value;

pub use json::NotJson;
