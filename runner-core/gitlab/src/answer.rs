//! What a server answered, as a value: status, the headers that mean something, the body. What it means is decided in the modules below.

mod account;
mod patch;
mod poll;
mod update;

pub use account::{Account, NoAccount, Removal, Verified, registered, removed, reset, verified};
pub use patch::{PatchOutcome, Patched, patched};
pub use poll::{Polled, polled};
pub use update::{Accepted, Beat, UpdateOutcome, Updated, accepted, beaten, updated};

use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

/// One answer, whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Bytes,
    /// An earlier attempt of this call was answered with a status after which it is made again: the server has too much to do.
    pub was_retried: bool,
}

/// The headers that mean something to a runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    pub job_status: Option<String>,
    pub last_update: Option<String>,
    pub update_interval: Option<String>,
    pub range: Option<String>,
    pub retry_after: Option<String>,
    pub reset_time: Option<String>,
    pub content_type: Option<String>,
    /// What the server calls this request, in its own logs.
    pub request_id: Option<String>,
    pub location: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The connection failed, broke, or took too long.
    #[error("could not {method} {url}: {why}")]
    Transport { method: &'static str, url: String, why: String },
    /// No connection was even tried: files of certificates that cannot be read, an address that is none.
    #[error("could not use the settings of the server: {why}")]
    Settings { why: String },
    #[error("could not {method} {url}: {why}")]
    NotFollowed { method: &'static str, url: String, why: crate::redirect::NotFollowed },
    #[error("could not {method} {url}: the answer is longer than {limit} bytes")]
    TooLong { method: &'static str, url: String, limit: usize },
}

impl NoAnswer {
    /// GitLab's runner calls this one "client error", and counts the runner as unhealthy for it.
    pub fn is_of_settings(&self) -> bool {
        matches!(self, Self::Settings { .. })
    }
}

/// What a call came to.
pub type Answered = Result<Answer, NoAnswer>;

/// The longest text of a server that is passed on to people.
const LONGEST_TEXT: usize = 500;

impl Answer {
    /// The body as JSON.
    /// # Errors
    /// It is said not to be JSON, or is none: a proxy's page, half a body.
    pub fn json(&self) -> Result<Value, NotJson> {
        let kind = self.headers.content_type.as_deref().unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(NotJson::ContentType { is: kind.chars().take(80).collect() });
        }
        serde_json::from_slice(&self.body).map_err(|fault| NotJson::Unreadable {
            line: fault.line(),
            column: fault.column(),
            bytes: self.body.len(),
        })
    }

    /// What the server says was wrong: `{"message": "text"}`, `{"message": {"field": ["text"]}}`, or `error`. Only texts of JSON are passed on.
    pub fn complaint(&self) -> Option<String> {
        let body = self.json().ok()?;
        let text = match body.get("message").or_else(|| body.get("error"))? {
            Value::String(text) => text.clone(),
            Value::Object(fields) => {
                let field = |(name, texts): (&String, &Value)| match texts {
                    Value::Array(texts) => format!("{name}: {}", texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
                    other => format!("{name}: {other}"),
                };
                fields.iter().map(field).collect::<Vec<_>>().join("; ")
            }
            _ => return None,
        };
        Some(text.chars().filter(|character| !character.is_control()).take(LONGEST_TEXT).collect())
    }

    /// `422 Unprocessable Entity` without the words, and what the server said.
    pub fn describe(&self) -> String {
        match self.complaint() {
            Some(complaint) => format!("status {}: {complaint}", self.status),
            None => format!("status {}", self.status),
        }
    }

    /// The job was ended on the server: nothing more is wanted of it.
    fn is_aborted(&self) -> bool {
        self.status == 403 || matches!(self.headers.job_status.as_deref(), Some("canceled" | "failed"))
    }

    /// The job is to be cancelled, gracefully.
    fn wants_cancel(&self) -> bool {
        self.headers.job_status.as_deref() == Some("canceling")
    }

    /// How often the server wants to hear of the job. What cannot be read, and what is not ahead, does not count.
    fn interval(&self) -> Option<Duration> {
        let seconds: i64 = self.headers.update_interval.as_deref()?.trim().parse().ok()?;
        u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }
}

/// Why a body is no JSON. The body itself is not quoted: there may be a token in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    #[error("the answer is not JSON but `{is}`: is there a proxy or a login page in front of the server?")]
    ContentType { is: String },
    #[error("the answer of {bytes} bytes is no JSON from line {line} column {column} on")]
    Unreadable { line: usize, column: usize, bytes: usize },
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub fn answer(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }

    pub fn json(status: u16, body: &str) -> Answer {
        let headers = Headers { content_type: Some("application/json; charset=utf-8".to_owned()), ..Headers::default() };
        Answer { status, headers, body: Bytes::copy_from_slice(body.as_bytes()), was_retried: false }
    }

    pub fn with_job_status(status: u16, job_status: &str) -> Answer {
        Answer { status, headers: Headers { job_status: Some(job_status.to_owned()), ..Headers::default() }, ..Answer::default() }
    }

    pub fn no_answer() -> NoAnswer {
        NoAnswer::Transport { method: "POST", url: "https://gitlab.example/".to_owned(), why: "connection refused".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::json;
    use super::*;

    #[test]
    fn complaints_have_two_forms() {
        assert_eq!(json(400, r#"{"message":"limit reached"}"#).complaint().as_deref(), Some("limit reached"));
        assert_eq!(
            json(400, r#"{"message":{"tags":["are empty","are wrong"],"name":["is taken"]}}"#).describe(),
            "status 400: name: is taken; tags: are empty, are wrong"
        );
        assert_eq!(json(400, r#"{"error":"job is not waiting"}"#).complaint().as_deref(), Some("job is not waiting"));
        assert_eq!(json(400, "[]").complaint(), None);
    }

    #[test]
    fn a_page_is_no_json_and_is_not_quoted() {
        let mut page = json(201, "<html>secret</html>");
        page.headers.content_type = Some("text/html".to_owned());
        assert_eq!(page.json(), Err(NotJson::ContentType { is: "text/html".to_owned() }));
        let half = json(201, r#"{"id": 1, "token": "sec"#).json().expect_err("half of it").to_string();
        assert!(!half.contains("sec"), "{half}");
    }

    #[test]
    fn only_an_interval_that_lies_ahead_counts() {
        let interval = |text: &str| {
            Answer { headers: Headers { update_interval: Some(text.to_owned()), ..Headers::default() }, ..Answer::default() }.interval()
        };
        assert_eq!(interval("10"), Some(Duration::from_secs(10)));
        assert_eq!([interval("0"), interval("-10"), interval("ten"), interval("")], [None; 4]);
    }
}
