//! Caches in a bucket of S3, or of what speaks like it: the object is `PREFIX/KEY`.

use super::to_file;
use crate::inputs::{Credentials, Inputs, Signed};
use crate::retry::Trouble;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as ObjectPath;
use object_store::{ClientOptions, ObjectStoreExt as _, RetryConfig};
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;
use url::Url;

#[derive(Clone, PartialEq, Eq)]
pub struct BucketSettings {
    pub bucket: String,
    pub prefix: String,
    pub region: String,
    pub endpoint: String,
    pub path_style: bool,
    pub credentials: Credentials,
}

/// Nothing of the credentials is for a log.
impl fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({}/{})", self.bucket, self.prefix)
    }
}

impl BucketSettings {
    pub fn of(inputs: Inputs) -> Self {
        let Inputs { bucket, prefix, region, endpoint, path_style, credentials, .. } = inputs;
        Self { bucket, prefix: prefix.trim_matches('/').to_owned(), region, endpoint, path_style, credentials }
    }

    /// `s3://BUCKET/OBJECT?region=...&endpoint=...`, as GitLab's runner hands out where a signed address is not enough: the settings and the object.
    /// `None`: it is no such address.
    pub fn of_address(signed: &Signed) -> Option<(Self, String)> {
        let url = Url::parse(&signed.url).ok().filter(|url| url.scheme() == "s3")?;
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default();
        let variable = |name: &str| signed.env.get(name).cloned().unwrap_or_default();
        let settings = Self {
            bucket: url.host_str()?.to_owned(),
            prefix: String::new(),
            region: Some(value("region")).filter(|region| !region.is_empty()).unwrap_or_else(|| variable("AWS_REGION")),
            endpoint: value("endpoint"),
            path_style: [value("use_path_style"), value("s3ForcePathStyle")].iter().any(|value| value == "true"),
            credentials: Credentials {
                access_key_id: variable("AWS_ACCESS_KEY_ID"),
                secret_access_key: variable("AWS_SECRET_ACCESS_KEY"),
                session_token: variable("AWS_SESSION_TOKEN"),
            },
        };
        Some((settings, url.path().trim_start_matches('/').to_owned()))
    }
}

pub struct Bucket {
    store: Arc<AmazonS3>,
    prefix: String,
}

impl Bucket {
    pub fn open(settings: &BucketSettings, timeout: Duration) -> Result<Self, Trouble> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&settings.bucket)
            .with_client_options(ClientOptions::new().with_timeout(timeout).with_allow_http(settings.endpoint.starts_with("http://")))
            // Tried again by ours, which says so.
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() });
        if !settings.region.is_empty() {
            builder = builder.with_region(&settings.region);
        }
        if settings.endpoint.is_empty() {
            builder = builder.with_virtual_hosted_style_request(!settings.path_style);
        } else {
            builder = builder.with_endpoint(&settings.endpoint);
        }
        let Credentials { access_key_id, secret_access_key, session_token } = &settings.credentials;
        if !access_key_id.is_empty() {
            builder = builder.with_access_key_id(access_key_id).with_secret_access_key(secret_access_key);
        }
        if !session_token.is_empty() {
            builder = builder.with_token(session_token);
        }
        let store = builder.build().map_err(|error| Trouble::lasting(format!("the bucket has no sound address: {error}")))?;
        Ok(Self { store: Arc::new(store), prefix: settings.prefix.clone() })
    }

    fn object(&self, key: &str) -> ObjectPath {
        let path = if self.prefix.is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) };
        // The name as it is, where that can be.
        ObjectPath::parse(&path).unwrap_or_else(|_| ObjectPath::from(path))
    }

    pub async fn fetch(&self, key: &str) -> Result<Option<File>, Trouble> {
        match self.store.get(&self.object(key)).await {
            Ok(found) => to_file(found.into_stream(), |error| trouble(&error)).await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(trouble(&error)),
        }
    }

    pub async fn save(&self, key: &str, archive: &NamedTempFile) -> Result<(), Trouble> {
        use tokio::io::AsyncWriteExt as _;
        let fault = |error: std::io::Error| Trouble::passing(format!("the archive could not be sent: {error}"));
        let mut from = tokio::fs::File::open(archive.path()).await.map_err(fault)?;
        // Large ones go in parts.
        let mut to = object_store::buffered::BufWriter::new(self.store.clone(), self.object(key));
        tokio::io::copy(&mut from, &mut to).await.map_err(fault)?;
        to.shutdown().await.map_err(fault)
    }
}

fn trouble(error: &object_store::Error) -> Trouble {
    use object_store::Error;
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Trouble::lasting("the bucket refused the credentials"),
        Error::NotFound { .. } => Trouble::lasting("there is no such bucket or object"),
        other => Trouble::passing(format!("the bucket did not answer as it should: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_gitlabs_runner_is_read() {
        let signed = Signed {
            url: "s3://caches/runner/abc/project/1/main?awssdk=v2&region=eu-west-1&endpoint=http%3A%2F%2F127.0.0.1%3A9000".into(),
            env: [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_SESSION_TOKEN", "c")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
            ..Signed::default()
        };
        let (settings, object) = BucketSettings::of_address(&signed).unwrap();
        assert_eq!(
            (settings.bucket.as_str(), object.as_str(), settings.region.as_str()),
            ("caches", "runner/abc/project/1/main", "eu-west-1")
        );
        assert_eq!((settings.endpoint.as_str(), settings.credentials.session_token.as_str()), ("http://127.0.0.1:9000", "c"));
        assert_eq!(format!("{settings:?}"), "Bucket(caches/)");
        assert!(BucketSettings::of_address(&Signed { url: "https://a/b".into(), ..Signed::default() }).is_none());
    }
}
