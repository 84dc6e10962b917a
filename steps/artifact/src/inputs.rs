//! What is asked of artifacts, as the job wrote it.

use serde::Deserialize;

/// As they arrive, with the defaults of the definition.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Inputs {
    pub action: String,
    pub name: String,
    pub paths: Vec<String>,
    pub exclude: Vec<String>,
    pub untracked: bool,
    #[serde(rename = "type")]
    pub kind: String,
    pub format: String,
    pub expire_in: String,
    pub level: String,
    pub filename: String,
    pub outside_links: bool,
    pub url: String,
    pub id: f64,
    pub token: String,
    pub tls_ca_file: String,
    pub directory: String,
    pub job: String,
    pub timeout: String,
    pub attempts: f64,
    pub direct: bool,
}
