//! builtin://checkout: brings a job's work tree to its commit.
