//! The pipes of one process.

use crate::job_process::Stream;
use crate::job_process::pump::{Message, Pump};
use crate::system::Pipe;
use std::future::poll_fn;
use std::task::Poll;
use step_model::result::StepId;

/// Pipes that somebody can still write to, and where that goes.
#[derive(Debug)]
pub struct Sources {
    step: StepId,
    open: Vec<Source>,
    pump: Pump,
    /// Room for what is read next; there only while it is needed.
    piece: Option<Vec<u8>>,
    /// A piece was filled once: this process writes much.
    is_heavy: bool,
}

#[derive(Debug)]
struct Source {
    stream: Stream,
    pipe: Pipe,
}

impl Sources {
    pub fn new(step: StepId, pipes: Vec<(Stream, Pipe)>, pump: Pump) -> Self {
        let open = pipes.into_iter().map(|(stream, pipe)| Source { stream, pipe }).collect();
        Self { step, open, pump, piece: None, is_heavy: false }
    }

    pub fn are_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// Waits for room and for output, and hands one piece on. A pipe at its end goes. May be dropped and called again.
    pub async fn read(&mut self) {
        self.pump.room().await;
        let Self { open, pump, piece, is_heavy, .. } = self;
        let piece = piece.get_or_insert_with(|| pump.piece(*is_heavy));
        let (index, read) = poll_fn(|context| {
            for (index, source) in open.iter_mut().enumerate() {
                if let Poll::Ready(read) = source.pipe.poll_read(context, piece) {
                    return Poll::Ready((index, read));
                }
            }
            Poll::Pending
        })
        .await;
        // A pipe that cannot be read is at its end.
        match read {
            Ok(read) if read > 0 => self.hand_on(index),
            _ => self.close_one(index),
        }
    }

    /// Hands on what is in the pipes now, and not all that is written meanwhile: somebody in the background may write for ever.
    pub async fn drain(&mut self) {
        // From the last, since one that is closed goes.
        for index in (0..self.open.len()).rev() {
            self.drain_one(index).await;
        }
        if let Some(piece) = self.piece.take() {
            self.pump.give_back(piece);
        }
    }

    async fn drain_one(&mut self, index: usize) {
        let mut left = self.open[index].pipe.pending();
        let mut is_last = false;
        loop {
            self.pump.room().await;
            let Self { open, pump, piece, is_heavy, .. } = self;
            let piece = piece.get_or_insert_with(|| pump.piece(*is_heavy));
            match open[index].pipe.read_now(piece).await {
                Ok(None) => return,
                Ok(Some(0)) | Err(_) => return self.close_one(index),
                Ok(Some(read)) => {
                    self.hand_on(index);
                    left = left.saturating_sub(read as u64);
                    if is_last {
                        return;
                    }
                    // One look more, for the end.
                    is_last = left == 0;
                }
            }
        }
    }

    /// Reads no more.
    pub fn close(&mut self) {
        while !self.open.is_empty() {
            self.close_one(self.open.len() - 1);
        }
    }

    fn hand_on(&mut self, index: usize) {
        let Some(piece) = self.piece.take() else { return };
        let source = &self.open[index];
        if piece.len() == piece.capacity() && !self.is_heavy {
            self.is_heavy = true;
            source.pipe.enlarge();
        }
        self.pump.output(self.step, source.stream, piece);
    }

    /// Nobody is woken for it: what follows does that.
    fn close_one(&mut self, index: usize) {
        let source = self.open.remove(index);
        self.pump.push(Message::Closed { step: self.step, stream: source.stream });
    }
}
