//! `builtin://service`: a container beside a job, reached by its alias.
