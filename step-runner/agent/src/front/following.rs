//! The log of a job for one follower: what is there, then what comes, until the job is over or closed.
//!
//! A follower holds one piece at a time and reads the next when the last one is on its way, so one that does not read costs a piece.

use super::refusal;
use super::registry::{Follower, Job, News};
use crate::system_error;
use bytes::{Bytes, BytesMut};
use ci_proto::step_runner::FollowLogsResponse;
use futures::Stream;
use futures::stream::try_unfold;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use tokio::sync::watch;
use tonic::{Code, Status};

/// Of the log in one message.
const PIECE: usize = 64 << 10;

/// One follower.
struct Following {
    file: File,
    position: u64,
    news: watch::Receiver<News>,
    _follower: Follower,
}

/// Streams the log from `offset`. One beyond the end yields nothing until the job is over.
/// # Errors
/// The offset is negative, or the log cannot be read.
pub fn follow(job: Arc<Job>, offset: i64) -> Result<impl Stream<Item = Result<FollowLogsResponse, Status>> + Send + 'static, Status> {
    let path = job.directory().log();
    let Ok(position) = u64::try_from(offset) else {
        let path = path.display();
        let message = format!("following logs for job {:?}: seeking log file \"{path}\": seek {path}: invalid argument", job.id);
        return Err(refusal::status(Code::InvalidArgument, "BAD_OFFSET", message, &[("id", &job.id)]));
    };
    let file = File::open(&path).map_err(|error| unreadable(&job.id, &error))?;
    let id = job.id.clone();
    let following = Following { file, position, news: job.news.subscribe(), _follower: Follower::of(job) };
    Ok(try_unfold(following, move |mut following| {
        let id = id.clone();
        async move {
            let piece = following.next().await.map_err(|error| unreadable(&id, &error))?;
            Ok(piece.map(|data| (FollowLogsResponse { data }, following)))
        }
    }))
}

fn unreadable(id: &str, error: &io::Error) -> Status {
    let message = format!("following logs for job {id:?}: streaming logs: {}", system_error::text(error));
    refusal::status(Code::Unknown, "LOG_UNREADABLE", message, &[("id", id)])
}

impl Following {
    /// `None`: nothing follows.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let (length, is_last) = {
                let news = self.news.borrow_and_update();
                (news.log.bytes, news.closed || news.phase.is_over())
            };
            if length > self.position {
                return self.read(length - self.position).map(Some);
            }
            if is_last || self.news.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// From the cache of the system, where it was written a moment ago.
    fn read(&mut self, available: u64) -> io::Result<Bytes> {
        let mut bytes = BytesMut::zeroed(usize::try_from(available).unwrap_or(PIECE).min(PIECE));
        let read = self.file.read_at(&mut bytes, self.position)?;
        if read == 0 {
            // The file is shorter than its writer has told.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(read);
        self.position += read as u64;
        Ok(bytes.freeze())
    }
}
