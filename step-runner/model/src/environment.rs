//! Who sees which environment variable: scopes over exports over the request over the process (agent.md E.2).
