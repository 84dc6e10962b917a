//! What comes in and goes out, as values: no socket is needed to try a server out.

use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// One request. The names of headers are in small letters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub method: String,
    /// Below `/api/v4/`, or the whole path for what is not there.
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// One answer, and whether it arrives.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Whole,
    /// After this time.
    Late(Duration),
    /// The head and half of the body; then the connection breaks.
    Half,
    /// Nothing: the connection breaks.
    Lost,
    /// Nothing, for ever.
    Never,
}

impl Delivery {
    /// Whether the runner knows the answer.
    pub fn arrives(self) -> bool {
        matches!(self, Self::Whole | Self::Late(_))
    }
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), delivery: Delivery::Whole }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self { body: Bytes::from(body.to_string()), ..Self::status(status).with("content-type", "application/json") }
    }

    /// What Rails says when something is wrong.
    pub fn message(status: u16, message: &str) -> Self {
        Self::json(status, &serde_json::json!({ "message": format!("{status} {message}") }))
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
