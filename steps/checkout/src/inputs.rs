//! What a checkout is asked to do, as the job wrote it.

use serde::Deserialize;

/// As they arrive, with the defaults of the definition.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Inputs {
    pub repo_url: String,
    pub token: String,
    pub username: String,
    pub ssh_key: String,
    pub ssh_known_hosts: String,
    pub tls_ca_file: String,
    pub sha: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub refspecs: Vec<String>,
    pub depth: f64,
    pub object_format: String,
    pub strategy: String,
    pub checkout: bool,
    pub submodules: String,
    pub submodule_depth: f64,
    pub submodule_paths: Vec<String>,
    pub submodule_update_flags: Vec<String>,
    pub submodule_force_https: bool,
    pub clean_flags: Vec<String>,
    pub fetch_flags: Vec<String>,
    pub lfs: bool,
    pub attempts: f64,
    pub directory: String,
    pub take_over: bool,
    pub user_agent: String,
}
