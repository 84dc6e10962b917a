//! Where the caches of a job are kept: in a directory of its instance, or in a bucket, for which this process signs.

use super::presigned::{Method, Presigner};
use runner_config::settings::cache::{S3, S3Authentication, ServerSideEncryption};
use runner_config::settings::{Cache, CacheStore};
use runner_gitlab::ReceivedJob;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;
use step_model::time::Timestamp;
use step_payload::CachePlace;

/// An address is good for as long as the job may run, and for this much more: it waits for its instance first.
const BEFORE: Duration = Duration::from_secs(3600);

/// Of one entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Caches {
    /// Absolute, on the instance.
    Directory(String),
    Signed(SignedCaches),
    /// The identity of the instance opens the bucket.
    OfInstance {
        settings: BTreeMap<String, Json>,
        objects: Objects,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct SignedCaches {
    signer: Presigner,
    objects: Objects,
    /// To be sent with every archive, sorted by name.
    headers: Vec<(String, String)>,
}

/// What objects are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objects {
    path: String,
    /// Empty: runners share their caches.
    runner: String,
}

impl Objects {
    /// `PATH/runner/TOKEN/project/ID`
    fn of_project(&self, project: u64) -> String {
        let runner = if self.runner.is_empty() { String::new() } else { format!("runner/{}", self.runner) };
        let parts = [self.path.trim_matches('/').to_owned(), runner, format!("project/{project}")];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }
}

impl Caches {
    /// What the entry says of its caches. `directory`: where they lie without a store.
    /// # Errors
    /// Why the store cannot be used: caches then stay on their instances.
    pub fn of(cache: Option<&Cache>, directory: String, short_token: &str) -> (Self, Option<String>) {
        let Some(cache) = cache else { return (Self::Directory(directory), None) };
        let runner = if cache.shared { "" } else { short_token };
        let objects = Objects { path: cache.path.clone(), runner: runner.to_owned() };
        let why = match &cache.store {
            CacheStore::S3(s3) if s3.role_arn.is_some() || s3.upload_role_arn.is_some() => "roles of AWS are not assumed yet",
            CacheStore::S3(s3) => return (of_s3(s3, objects), None),
            CacheStore::Gcs(_) => "caches in Google Cloud Storage are not supported yet",
            CacheStore::Azure(_) => "caches in Azure Blob Storage are not supported yet",
        };
        (Self::Directory(directory), Some(format!("{why}: caches stay on their instances")))
    }

    /// For one job. `project`: its directory below that of all caches.
    pub fn place(&self, received: &ReceivedJob, project: &str, limit: Duration, now: Timestamp) -> CachePlace {
        let id = received.facts.project_id.unwrap_or_default();
        match self {
            Self::Directory(directory) => CachePlace::Directory(format!("{}/{project}", directory.trim_end_matches('/'))),
            Self::OfInstance { settings, objects } => {
                let prefix = [("prefix".to_owned(), Json::from(objects.of_project(id)))];
                CachePlace::Bucket { settings: settings.clone().into_iter().chain(prefix).collect(), credentials: json!({}) }
            }
            Self::Signed(signed) => CachePlace::Signed(signed.addresses(received, id, limit, now)),
        }
    }
}

impl SignedCaches {
    /// By key. What cannot be read is said when the payload becomes steps.
    fn addresses(&self, received: &ReceivedJob, project: u64, limit: Duration, now: Timestamp) -> BTreeMap<String, Json> {
        let payload = std::str::from_utf8(&received.payload).unwrap_or_default();
        let uses = step_payload::cache_uses(payload).unwrap_or_default();
        let mut addresses: BTreeMap<String, Json> = BTreeMap::new();
        for one in uses {
            let object = format!("{}/{}", self.objects.of_project(project), one.key);
            let address = |method, headers: &[(String, String)]| self.signer.address(method, &object, headers, limit + BEFORE, now);
            let both = addresses.entry(one.key).or_insert_with(|| json!({}));
            if one.restored {
                both["download"] = json!({"url": address(Method::Get, &[])});
            }
            if one.saved {
                let headers: BTreeMap<&String, &String> = self.headers.iter().map(|(name, value)| (name, value)).collect();
                both["upload"] = json!({"url": address(Method::Put, &self.headers), "headers": headers});
            }
        }
        addresses
    }
}

fn of_s3(s3: &S3, objects: Objects) -> Caches {
    let region = s3.bucket_location.clone().unwrap_or_else(|| "us-east-1".to_owned());
    let keys = s3.access_key.as_ref().zip(s3.secret_key.as_ref()).filter(|_| s3.authentication == S3Authentication::AccessKey);
    let Some((access_key, secret_key)) = keys else {
        let mut settings = BTreeMap::from([("bucket", Json::from(s3.bucket_name.as_str())), ("region", region.into())]);
        if let Some(address) = &s3.server_address {
            settings.insert("endpoint", Json::from(format!("{}://{address}", scheme(s3))));
        }
        settings.insert("path_style", Json::Bool(is_path_style(s3)));
        let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        return Caches::OfInstance { settings, objects };
    };
    let signer = Presigner {
        base: base(s3, &region),
        region,
        access_key: access_key.expose().to_owned(),
        secret_key: secret_key.expose().to_owned(),
        session_token: s3.session_token.as_ref().map(|token| token.expose().to_owned()).unwrap_or_default(),
    };
    Caches::Signed(SignedCaches { signer, objects, headers: encryption(s3) })
}

fn scheme(s3: &S3) -> &'static str {
    if s3.insecure { "http" } else { "https" }
}

/// Amazon's own hosts have a name for each bucket; others are asked for it in the path, unless the file says so.
fn is_path_style(s3: &S3) -> bool {
    let is_amazon = s3.server_address.as_ref().is_none_or(|address| address.ends_with(".amazonaws.com"));
    s3.path_style.unwrap_or(!is_amazon || s3.bucket_name.contains('.'))
}

fn base(s3: &S3, region: &str) -> String {
    let host = match &s3.server_address {
        Some(address) => address.clone(),
        None if s3.accelerate => "s3-accelerate.amazonaws.com".to_owned(),
        None if s3.dual_stack => format!("s3.dualstack.{region}.amazonaws.com"),
        None => format!("s3.{region}.amazonaws.com"),
    };
    let (scheme, bucket) = (scheme(s3), &s3.bucket_name);
    if is_path_style(s3) { format!("{scheme}://{host}/{bucket}") } else { format!("{scheme}://{bucket}.{host}") }
}

fn encryption(s3: &S3) -> Vec<(String, String)> {
    const HEADER: &str = "x-amz-server-side-encryption";
    let how = match s3.server_side_encryption {
        None => return Vec::new(),
        Some(ServerSideEncryption::Aes256) => "AES256",
        Some(ServerSideEncryption::Kms) => "aws:kms",
        Some(ServerSideEncryption::DsseKms) => "aws:kms:dsse",
    };
    let key = s3.server_side_encryption_key_id.as_ref().map(|key| (format!("{HEADER}-aws-kms-key-id"), key.clone()));
    std::iter::once((HEADER.to_owned(), how.to_owned())).chain(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(cache: &str) -> runner_config::settings::Runner {
        let text = format!("[[runners]]\nurl = \"https://x\"\ntoken = \"glrt-abcdefghijkl\"\nexecutor = \"shell\"\n{cache}");
        let parsed = runner_config::parse(&text, &BTreeMap::new());
        parsed.settings.unwrap_or_else(|| panic!("{:?}", parsed.problems)).runners.remove(0)
    }

    fn caches(cache: &str) -> (Caches, Option<String>) {
        Caches::of(entry(cache).cache.as_ref(), "/cache".to_owned(), "abcdefghi")
    }

    fn job() -> ReceivedJob {
        let payload = json!({
            "id": 7, "token": "t", "job_info": {"name": "x", "project_full_path": "group/project", "project_id": 42},
            "cache": [{"key": "deps", "paths": ["d"], "policy": "pull-push", "fallback_keys": ["old"]}],
        });
        ReceivedJob::read(&payload, Bytes::from(payload.to_string())).expect("a job")
    }

    fn place(cache: &str) -> CachePlace {
        caches(cache).0.place(&job(), "group/project", Duration::from_secs(60), Timestamp::from_nanoseconds(1_369_353_600_000_000_000))
    }

    const KEYS: &str = "AccessKey = \"a\"\nSecretKey = \"b\"\nBucketName = \"caches\"\n";

    #[test]
    fn without_a_store_each_project_has_a_directory() {
        assert_eq!(place(""), CachePlace::Directory("/cache/group/project".to_owned()));
    }

    #[test]
    fn the_runner_signs_for_one_object_and_one_direction_and_no_key_leaves_it() {
        let text = format!(
            "[runners.cache]\nType = \"s3\"\nPath = \"ci\"\n[runners.cache.s3]\nServerAddress = \"minio:9000\"\nInsecure = true\n{KEYS}"
        );
        let CachePlace::Signed(objects) = place(&text) else { panic!("signed") };
        assert_eq!(objects.keys().collect::<Vec<_>>(), ["deps", "old"]);
        let url = |key: &str, direction: &str| objects[key][direction]["url"].as_str().unwrap_or_default().to_owned();
        assert!(url("deps", "upload").starts_with("http://minio:9000/caches/ci/runner/abcdefghi/project/42/deps?"), "{objects:?}");
        assert!(url("deps", "download").contains("X-Amz-Expires=3660&"));
        assert_eq!((url("old", "upload").as_str(), url("old", "download").is_empty()), ("", false), "a fallback is only read");
    }

    #[test]
    fn amazons_hosts_and_encryption_are_as_gitlabs_runner_has_them() {
        let text = format!(
            "[runners.cache]\nType = \"s3\"\nShared = true\n[runners.cache.s3]\n{KEYS}BucketLocation = \"eu-west-1\"\nAuthenticationType = \"access-key\"\n\
             ServerSideEncryption = \"KMS\"\nServerSideEncryptionKeyID = \"alias/k\"\n"
        );
        let CachePlace::Signed(objects) = place(&text) else { panic!("signed") };
        let upload = &objects["deps"]["upload"];
        assert!(
            upload["url"].as_str().expect("an address").starts_with("https://caches.s3.dualstack.eu-west-1.amazonaws.com/project/42/deps?")
        );
        assert_eq!(
            upload["headers"],
            json!({"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "alias/k"})
        );
    }

    #[test]
    fn without_keys_the_instance_opens_the_bucket_itself() {
        let CachePlace::Bucket { settings, credentials } =
            place("[runners.cache]\nType = \"s3\"\n[runners.cache.s3]\nBucketName = \"caches\"\n")
        else {
            panic!("a bucket")
        };
        assert_eq!((&settings["bucket"], &settings["prefix"]), (&json!("caches"), &json!("runner/abcdefghi/project/42")));
        assert_eq!(credentials, json!({}));
    }

    #[test]
    fn a_store_that_is_not_known_here_is_said_and_caches_stay_on_their_instances() {
        let (found, why) = caches("[runners.cache]\nType = \"azure\"\n[runners.cache.azure]\nContainerName = \"c\"\n");
        assert_eq!(found, Caches::Directory("/cache".to_owned()));
        assert_eq!(why.as_deref(), Some("caches in Azure Blob Storage are not supported yet: caches stay on their instances"));
    }
}
