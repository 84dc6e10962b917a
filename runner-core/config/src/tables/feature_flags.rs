//! The names that `feature_flags` may hold.

use super::Standing;

/// A switch of one runner, or of the whole process through its environment.
#[derive(Debug, Clone, Copy)]
pub struct FeatureFlag {
    pub name: &'static str,
    /// What counts when it is not given.
    pub is_on: bool,
    pub standing: Standing,
}

const fn on(name: &'static str, standing: Standing) -> FeatureFlag {
    FeatureFlag { name, is_on: true, standing }
}

const fn off(name: &'static str, standing: Standing) -> FeatureFlag {
    FeatureFlag { name, is_on: false, standing }
}

const HONOURED: Standing = Standing::Honoured;
const STEPS: Standing = Standing::Mapped("the checkout, cache and artifact steps");
const SCRIPT: Standing = Standing::Mapped("the script step");
const DOCKER: Standing = Standing::Mapped("the docker step");
const KUBERNETES: Standing = Standing::NotYet("there is no plugin `kubernetes` yet");
const ROUTER: Standing = Standing::NotYet("jobs are taken from the server itself, not from a job router");
const SUSPEND: Standing = Standing::NotYet("environments are not suspended yet");
const JOBS_ARE_STEPS: Standing = Standing::WithoutEffect("every job is carried out as steps");
const OURS: Standing = Standing::WithoutEffect("it chooses an older way of GitLab's program that does not exist here");

pub static FEATURE_FLAGS: &[FeatureFlag] = &[
    on("FF_TIMESTAMPS", HONOURED),
    on("FF_MASK_ALL_DEFAULT_TOKENS", HONOURED),
    on("FF_USE_ADAPTIVE_REQUEST_CONCURRENCY", HONOURED),
    on("FF_ENABLE_JOB_INPUTS_INTERPOLATION", HONOURED),
    on("FF_SECRET_RESOLVING_FAILS_IF_MISSING", HONOURED),
    off("FF_USE_JOB_ROUTER", ROUTER),
    off("FF_USE_DYNAMIC_TRACE_FORCE_SEND_INTERVAL", HONOURED),
    off("FF_USE_FLEETING_ACQUIRE_HEARTBEATS", HONOURED),
    off("FF_DISABLE_AUTOMATIC_TOKEN_ROTATION", HONOURED),
    off("FF_EXPORT_HIGH_CARDINALITY_METRICS", HONOURED),
    off("FF_SUSPENDABLE_ENVIRONMENTS", SUSPEND),
    off("FF_HASH_CACHE_KEYS", HONOURED),
    off("FF_LOG_IMAGES_CONFIGURED_FOR_JOB", HONOURED),
    off("FF_RESOLVE_FULL_TLS_CHAIN", HONOURED),
    on("FF_USE_DIRECT_DOWNLOAD", STEPS),
    on("FF_USE_FASTZIP", STEPS),
    on("FF_USE_GIT_BUNDLE_URIS", STEPS),
    on("FF_USE_GITALY_CORRELATION_ID", STEPS),
    on("FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY", STEPS),
    off("FF_USE_PARALLEL_ARTIFACT_TRANSFER", STEPS),
    off("FF_USE_PARALLEL_CACHE_TRANSFER", STEPS),
    off("FF_CLEAN_UP_FAILED_CACHE_EXTRACT", STEPS),
    off("FF_USE_GIT_NATIVE_CLONE", STEPS),
    off("FF_USE_GIT_PROACTIVE_AUTH", STEPS),
    off("FF_GIT_URLS_WITHOUT_TOKENS", STEPS),
    off("FF_ENABLE_JOB_CLEANUP", STEPS),
    off("FF_ENABLE_BASH_EXIT_CODE_CHECK", SCRIPT),
    off("FF_SCRIPT_SECTIONS", SCRIPT),
    off("FF_USE_LEGACY_BASH_EVAL", SCRIPT),
    off("FF_POSIXLY_CORRECT_ESCAPES", SCRIPT),
    off("FF_DISABLE_POWERSHELL_STDIN", SCRIPT),
    off("FF_USE_POWERSHELL_PATH_RESOLVER", SCRIPT),
    off("FF_NETWORK_PER_BUILD", DOCKER),
    off("FF_USE_INIT_WITH_DOCKER_EXECUTOR", DOCKER),
    off("FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR", DOCKER),
    off("FF_USE_NATIVE_CONTAINER_STOP", DOCKER),
    on("FF_USE_DOCKER_AUTOSCALER_DIAL_STDIO", DOCKER),
    on("FF_USE_POD_ACTIVE_DEADLINE_SECONDS", KUBERNETES),
    off("FF_USE_ADVANCED_POD_SPEC_CONFIGURATION", KUBERNETES),
    off("FF_PRINT_POD_EVENTS", KUBERNETES),
    off("FF_WAIT_FOR_POD_TO_BE_REACHABLE", KUBERNETES),
    off("FF_KUBERNETES_HONOR_ENTRYPOINT", KUBERNETES),
    off("FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR", KUBERNETES),
    off("FF_USE_DUMB_INIT_WITH_KUBERNETES_EXECUTOR", KUBERNETES),
    off("FF_CONCRETE", JOBS_ARE_STEPS),
    off("FF_SCRIPT_TO_STEP_MIGRATION", JOBS_ARE_STEPS),
    off("FF_USE_NATIVE_STEPS", JOBS_ARE_STEPS),
    off("FF_USE_LEGACY_KUBERNETES_EXECUTION_STRATEGY", OURS),
    off("FF_USE_LEGACY_S3_CACHE_ADAPTER", OURS),
    off("FF_USE_LEGACY_GCS_CACHE_ADAPTER", OURS),
    off("FF_USE_WINDOWS_LEGACY_PROCESS_STRATEGY", OURS),
    off("FF_USE_WINDOWS_JOB_OBJECT", OURS),
];
