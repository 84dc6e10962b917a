//! The bodies that are sent, as values. Tokens stand in them where the API asks for that, so they have no `Debug`.

use crate::{RunnerInfo, SystemId, Token};
use serde::{Serialize, Serializer};
use std::fmt;

/// `POST jobs/request`.
#[derive(Serialize)]
pub struct JobRequest<'a> {
    pub info: &'a RunnerInfo,
    #[serde(serialize_with = "exposed")]
    pub token: &'a Token,
    #[serde(serialize_with = "system")]
    pub system_id: &'a SystemId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a Session>,
}

/// Where people reach a job while it runs.
#[derive(Clone, Serialize)]
pub struct Session {
    pub url: String,
    /// The certificate of the session server, in PEM.
    pub certificate: String,
    pub authorization: String,
}

/// What the runner says of a job in `PUT jobs/:id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub state: JobState,
    /// What the trace is so far. `None` before there is one.
    pub trace: Option<TraceDigest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// An environment is being made. Only before `Running`.
    Pending,
    Running,
    Finished(Finished),
}

/// How a job ended. A cancelled job has failed, with its reason: GitLab makes `canceled` of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The reason, as it is sent. `None`: the job succeeded.
    pub failure: Option<String>,
    /// Of the script. Zero is not sent.
    pub exit_code: i32,
    /// For a later job that resumes the environment.
    pub environment: Option<String>,
}

impl Finished {
    pub const fn success() -> Self {
        Self { failure: None, exit_code: 0, environment: None }
    }

    pub fn failure(reason: impl Into<String>, exit_code: i32) -> Self {
        Self { failure: Some(reason.into()), exit_code, environment: None }
    }
}

/// Length and checksum of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceDigest {
    pub bytes: u64,
    /// CRC-32 as of IEEE 802.3.
    pub crc: u32,
}

impl fmt::Display for TraceDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crc32:{:08x}", self.crc)
    }
}

#[derive(Serialize)]
pub(crate) struct UpdateBody<'a> {
    info: &'a RunnerInfo,
    #[serde(serialize_with = "exposed")]
    token: &'a Token,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<OutputBody>,
    #[serde(skip_serializing_if = "is_zero")]
    exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_environment_key: Option<&'a str>,
}

#[derive(Serialize)]
struct OutputBody {
    checksum: String,
    bytesize: u64,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl<'a> UpdateBody<'a> {
    pub fn new(info: &'a RunnerInfo, token: &'a Token, update: &'a Update) -> Self {
        let finished = match &update.state {
            JobState::Finished(finished) => Some(finished),
            JobState::Pending | JobState::Running => None,
        };
        Self {
            info,
            token,
            state: match &update.state {
                JobState::Pending => "pending",
                JobState::Running => "running",
                JobState::Finished(Finished { failure: None, .. }) => "success",
                JobState::Finished(_) => "failed",
            },
            failure_reason: finished.and_then(|finished| finished.failure.as_deref()),
            checksum: update.trace.map(|trace| trace.to_string()),
            output: update.trace.map(|trace| OutputBody { checksum: trace.to_string(), bytesize: trace.bytes }),
            exit_code: finished.map_or(0, |finished| finished.exit_code),
            runtime_environment_key: finished.and_then(|finished| finished.environment.as_deref()).filter(|key| !key.is_empty()),
        }
    }
}

/// What a runner is told at its birth. A runner that was created in the interface has all this on the server already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunnerOptions {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maintenance_note: String,
    /// Comma separated.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag_list: String,
    pub run_untagged: bool,
    pub locked: bool,
    /// `not_protected` or `ref_protected`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub access_level: String,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_timeout: Option<u64>,
    pub paused: bool,
}

/// Who may use a runner that a user creates (`POST user/runners`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "runner_type")]
pub enum RunnerScope {
    #[serde(rename = "instance_type")]
    Instance,
    #[serde(rename = "group_type")]
    Group { group_id: u64 },
    #[serde(rename = "project_type")]
    Project { project_id: u64 },
}

#[derive(Serialize)]
pub(crate) struct CreateBody<'a> {
    #[serde(flatten)]
    pub scope: &'a RunnerScope,
    #[serde(flatten)]
    pub options: &'a RunnerOptions,
}

#[derive(Serialize)]
pub(crate) struct RegisterBody<'a> {
    pub info: &'a RunnerInfo,
    #[serde(serialize_with = "exposed")]
    pub token: &'a Token,
    #[serde(flatten)]
    pub options: &'a RunnerOptions,
}

#[derive(Serialize)]
pub(crate) struct VerifyBody<'a> {
    pub info: &'a RunnerInfo,
    #[serde(serialize_with = "exposed")]
    pub token: &'a Token,
    #[serde(serialize_with = "system")]
    pub system_id: &'a SystemId,
}

#[derive(Serialize)]
pub(crate) struct TokenBody<'a> {
    #[serde(serialize_with = "exposed")]
    pub token: &'a Token,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_id: Option<&'a str>,
}

fn exposed<S: Serializer>(token: &&Token, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.expose())
}

fn system<S: Serializer>(id: &&SystemId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sent(body: &impl Serialize) -> Value {
        serde_json::to_value(body).expect("JSON")
    }

    fn info() -> RunnerInfo {
        RunnerInfo::of_this_program("instance", "bash")
    }

    fn update(update: &Update) -> Value {
        let mut body = sent(&UpdateBody::new(&info(), &Token::new("job-token"), update));
        body.as_object_mut().expect("an object").remove("info");
        body
    }

    #[test]
    fn runner_17_the_first_request_has_no_last_update() {
        let (info, token, system_id) = (info(), Token::new("glrt-x"), SystemId::parse("s_0123456789ab").expect("an id"));
        let body = sent(&JobRequest { info: &info, token: &token, system_id: &system_id, last_update: None, session: None });
        assert_eq!(body.as_object().expect("an object").keys().collect::<Vec<_>>(), ["info", "system_id", "token"]);
        let body = sent(&JobRequest {
            info: &info,
            token: &token,
            system_id: &system_id,
            last_update: Some("a nice timestamp".to_owned()),
            session: None,
        });
        assert_eq!(body["last_update"], "a nice timestamp");
    }

    #[test]
    fn runner_24_all_bodies_say_what_the_runner_can_do() {
        let (info, token, system_id) = (info(), Token::new("t"), SystemId::parse("s_0123456789ab").expect("an id"));
        let options = RunnerOptions::default();
        for body in [
            sent(&JobRequest { info: &info, token: &token, system_id: &system_id, last_update: None, session: None }),
            sent(&RegisterBody { info: &info, token: &token, options: &options }),
            sent(&VerifyBody { info: &info, token: &token, system_id: &system_id }),
            sent(&UpdateBody::new(&info, &token, &Update { state: JobState::Running, trace: None })),
        ] {
            assert_eq!(
                (&body["info"]["features"]["two_phase_job_commit"], &body["info"]["features"]["job_inputs"]),
                (&json!(true), &json!(true))
            );
            assert_eq!(body["token"], "t");
        }
    }

    #[test]
    fn runner_98_the_environment_is_sent_at_the_end_where_there_is_one() {
        let finished = |environment: Option<&str>| Update {
            state: JobState::Finished(Finished { environment: environment.map(str::to_owned), ..Finished::success() }),
            trace: None,
        };
        assert_eq!(
            update(&finished(Some("1/s_0123456789ab/e"))),
            json!({"token": "job-token", "state": "success", "runtime_environment_key": "1/s_0123456789ab/e"})
        );
        assert_eq!(update(&finished(Some(""))), json!({"token": "job-token", "state": "success"}));
        assert_eq!(update(&finished(None)), json!({"token": "job-token", "state": "success"}));
    }

    #[test]
    fn an_update_carries_the_trace_and_only_an_exit_code_that_is_none_of_success() {
        let trace = Some(TraceDigest { bytes: 24, crc: 0x367d_feeb });
        let failed = Update { state: JobState::Finished(Finished::failure("script_failure", 3)), trace };
        assert_eq!(
            update(&failed),
            json!({"token": "job-token", "state": "failed", "failure_reason": "script_failure", "exit_code": 3,
                   "checksum": "crc32:367dfeeb", "output": {"checksum": "crc32:367dfeeb", "bytesize": 24}})
        );
        assert_eq!(update(&Update { state: JobState::Running, trace: None }), json!({"token": "job-token", "state": "running"}));
        assert_eq!(update(&Update { state: JobState::Pending, trace: None })["state"], "pending");
    }

    #[test]
    fn a_runner_of_a_user_belongs_to_an_instance_a_group_or_a_project() {
        let options = RunnerOptions { tag_list: "a,b".to_owned(), ..RunnerOptions::default() };
        let body = |scope| sent(&CreateBody { scope: &scope, options: &options });
        assert_eq!(
            body(RunnerScope::Group { group_id: 7 }),
            json!({"runner_type": "group_type", "group_id": 7, "tag_list": "a,b", "run_untagged": false, "locked": false, "paused": false})
        );
        assert_eq!(body(RunnerScope::Instance)["runner_type"], "instance_type");
        assert_eq!(body(RunnerScope::Project { project_id: 3 })["project_id"], 3);
    }
}
