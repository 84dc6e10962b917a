//! The keys of `[runners.cache]`.

use super::{Kind, Standing, Table, key};

const STEP: Standing = Standing::Honoured;
const ROLES: &str = "with it caches stay on their instances";
const OTHER_STORE: Standing = Standing::NotYet("caches stay on their instances");

pub(super) static CACHE: Table = Table {
    name: "runners.cache",
    is_list: false,
    about: "Where caches are shared between machines. The manager signs; an environment gets addresses and short-lived credentials only.",
    standing: STEP,
    keys: &[
        key("Type", Kind::OneOf(&["s3", "s3v2", "gcs", "gcsv2", "azure"]), "kind of store").unset("caches stay on their machine"),
        key("Path", Kind::Text, "begins the path of every object"),
        key("Shared", Kind::Flag, "leaves the runner out of the path").default("false"),
        key("MaxUploadedArchiveSize", Kind::Whole, "largest archive in bytes; 0 for any size").default("0"),
        key("s3", Kind::Table(&S3), "a store of S3's kind"),
        key("gcs", Kind::Table(&GCS), "Google Cloud Storage"),
        key("azure", Kind::Table(&AZURE), "Azure Blob Storage"),
    ],
};

static S3: Table = Table {
    name: "runners.cache.s3",
    is_list: false,
    about: "A store of S3's kind.",
    standing: STEP,
    keys: &[
        key("ServerAddress", Kind::Address, "`host:port` of the server").unset("AWS"),
        key("AccessKey", Kind::Secret, "the manager's access key"),
        key("SecretKey", Kind::Secret, "the manager's secret key"),
        key("SessionToken", Kind::Secret, "token of a session"),
        key("BucketName", Kind::Text, "bucket"),
        key("BucketLocation", Kind::Text, "region"),
        key("Insecure", Kind::Flag, "plain HTTP").default("false"),
        key(
            "AuthenticationType",
            Kind::OneOf(&["iam", "access-key"]),
            "which credentials sign; with `iam` the instance opens the bucket itself, by its own identity",
        )
        .unset("`access-key` if address and both keys are given, else `iam`"),
        key("ServerSideEncryption", Kind::OneOf(&["S3", "AES256", "KMS", "aws:kms", "DSSE-KMS", "aws:kms:dsse"]), "how the store encrypts"),
        key("ServerSideEncryptionKeyID", Kind::Text, "key id, alias or ARN"),
        key("DualStack", Kind::Flag, "endpoints for IPv4 and IPv6").default("true"),
        key("PathStyle", Kind::Flag, "the bucket stands in the path").unset("as the endpoint needs it"),
        key("Accelerate", Kind::Flag, "transfer acceleration").default("false"),
        key("RoleARN", Kind::Text, "role that is assumed for each object").not_yet(ROLES),
        key("UploadRoleARN", Kind::Text, "role for uploads only; deprecated, `RoleARN` takes its place").not_yet(ROLES),
        key("AssumeRoleMaxConcurrency", Kind::Whole, "such requests at once; -1 for any number").default("5").not_yet(ROLES),
        key("DisableAssumeRoleCredentialsCaching", Kind::Flag, "asks for each object anew").default("false").not_yet(ROLES),
    ],
};

static GCS: Table = Table {
    name: "runners.cache.gcs",
    is_list: false,
    about: "Google Cloud Storage.",
    standing: OTHER_STORE,
    keys: &[
        key("CredentialsFile", Kind::Text, "JSON file of a service account; wins over the next two"),
        key("AccessID", Kind::Text, "account that signs"),
        key("PrivateKey", Kind::Secret, "its key"),
        key("BucketName", Kind::Text, "bucket"),
        key("UniverseDomain", Kind::Text, "domain of the cloud").default("googleapis.com"),
    ],
};

static AZURE: Table = Table {
    name: "runners.cache.azure",
    is_list: false,
    about: "Azure Blob Storage.",
    standing: OTHER_STORE,
    keys: &[
        key("AccountName", Kind::Text, "storage account"),
        key("AccountKey", Kind::Secret, "its key").unset("an identity of the cloud"),
        key("ContainerName", Kind::Text, "container"),
        key("StorageDomain", Kind::Text, "domain of the store").default("blob.core.windows.net"),
    ],
};
