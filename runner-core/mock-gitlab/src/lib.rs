//! A GitLab server for tests and demonstrations, with scenarios.
