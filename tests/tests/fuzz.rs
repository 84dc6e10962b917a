//! Whatever comes from outside is read without a panic, without a hang, and with places that lie in the text: mutated fixtures and plain noise.
//!
//! A failure prints the smallest text that shows it. `PROPTEST_CASES=100000 ./test fuzz` looks longer.

mod documents;
mod expressions;
mod masking;
mod mutation;
mod payloads;
