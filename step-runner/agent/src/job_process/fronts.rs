//! What a job process tells its fronts, and hears from them: over the pair of sockets of its birth, and over `.job/socket` later.

use super::Ask;
use super::spool::Extent;
use crate::frame::{Frames, FromJob, ToJob};
use crate::summary::Summary;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

/// The length of a log that grows is told at most this often.
const PACE: Duration = Duration::from_millis(1);

/// How the job stands now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    /// Nanoseconds since 1970. `None`: the first step has not started.
    pub start: Option<i64>,
    pub ended: Option<Summary>,
}

/// Talks with one front until it leaves, or has been told of the end.
pub async fn talk(stream: UnixStream, told: watch::Receiver<Told>, log: watch::Receiver<Extent>, asks: mpsc::UnboundedSender<Ask>) {
    let (reading, writing) = stream.into_split();
    // A front that leaves, or does not read, is no reason for anything.
    tokio::select! {
        _ = tell(writing, told, log) => {}
        () = hear(reading, asks) => {}
    }
}

async fn tell(mut front: OwnedWriteHalf, mut told: watch::Receiver<Told>, mut log: watch::Receiver<Extent>) -> io::Result<()> {
    let mut known = (Told::default(), Extent { bytes: u64::MAX, is_cut: false });
    loop {
        // The end first: what the log has then, it keeps.
        let now = told.borrow_and_update().clone();
        let now = (now, *log.borrow_and_update());
        let news = news(&known, &now);
        if !news.is_empty() {
            front.write_all(&news).await?;
        }
        if now.0.ended.is_some() {
            return front.shutdown().await;
        }
        known = now;
        // A job that writes line by line would wake its front for each. The end does not wait.
        let mut end = told.clone();
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            ended = end.wait_for(|told| told.ended.is_some()) => if ended.is_err() { return Ok(()) },
        }
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return Ok(()) },
            // The log is written to its end before the end is told.
            Ok(()) = log.changed() => {}
        }
    }
}

/// What a front does not know yet, the end last.
fn news((told, log): &(Told, Extent), (now, log_now): &(Told, Extent)) -> Vec<u8> {
    let mut news = Vec::new();
    if let (Some(start), None) = (now.start, told.start) {
        news.extend(FromJob::Running { start }.encode());
    }
    if log_now != log {
        news.extend(FromJob::Log(*log_now).encode());
    }
    if let Some(summary) = &now.ended {
        news.extend(FromJob::Ended(summary.clone()).encode());
    }
    news
}

async fn hear(mut front: OwnedReadHalf, asks: mpsc::UnboundedSender<Ask>) {
    let mut frames = Frames::default();
    loop {
        loop {
            match frames.next_to_job() {
                Ok(Some(ToJob::Ask(ask))) => drop(asks.send(ask)),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        match front.read_buf(&mut frames.bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_is_told_what_it_does_not_know_and_the_end_last() {
        let read = |bytes: Vec<u8>| {
            let mut frames = Frames { bytes: bytes.as_slice().into() };
            std::iter::from_fn(|| frames.next_from_job().unwrap()).collect::<Vec<_>>()
        };
        let log = |bytes| Extent { bytes, is_cut: false };
        let running = (Told { start: Some(1), ended: None }, log(5));
        assert_eq!(read(news(&Default::default(), &running)), [FromJob::Running { start: 1 }, FromJob::Log(log(5))]);
        assert_eq!(read(news(&running, &running)), []);
        let ended = (Told { ended: Some(Summary::default()), ..running.0.clone() }, log(9));
        assert_eq!(read(news(&running, &ended)), [FromJob::Log(log(9)), FromJob::Ended(Summary::default())]);
    }
}
