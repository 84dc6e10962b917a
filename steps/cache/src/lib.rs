//! builtin://cache: restores and saves what a later job can use again.
