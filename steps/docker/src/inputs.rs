//! What a container is asked to be, as the job wrote it. Inputs of `builtin://docker` and `builtin://service` alike.

use crate::credentials::Given;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// As they arrive, with the defaults of the definitions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContainerInputs {
    pub image: String,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub user: String,
    pub platform: String,
    pub pull_policy: Vec<String>,
    pub auth_config: String,
    pub credentials: Vec<Given>,
    pub mirror: String,
    pub variables: Map<String, Json>,
    pub workspace: String,
    pub mounts: Vec<String>,
    pub tmpfs: Map<String, Json>,
    pub network: String,
    pub aliases: Vec<String>,
    pub hostname: String,
    pub extra_hosts: Vec<String>,
    pub dns: Vec<String>,
    pub dns_search: Vec<String>,
    pub cpus: f64,
    pub memory: String,
    pub pids: f64,
    pub shm_size: String,
    pub privileged: bool,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    pub read_only: bool,
    pub labels: Map<String, Json>,
    pub engine_timeout: String,
}
