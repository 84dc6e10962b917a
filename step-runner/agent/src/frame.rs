//! What a front and a job process tell each other: frames on a socket (docs/design/0005).
//!
//! ```text
//! length of the content   4 bytes, little-endian
//! kind                    1 byte
//! content                 JSON; the length of the log: 8 bytes, little-endian, and 1 byte: whether it was cut; the request: protobuf
//! ```
//!
//! Kinds that are not known are skipped, members of JSON that are not known too: each side may be the newer one.

use crate::job_process::Ask;
use crate::job_process::spool::Extent;
use crate::summary::Summary;
use bytes::{Buf as _, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use step_model::plan::Level;

/// A request of 64 MiB and room for what goes with it. A longer frame is no frame.
const LARGEST: usize = 72 << 20;
const HEAD: usize = 5;

/// From a front to a job process.
#[derive(Debug, Clone, PartialEq)]
pub enum ToJob {
    /// Comes first, with the descriptor of the directory's lock.
    Birth(Birth),
    /// The encoded `proto.RunRequest`; comes second.
    Request(Bytes),
    Ask(Ask),
}

/// From a job process to each front that is connected.
#[derive(Debug, Clone, PartialEq)]
pub enum FromJob {
    /// The job is written down and will run, in the process of this number.
    Accepted { pid: u32 },
    /// The job does not run, and nothing of it is left but its directory.
    Refused(Refused),
    /// How far the log may be read.
    Log(Extent),
    /// The first step starts, or has started.
    Running { start: i64 },
    /// Nothing follows. The log has its final length.
    Ended(Summary),
}

/// Where and how a job is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    pub id: String,
    pub directory: PathBuf,
    /// What a job that names no directory runs in.
    pub work_dir: PathBuf,
    /// 12 or 44.
    pub level: u8,
    pub stamped: bool,
    pub grace_period: Duration,
    /// For a job that names none.
    pub timeout: Option<Duration>,
    /// Of the log, in bytes. `None`: the default.
    #[serde(default)]
    pub log_limit: Option<u64>,
}

impl Birth {
    pub fn level(&self) -> Level {
        if self.level <= 12 { Level::V0_12 } else { Level::V0_44 }
    }

    pub fn number_of(level: Level) -> u8 {
        match level {
            Level::V0_12 => 12,
            Level::V0_44 => 44,
        }
    }
}

/// Why a job does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// UPPER_SNAKE, from `docs/reference/api.md`.
    pub reason: String,
    /// What the caller reads.
    pub message: String,
    /// Not the request is at fault, but the machine or we.
    #[serde(default)]
    pub is_ours: bool,
}

impl ToJob {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Birth(birth) => json_frame(1, birth),
            Self::Request(request) => frame(2, request),
            Self::Ask(Ask::End) => frame(3, &[]),
            Self::Ask(Ask::EndNow) => frame(4, &[]),
        }
    }

    /// `None`: a kind that is not known.
    fn decode(kind: u8, content: &Bytes) -> Option<Self> {
        Some(match kind {
            1 => Self::Birth(serde_json::from_slice(content).ok()?),
            2 => Self::Request(content.clone()),
            3 => Self::Ask(Ask::End),
            4 => Self::Ask(Ask::EndNow),
            _ => return None,
        })
    }
}

impl FromJob {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Accepted { pid } => frame(65, &pid.to_le_bytes()),
            Self::Refused(refused) => json_frame(66, refused),
            Self::Log(extent) => {
                let [a, b, c, d, e, f, g, h] = extent.bytes.to_le_bytes();
                frame(67, &[a, b, c, d, e, f, g, h, u8::from(extent.is_cut)])
            }
            Self::Running { start } => frame(68, &start.to_le_bytes()),
            Self::Ended(summary) => json_frame(69, summary),
        }
    }

    fn decode(kind: u8, content: &Bytes) -> Option<Self> {
        let number = || content.first_chunk::<8>();
        Some(match kind {
            65 => Self::Accepted { pid: content.first_chunk::<4>().map_or(0, |number| u32::from_le_bytes(*number)) },
            66 => Self::Refused(serde_json::from_slice(content).ok()?),
            67 => Self::Log(Extent { bytes: u64::from_le_bytes(*number()?), is_cut: content.get(8) == Some(&1) }),
            68 => Self::Running { start: i64::from_le_bytes(*number()?) },
            69 => Self::Ended(serde_json::from_slice(content).ok()?),
            _ => return None,
        })
    }
}

fn json_frame(kind: u8, content: &impl Serialize) -> Vec<u8> {
    // Nothing in these types can fail to be JSON: texts, numbers, and paths that were checked to be UTF-8.
    frame(kind, &serde_json::to_vec(content).unwrap_or_default())
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + content.len());
    frame.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.push(kind);
    frame.extend_from_slice(content);
    frame
}

/// Bytes that came, until they are frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// Where what is read goes.
    pub bytes: BytesMut,
}

/// The other side does not speak our language: its next frame would have this many bytes.
#[derive(Debug, thiserror::Error)]
#[error("a frame of {0} bytes came, the largest has {LARGEST}")]
pub struct TooLong(usize);

impl Frames {
    /// The next frame of a front; `None` when it is not complete.
    /// # Errors
    /// A frame that is too long. Nothing can be read any more.
    pub fn next_to_job(&mut self) -> Result<Option<ToJob>, TooLong> {
        self.next(ToJob::decode)
    }

    /// The next frame of a job process; `None` when it is not complete.
    /// # Errors
    /// As [`Frames::next_to_job`].
    pub fn next_from_job(&mut self) -> Result<Option<FromJob>, TooLong> {
        self.next(FromJob::decode)
    }

    fn next<T>(&mut self, decode: impl Fn(u8, &Bytes) -> Option<T>) -> Result<Option<T>, TooLong> {
        loop {
            let Some(head) = self.bytes.first_chunk::<HEAD>() else { return Ok(None) };
            let [a, b, c, d, kind] = *head;
            let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            if length > LARGEST {
                return Err(TooLong(length));
            }
            if self.bytes.len() < HEAD + length {
                self.bytes.reserve(HEAD + length - self.bytes.len());
                return Ok(None);
            }
            self.bytes.advance(HEAD);
            let content = self.bytes.split_to(length).freeze();
            if let Some(known) = decode(kind, &content) {
                return Ok(Some(known));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn birth() -> ToJob {
        ToJob::Birth(Birth {
            id: "7".into(),
            directory: "/tmp/d".into(),
            work_dir: "/".into(),
            level: 44,
            stamped: true,
            grace_period: Duration::from_millis(30_500),
            timeout: None,
            log_limit: Some(1 << 40),
        })
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let sent = [birth(), ToJob::Request(Bytes::from_static(b"abc")), ToJob::Ask(Ask::End), ToJob::Ask(Ask::EndNow)];
        let bytes: Vec<u8> = sent.iter().flat_map(ToJob::encode).collect();
        for size in [1, 3, 7, bytes.len()] {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(size) {
                frames.bytes.extend_from_slice(piece);
                while let Some(frame) = frames.next_to_job().unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(got, sent);
        }
        let told = [
            FromJob::Accepted { pid: 7 },
            FromJob::Log(Extent { bytes: 7, is_cut: true }),
            FromJob::Running { start: -1 },
            FromJob::Ended(Summary::default()),
        ];
        let mut frames = Frames { bytes: told.iter().flat_map(FromJob::encode).collect() };
        assert_eq!(std::iter::from_fn(|| frames.next_from_job().unwrap()).collect::<Vec<_>>(), told);
    }

    #[test]
    fn a_kind_that_is_not_known_is_skipped() {
        let mut frames = Frames::default();
        frames.bytes.extend_from_slice(&frame(200, b"from the future"));
        frames.bytes.extend_from_slice(&FromJob::Log(Extent { bytes: 3, is_cut: false }).encode());
        assert_eq!(frames.next_from_job().unwrap(), Some(FromJob::Log(Extent { bytes: 3, is_cut: false })));
    }

    #[test]
    fn a_length_that_cannot_be_ends_the_conversation() {
        let mut frames = Frames::default();
        frames.bytes.extend_from_slice(&[0xff; 5]);
        assert!(frames.next_from_job().is_err());
    }
}
