//! Something goes wrong with calls of one kind.

use super::Seconds;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Something goes wrong with calls of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Fault {
    pub call: CallKind,
    /// Only for calls about this job.
    pub job: Option<u64>,
    /// So many calls go well before.
    pub skip: u64,
    /// So many go wrong; zero: all that come.
    pub times: u64,
    /// Of those only each n-th.
    pub every: u64,
    pub what: Wrong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    Any,
    /// `POST jobs/request`
    Request,
    /// `PUT` with `pending`
    Beat,
    /// the first `PUT` with `running`
    Accept,
    /// any later one
    Touch,
    /// `PUT` with `success` or `failed`
    Final,
    /// `PATCH trace`
    Trace,
    /// Everything about runners themselves
    Runners,
    /// Artifacts, up and down
    Artifacts,
    /// The result of a job, over gRPC
    Result,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrong {
    /// An answer with this status; nothing was done.
    Status { status: u16, headers: BTreeMap<String, String>, body: String },
    /// The page of a proxy, with the status of success.
    Html,
    /// The right answer, of which only half arrives.
    Half,
    /// JSON of this many bytes in place of the answer.
    Large { bytes: usize },
    /// JSON of the right shape whose values have other types.
    WrongTypes,
    /// Done, but the answer never arrives: the connection is closed.
    Lost,
    /// Not done, and the connection is closed.
    Close,
    /// Not done, and never answered.
    Hang,
    /// Done, and answered after this time.
    Slow { seconds: Seconds },
}

/// As it is written: flat, with every key known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    call: CallKind,
    job: Option<u64>,
    #[serde(default)]
    skip: u64,
    #[serde(default = "once")]
    times: u64,
    #[serde(default = "once")]
    every: u64,
    kind: Kind,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    bytes: Option<usize>,
    seconds: Option<Seconds>,
}

fn once() -> u64 {
    1
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Status,
    Html,
    Half,
    Large,
    WrongTypes,
    Lost,
    Close,
    Hang,
    Slow,
}

impl TryFrom<Raw> for Fault {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, Self::Error> {
        let what = match (raw.kind, raw.status, raw.bytes, raw.seconds) {
            (Kind::Status, Some(status), None, None) => Wrong::Status { status, headers: raw.headers, body: raw.body },
            (Kind::Large, None, Some(bytes), None) => Wrong::Large { bytes },
            (Kind::Slow, None, None, Some(seconds)) => Wrong::Slow { seconds },
            (Kind::Html, None, None, None) => Wrong::Html,
            (Kind::Half, None, None, None) => Wrong::Half,
            (Kind::WrongTypes, None, None, None) => Wrong::WrongTypes,
            (Kind::Lost, None, None, None) => Wrong::Lost,
            (Kind::Close, None, None, None) => Wrong::Close,
            (Kind::Hang, None, None, None) => Wrong::Hang,
            _ => {
                return Err(
                    "`status` needs `status`, `large` needs `bytes`, `slow` needs `seconds`, and the other kinds take none of them",
                );
            }
        };
        Ok(Self { call: raw.call, job: raw.job, skip: raw.skip, times: raw.times, every: raw.every, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_what_its_kind_needs_and_nothing_else() {
        let read = |text: &str| toml::from_str::<Fault>(&format!("call = \"trace\"\n{text}"));
        assert_eq!(
            read("kind = \"status\"\nstatus = 500").expect("a fault").what,
            Wrong::Status { status: 500, headers: BTreeMap::new(), body: String::new() }
        );
        assert_eq!(read("kind = \"slow\"\nseconds = 0.5").expect("a fault").what, Wrong::Slow { seconds: Seconds(0.5) });
        for wrong in
            ["kind = \"status\"", "kind = \"html\"\nbytes = 5", "kind = \"large\"", "kind = \"lost\"\nsecond = 5", "kind = \"none\""]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
