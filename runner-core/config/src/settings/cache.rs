//! Settings of `[runners.cache]`.

use crate::checked::Checked;
use crate::gather::Gather;
use crate::secret::Secret;

/// Where caches are shared between machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    pub store: CacheStore,
    /// Begins the path of every object. Empty: nothing does.
    pub path: String,
    /// Leaves the runner out of the path.
    pub shared: bool,
    /// Largest archive in bytes. `None`: any size.
    pub max_uploaded_archive_size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CacheStore {
    S3(Box<S3>),
    Gcs(Gcs),
    Azure(Azure),
}

#[derive(Debug, Clone, PartialEq)]
pub struct S3 {
    /// `host:port`. `None`: AWS.
    pub server_address: Option<String>,
    pub access_key: Option<Secret>,
    pub secret_key: Option<Secret>,
    pub session_token: Option<Secret>,
    pub bucket_name: String,
    pub bucket_location: Option<String>,
    /// Plain HTTP.
    pub insecure: bool,
    pub authentication: S3Authentication,
    pub server_side_encryption: Option<ServerSideEncryption>,
    pub server_side_encryption_key_id: Option<String>,
    pub dual_stack: bool,
    /// `None`: as the endpoint needs it.
    pub path_style: Option<bool>,
    pub accelerate: bool,
    pub role_arn: Option<String>,
    pub upload_role_arn: Option<String>,
    /// `None`: any number.
    pub assume_role_max_concurrency: Option<u64>,
    pub disable_assume_role_credentials_caching: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Authentication {
    /// The identity of the machine.
    Iam,
    /// The keys that stand in the file.
    AccessKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSideEncryption {
    Aes256,
    Kms,
    DsseKms,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Gcs {
    pub credentials_file: Option<String>,
    pub access_id: Option<String>,
    pub private_key: Option<Secret>,
    pub bucket_name: String,
    pub universe_domain: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Azure {
    pub account_name: Option<String>,
    /// `None`: an identity of the cloud.
    pub account_key: Option<Secret>,
    pub container_name: String,
    pub storage_domain: String,
}

/// `None`: no store, so caches stay on their machine. A store that cannot be used is none, as in GitLab's runner, and said.
pub(super) fn of(table: &Checked, gather: &mut Gather<'_>) -> Option<Cache> {
    let kind = table.text("Type")?;
    let (key, name) = match kind.as_str() {
        "gcs" | "gcsv2" => ("gcs", "BucketName"),
        "azure" => ("azure", "ContainerName"),
        _ => ("s3", "BucketName"),
    };
    let store = table.table(key);
    let Some(bucket) = store.text(name) else {
        let message = format!("caches stay on their machine, since `[runners.cache.{key}]` has no `{name}`");
        gather.warn(
            "no-bucket",
            message,
            Some(if store.span.is_empty() { table.place("Type") } else { store.span.clone() }),
            format!("add `{name}`"),
        );
        return None;
    };
    let store = match key {
        "gcs" => CacheStore::Gcs(gcs(&store, bucket)),
        "azure" => CacheStore::Azure(azure(&store, bucket)),
        _ => CacheStore::S3(Box::new(s3(&store, bucket, gather))),
    };
    Some(Cache {
        store,
        path: table.text("Path").unwrap_or_default(),
        shared: table.flag("Shared"),
        max_uploaded_archive_size: table.limit("MaxUploadedArchiveSize"),
    })
}

fn s3(table: &Checked, bucket_name: String, gather: &mut Gather<'_>) -> S3 {
    let (server_address, access_key, secret_key) = (table.text("ServerAddress"), table.secret("AccessKey"), table.secret("SecretKey"));
    let has_keys = server_address.is_some() && access_key.is_some() && secret_key.is_some();
    let authentication = match table.text("AuthenticationType").as_deref() {
        Some("access-key") => S3Authentication::AccessKey,
        None if has_keys => S3Authentication::AccessKey,
        _ => S3Authentication::Iam,
    };
    if table.is_given("UploadRoleARN") {
        gather.note("old-name", "`UploadRoleARN` is deprecated", Some(table.place("UploadRoleARN")), "write `RoleARN`");
    }
    let is_kms =
        |encryption: &Option<ServerSideEncryption>| encryption.is_some_and(|encryption| encryption != ServerSideEncryption::Aes256);
    let server_side_encryption = table.text("ServerSideEncryption").map(|text| encryption(&text));
    let server_side_encryption_key_id = table.text("ServerSideEncryptionKeyID");
    if is_kms(&server_side_encryption) && server_side_encryption_key_id.is_none() {
        let message = "`ServerSideEncryption` by KMS uses the bucket's own key, since there is no `ServerSideEncryptionKeyID`";
        gather.note("no-key-id", message, Some(table.place("ServerSideEncryption")), "");
    }
    S3 {
        server_address,
        access_key,
        secret_key,
        session_token: table.secret("SessionToken"),
        bucket_name,
        bucket_location: table.text("BucketLocation"),
        insecure: table.flag("Insecure"),
        authentication,
        server_side_encryption,
        server_side_encryption_key_id,
        dual_stack: table.flag("DualStack"),
        path_style: table.flag_given("PathStyle"),
        accelerate: table.flag("Accelerate"),
        role_arn: table.text("RoleARN"),
        upload_role_arn: table.text("UploadRoleARN"),
        assume_role_max_concurrency: u64::try_from(table.whole("AssumeRoleMaxConcurrency")).ok(),
        disable_assume_role_credentials_caching: table.flag("DisableAssumeRoleCredentialsCaching"),
    }
}

fn encryption(text: &str) -> ServerSideEncryption {
    match text {
        "KMS" | "aws:kms" => ServerSideEncryption::Kms,
        "DSSE-KMS" | "aws:kms:dsse" => ServerSideEncryption::DsseKms,
        _ => ServerSideEncryption::Aes256,
    }
}

fn gcs(table: &Checked, bucket_name: String) -> Gcs {
    Gcs {
        credentials_file: table.text("CredentialsFile"),
        access_id: table.text("AccessID"),
        private_key: table.secret("PrivateKey"),
        bucket_name,
        universe_domain: table.text("UniverseDomain").unwrap_or_default(),
    }
}

fn azure(table: &Checked, container_name: String) -> Azure {
    Azure {
        account_name: table.text("AccountName"),
        account_key: table.secret("AccountKey"),
        container_name,
        storage_domain: table.text("StorageDomain").unwrap_or_default(),
    }
}
