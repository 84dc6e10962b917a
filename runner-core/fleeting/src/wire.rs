//! Messages and nouns: one becomes the other.

use crate::instance_group::{
    Changed, ConnectInfo, ConnectorConfig, Failure, Health, Instance, InstanceId, ProviderInfo, Secret, Settings, State,
};
use ci_proto::fleeting::instance_group as message;
use prost::Message as _;
use std::time::Duration;
use tonic::{Code, Status};

pub use message::update_response::State as WireState;

/// Of messages in both directions; a Go host and a Go plugin take what fits into an int.
pub const LARGEST_MESSAGE: usize = (1 << 31) - 1;
/// What [`ProviderInfo::max_size`] is at most and, on the plugin's side, at least.
const SIZES: std::ops::RangeInclusive<u32> = 1..=u32::MAX;
const SUSPEND_REPLY: &str = "type.googleapis.com/proto.SuspendResponse";
const RESUME_REPLY: &str = "type.googleapis.com/proto.ResumeResponse";

/// `google.rpc.Status`, of which only the details matter here.
#[derive(Clone, PartialEq, prost::Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// A Go plugin dies when one of the two is absent.
pub fn settings_out(settings: &Settings) -> message::Settings {
    message::Settings { connector_config: Some(connector_out(&settings.connector)) }
}

pub fn settings_in(settings: Option<message::Settings>) -> Settings {
    let connector = settings.and_then(|settings| settings.connector_config).map(connector_in);
    Settings { connector: connector.unwrap_or_default() }
}

fn connector_out(connector: &ConnectorConfig) -> message::ConnectorConfig {
    message::ConnectorConfig {
        os: connector.os.clone(),
        arch: connector.arch.clone(),
        protocol: connector.protocol.clone(),
        username: connector.username.clone(),
        password: String::from_utf8_lossy(connector.password.reveal()).into_owned(),
        key: connector.key.reveal().to_vec(),
        use_static_credentials: connector.use_static_credentials,
        keepalive: nanoseconds(connector.keepalive),
        timeout: nanoseconds(connector.timeout),
        protocol_port: connector.port,
    }
}

fn connector_in(connector: message::ConnectorConfig) -> ConnectorConfig {
    ConnectorConfig {
        os: connector.os,
        arch: connector.arch,
        protocol: connector.protocol,
        port: connector.protocol_port,
        username: connector.username,
        password: Secret::new(connector.password),
        key: Secret::new(connector.key),
        use_static_credentials: connector.use_static_credentials,
        keepalive: duration(connector.keepalive),
        timeout: duration(connector.timeout),
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Less than none is none.
fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

pub fn provider_in(info: message::InitResponse) -> ProviderInfo {
    ProviderInfo {
        id: info.id,
        max_size: info.max_size,
        version: info.version,
        build_info: info.build_info,
        capabilities: info.capabilities,
    }
}

pub fn provider_out(info: ProviderInfo) -> message::InitResponse {
    message::InitResponse {
        id: info.id,
        // A Go host takes zero as "none at all", which no plugin means.
        max_size: info.max_size.clamp(*SIZES.start(), *SIZES.end()),
        version: info.version,
        build_info: info.build_info,
        capabilities: info.capabilities,
    }
}

pub fn instance_in(instance: message::UpdateResponse) -> Instance {
    let state = match WireState::try_from(instance.state) {
        Ok(WireState::Creating) => State::Creating,
        Ok(WireState::Running) => State::Running,
        Ok(WireState::Deleting) => State::Deleting,
        Ok(WireState::Deleted) => State::Deleted,
        Ok(WireState::Timeout) => State::Timeout,
        Ok(WireState::Suspending) => State::Suspending,
        Ok(WireState::Suspended) => State::Suspended,
        Ok(WireState::Resuming) => State::Resuming,
        Err(_) => State::Unknown(instance.state),
    };
    Instance { id: InstanceId(instance.instance), state }
}

pub fn instance_out(instance: Instance) -> message::UpdateResponse {
    let state = match instance.state {
        State::Creating => WireState::Creating as i32,
        State::Running => WireState::Running as i32,
        State::Deleting => WireState::Deleting as i32,
        State::Deleted => WireState::Deleted as i32,
        State::Timeout => WireState::Timeout as i32,
        State::Suspending => WireState::Suspending as i32,
        State::Suspended => WireState::Suspended as i32,
        State::Resuming => WireState::Resuming as i32,
        State::Unknown(number) => number,
    };
    message::UpdateResponse { instance: instance.id.0, state }
}

/// The id is not on the wire: it is the one that was asked for.
/// # Errors
/// The connector is missing, over which a Go host dies.
pub fn connect_info_in(id: &InstanceId, info: message::ConnectInfoResponse) -> Result<ConnectInfo, Failure> {
    let missing = || Failure::Wrong { call: "ConnectInfo", what: "the connector is missing".to_owned() };
    Ok(ConnectInfo {
        id: id.clone(),
        connector: connector_in(info.connector.ok_or_else(missing)?),
        external_address: info.external_addr,
        internal_address: info.internal_addr,
        expires: Some(info.expires).filter(|expires| *expires > 0),
    })
}

pub fn connect_info_out(info: &ConnectInfo) -> message::ConnectInfoResponse {
    message::ConnectInfoResponse {
        connector: Some(connector_out(&info.connector)),
        external_addr: info.external_address.clone(),
        internal_addr: info.internal_address.clone(),
        expires: info.expires.unwrap_or_default(),
    }
}

pub fn ids_out(ids: &[InstanceId]) -> Vec<String> {
    ids.iter().map(|id| id.0.clone()).collect()
}

pub fn ids_in(ids: Vec<String>) -> Vec<InstanceId> {
    ids.into_iter().map(InstanceId).collect()
}

/// What the host makes of a status (observed F.6.3). `limit`: what the call was given.
pub fn failure_in(call: &'static str, status: &Status, limit: Duration) -> Failure {
    let message = || status.message().to_owned();
    match status.code() {
        Code::Unimplemented => Failure::NotSupported { capability: missing_capability(call).to_owned() },
        Code::DeadlineExceeded => Failure::Late { call, limit },
        Code::Unavailable | Code::Cancelled => Failure::Gone { reason: message(), again: None },
        Code::Internal | Code::OutOfRange | Code::DataLoss => Failure::Wrong { call, what: message() },
        _ => Failure::Refused { message: message() },
    }
}

fn missing_capability(call: &'static str) -> &'static str {
    match call {
        "Suspend" | "Resume" => ProviderInfo::SUSPEND_RESUME,
        other => other,
    }
}

/// A plugin from before heartbeats has healthy instances.
/// # Errors
/// It was the plugin that could not be reached, which says nothing about the instance.
pub fn health_in(answer: Result<(), Failure>) -> Result<Health, Failure> {
    match answer {
        Ok(()) | Err(Failure::NotSupported { .. }) => Ok(Health::Healthy),
        Err(Failure::Refused { message }) => Ok(Health::Unhealthy { reason: message }),
        Err(failure) => Err(failure),
    }
}

/// What a suspend or resume did before it failed travels beside the status. `None`: nothing does.
pub fn partial_in(status: &Status) -> Option<Changed> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let detail = rich.details.iter().find(|detail| detail.type_url == SUSPEND_REPLY || detail.type_url == RESUME_REPLY)?;
    // The two messages are the same but for their names.
    let reply = message::SuspendResponse::decode(detail.value.as_slice()).ok()?;
    Some(Changed::instances(ids_in(reply.succeeded)).with_trouble(status.message()))
}

/// A suspend or resume that was carried out in part.
pub fn partial_out(resume: bool, done: &[InstanceId], trouble: String) -> Status {
    let value = message::SuspendResponse { succeeded: ids_out(done) }.encode_to_vec();
    let type_url = if resume { RESUME_REPLY } else { SUSPEND_REPLY }.to_owned();
    let rich = RichStatus { code: Code::Unknown as i32, message: trouble.clone(), details: vec![Detail { type_url, value }] };
    Status::with_details(Code::Unknown, trouble, rich.encode_to_vec().into())
}

/// As a Go plugin says it (observed F.5): its text, and no kind.
pub fn failure_out(call: &'static str, failure: &Failure) -> Status {
    match failure {
        Failure::NotSupported { .. } => Status::unimplemented(format!("unknown method {call} for service proto.InstanceGroup")),
        Failure::Late { .. } => Status::deadline_exceeded(failure.to_string()),
        _ => Status::unknown(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &impl prost::Message) -> String {
        message.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn connector() -> ConnectorConfig {
        ConnectorConfig {
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
            protocol: "ssh".to_owned(),
            port: 22,
            username: "u".to_owned(),
            password: Secret::new("p"),
            key: Secret::new("KEY"),
            use_static_credentials: true,
            keepalive: Duration::from_secs(30),
            timeout: Duration::from_secs(600),
        }
    }

    /// What was seen on the wire between Go programs (observed F.4.1).
    const CONNECTOR: &str = "0a2f0a056c696e75781205616d6436341a037373682201752a017032034b455938014080d88ee16f4880e0a596bb115016";

    #[test]
    fn settings_are_written_byte_for_byte_as_a_go_host_does() {
        assert_eq!(hex(&settings_out(&Settings { connector: connector() })), CONNECTOR);
        assert_eq!(hex(&settings_out(&Settings::default())), "0a00", "never absent");
        let decoded = message::Settings::decode(bytes(CONNECTOR).as_slice()).unwrap();
        assert_eq!(settings_in(Some(decoded)), Settings { connector: connector() });
        assert_eq!(settings_in(None), Settings::default());
    }

    #[test]
    fn connect_info_is_read_and_written_as_go_programs_do() {
        let wire = format!("{CONNECTOR}120b3230332e302e3131332e371a0d31302e302e302e373a3232323220a5aaf58607");
        let info = connect_info_in(&"s-1".into(), message::ConnectInfoResponse::decode(bytes(&wire).as_slice()).unwrap()).unwrap();
        assert_eq!((info.external_address.as_str(), info.internal_address.as_str()), ("203.0.113.7", "10.0.0.7:2222"));
        assert_eq!((info.expires, &info.id, &info.connector), (Some(1_893_553_445), &InstanceId::from("s-1"), &connector()));
        assert_eq!(hex(&connect_info_out(&info)), wire);
        let missing = connect_info_in(&"s-1".into(), message::ConnectInfoResponse::default()).unwrap_err();
        assert_eq!(missing.to_string(), "the plugin has answered `ConnectInfo` wrongly: the connector is missing");
    }

    #[test]
    fn states_are_numbers_and_an_unknown_one_is_kept() {
        let read = |hex: &str| instance_in(message::UpdateResponse::decode(bytes(hex).as_slice()).unwrap());
        let states = ["0a03692d301001", "0a03732d311006", "0a0161"].map(|hex| read(hex).state);
        assert_eq!(states, [State::Running, State::Suspended, State::Creating]);
        let unknown = read("0a01611063");
        assert_eq!((unknown.state, unknown.state.to_string().as_str()), (State::Unknown(99), "99"));
        for seen in ["0a03692d301001", "0a03732d311006", "0a0161", "0a01611063"] {
            assert_eq!(hex(&instance_out(read(seen))), seen);
        }
    }

    #[test]
    fn a_plugin_never_says_that_there_may_be_no_instances() {
        let out = provider_out(ProviderInfo { id: "grp/1".to_owned(), ..ProviderInfo::default() });
        assert_eq!(out.max_size, 1);
    }

    #[test]
    fn flh_40_an_instance_of_a_plugin_without_heartbeats_is_healthy() {
        let heard = |status: Status| health_in(Err(failure_in("Heartbeat", &status, Duration::from_secs(1))));
        let old = Status::unimplemented("unknown method Heartbeat for service proto.InstanceGroup");
        assert_eq!(heard(old), Ok(Health::Healthy));
        assert_eq!(heard(Status::unknown("no")), Ok(Health::Unhealthy { reason: "no".to_owned() }));
        assert!(heard(Status::deadline_exceeded("")).is_err(), "nothing is known");
    }

    #[test]
    fn what_a_suspend_did_before_it_failed_travels_beside_the_status() {
        let status = partial_out(false, &["a".into()], "half".to_owned());
        let rich = RichStatus::decode(status.details()).unwrap();
        assert_eq!((rich.details[0].type_url.as_str(), rich.details[0].value.as_slice()), (SUSPEND_REPLY, bytes("0a0161").as_slice()));
        assert_eq!(partial_in(&status), Some(Changed::instances(vec!["a".into()]).with_trouble("half")));
        assert_eq!(partial_in(&Status::unknown("nothing")), None);
    }
}
