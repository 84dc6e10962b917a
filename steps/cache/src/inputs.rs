//! What a cache is asked to be, as the job wrote it.

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// As they arrive, with the defaults of the definition. Nothing of it is for a log: it holds addresses that are as good as passwords.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Inputs {
    pub action: String,
    pub key: String,
    pub fallback_keys: Vec<String>,
    pub paths: Vec<String>,
    pub untracked: bool,
    pub format: String,
    pub level: String,
    pub max_size: f64,
    pub timeout: String,
    pub attempts: f64,
    pub outside_links: bool,
    pub directory: String,
    pub bucket: String,
    pub prefix: String,
    pub region: String,
    pub endpoint: String,
    pub path_style: bool,
    pub credentials: Credentials,
    pub signed: BTreeMap<String, SignedObject>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: String,
}

#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignedObject {
    pub download: Option<Signed>,
    pub upload: Option<Signed>,
}

/// An address that is as good as a password for one object and one direction; or `s3://BUCKET/OBJECT`, with credentials for it in `env`.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Signed {
    pub url: String,
    /// Each a text, or several.
    pub headers: Map<String, Json>,
    pub env: BTreeMap<String, String>,
}
