//! The plug itself: a group of equal instances, and the words for what goes through it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// What a call comes to.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// A group of equal instances: machines, containers, processes. Decides nothing about how many there should be.
///
/// `update` and `change` are never called while one of them runs; the others are, at any time. A call may be dropped before it is done.
pub trait InstanceGroup: Send + Sync {
    /// Takes up the group. Called before anything but `shutdown`, and again after the plugin was restarted.
    /// # Errors
    /// The configuration is wrong, or the group cannot be reached; the message says what to change.
    fn init<'a>(&'a self, config: &'a serde_json::Value, settings: &'a Settings) -> Answer<'a, ProviderInfo>;

    /// Every instance of the group: who is missing is gone.
    fn update(&self) -> Answer<'_, Vec<Instance>>;

    /// Asks for more or fewer instances, or to put some to sleep. Need not wait until that has happened: `update` shows it.
    /// # Errors
    /// Nothing was done. What was done in part is an answer.
    fn change(&self, change: Change) -> Answer<'_, Changed>;

    /// How to reach an instance, with credentials that work now.
    fn connect_info<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, ConnectInfo>;

    /// Whether an instance still does its work.
    /// # Errors
    /// It is not known; that says nothing about the instance.
    fn heartbeat<'a>(&'a self, instance: &'a InstanceId) -> Answer<'a, Health>;

    /// Releases what `init` made. The instances stay. Also called without `init`.
    fn shutdown(&self) -> Answer<'_, ()>;
}

/// The name of an instance, as its plugin gives it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub String);

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl From<&str> for InstanceId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl From<String> for InstanceId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

/// One line of a group's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    pub state: State,
}

/// What an instance is doing, as its plugin says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Creating,
    Running,
    Deleting,
    Deleted,
    /// The plugin has given it up; nobody needs to delete it.
    Timeout,
    Suspending,
    Suspended,
    Resuming,
    /// A number that is none of these. The instance is there, and its state is to be taken as unchanged.
    Unknown(i32),
}

impl fmt::Display for State {
    /// The name on the wire; a Go host shows the number of one that it does not know.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
            Self::Timeout => "timeout",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Resuming => "resuming",
            Self::Unknown(number) => return write!(formatter, "{number}"),
        };
        formatter.write_str(name)
    }
}

/// What should happen to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// So many more instances.
    Increase(u32),
    /// Removes these. One that is not there counts as removed.
    Decrease(Vec<InstanceId>),
    /// Stops these, and keeps what they hold. Only for groups with [`ProviderInfo::SUSPEND_RESUME`].
    Suspend(Vec<InstanceId>),
    Resume(Vec<InstanceId>),
}

impl Change {
    /// As the call is named on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Increase(_) => "Increase",
            Self::Decrease(_) => "Decrease",
            Self::Suspend(_) => "Suspend",
            Self::Resume(_) => "Resume",
        }
    }
}

/// How far a change came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// How many instances it was carried out for.
    pub count: u32,
    /// Which; empty after an increase, whose instances have no names yet.
    pub instances: Vec<InstanceId>,
    /// Why it was not all of them. `None`: it was, or nobody knows.
    pub trouble: Option<String>,
}

impl Changed {
    /// So many were asked for.
    pub fn count(count: u32) -> Self {
        Self { count, ..Self::default() }
    }

    /// It was done for these.
    pub fn instances(instances: Vec<InstanceId>) -> Self {
        Self { count: u32::try_from(instances.len()).unwrap_or(u32::MAX), instances, trouble: None }
    }

    /// But not for all.
    #[must_use]
    pub fn with_trouble(mut self, trouble: impl Into<String>) -> Self {
        self.trouble = Some(trouble.into());
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// The plugin says that the instance should be replaced.
    Unhealthy {
        reason: String,
    },
}

/// What a plugin says about its group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderInfo {
    /// The name of the group in logs, such as `aws/eu-west-1/group`. Two plugins may give the same one.
    pub id: String,
    /// How many instances there may be; zero is none.
    pub max_size: u32,
    /// May be empty.
    pub version: String,
    pub build_info: String,
    /// What it can beyond the calls of 2024.
    pub capabilities: Vec<String>,
}

impl ProviderInfo {
    pub const SUSPEND_RESUME: &'static str = "suspend_resume";

    /// Whether instances can be put to sleep.
    pub fn can_suspend(&self) -> bool {
        self.capabilities.iter().any(|capability| capability == Self::SUSPEND_RESUME)
    }
}

/// What the operator of a runner says about all instances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub connector: ConnectorConfig,
}

/// How instances are spoken to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectorConfig {
    /// As Go names systems, `linux`; plugins are loose with it, `Linux`, `ubuntu`. Ask [`ConnectorConfig::is_windows`].
    pub os: String,
    /// As Go names architectures, `amd64`.
    pub arch: String,
    /// One of [`protocol`], or what a plugin says. Empty: the default of the system.
    pub protocol: String,
    /// Zero: the default of the protocol.
    pub port: i64,
    pub username: String,
    pub password: Secret,
    /// A private key in PEM.
    pub key: Secret,
    /// The plugin makes no credentials; those given count.
    pub use_static_credentials: bool,
    /// Zero: the default, 30 s.
    pub keepalive: Duration,
    /// For connecting. Zero: the default, 10 min.
    pub timeout: Duration,
}

impl ConnectorConfig {
    pub fn is_windows(&self) -> bool {
        self.os.eq_ignore_ascii_case("windows")
    }
}

/// Protocols by which instances are reached.
pub mod protocol {
    pub const SSH: &str = "ssh";
    pub const WINRM: &str = "winrm";
    pub const WINRM_HTTPS: &str = "winrm+https";
    /// Ours: an agent already listens on the Unix socket whose path is the internal address. Nothing is injected, nobody logs in.
    pub const AGENT_SOCKET: &str = "step-runner+unix";
}

/// How to reach one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectInfo {
    pub id: InstanceId,
    pub connector: ConnectorConfig,
    /// Address or `address:port` as seen from elsewhere. May be empty.
    pub external_address: String,
    /// The same within the instance's own network.
    pub internal_address: String,
    /// When the credentials end, in seconds since 1970. `None`: they do not.
    pub expires: Option<i64>,
}

/// Something that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// For whoever logs in with it.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "(none)" } else { "(hidden)" })
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The plugin's own words.
    #[error("{message}")]
    Refused { message: String },
    /// The plugin is too old for this, or its kind of instance cannot do it. A Go host shows this text.
    #[error("capability not supported: {capability}")]
    NotSupported { capability: String },
    #[error("the plugin has not answered `{call}` within {limit:?}")]
    Late { call: &'static str, limit: Duration },
    /// An answer that cannot be.
    #[error("the plugin has answered `{call}` wrongly: {what}")]
    Wrong { call: &'static str, what: String },
    /// There is no plugin to answer. `again`: when it is started again.
    #[error("the plugin does not run: {reason}{}", again.map(|again| format!("; it is started again in {again:?}")).unwrap_or_default())]
    Gone { reason: String, again: Option<Duration> },
}

impl Failure {
    /// For plugins: what went wrong and the way out.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into() }
    }

    /// For plugins without the calls that came later.
    pub fn not_supported(capability: &str) -> Self {
        Self::NotSupported { capability: capability.to_owned() }
    }

    /// Whether it was the plugin that could not be reached; says nothing about the group or an instance.
    pub fn is_of_the_plug(&self) -> bool {
        matches!(self, Self::Late { .. } | Self::Gone { .. } | Self::Wrong { .. })
    }
}

/// What environment variables and tables look like everywhere here.
pub(crate) type Texts = BTreeMap<String, String>;
