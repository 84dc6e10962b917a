//! A result as a tree that a person reads.
