//! GitLab as a runner sees it: the API client, the trace, the job as it was received.
