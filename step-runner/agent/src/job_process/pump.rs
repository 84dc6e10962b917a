//! From the loop to the audience: one queue in the order of what happened, and one thread that takes from it.
//!
//! ```text
//! pipes --> watch --.
//!                    }--> queue (at most a megabyte of output) --> delivery: masks, keeps tails --> audience
//! engine --> drive -'
//! ```
//!
//! Whoever reads a pipe waits for room in the queue first, so a slow audience slows the steps and nothing else. The loop never waits.

mod delivery;

use super::{Audience, Stream};
use delivery::Delivery;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use step_engine::event::Event;
use step_engine::run::Headline;
use step_model::masking::Secrets;
use step_model::result::StepId;
use tokio::sync::{Notify, mpsc, oneshot};

/// Output in the queue: four of the largest pieces, so that reading and writing overlap.
const ROOM: usize = 1 << 20;
/// Pieces of output in the queue, for a step that writes byte by byte.
const PIECES: usize = 64;
/// What a pipe holds by itself.
const SMALL_PIECE: usize = 1 << 16;
/// For a step that writes much. Larger ones leave the cache between reading and writing.
const LARGE_PIECE: usize = 1 << 18;
/// A piece that fits behind the last one of its stream goes there, up to this size.
const COALESCED: usize = 1 << 12;

/// Something for the audience.
#[derive(Debug)]
pub enum Message {
    Started {
        step: StepId,
        headline: Box<Headline>,
    },
    Output {
        step: StepId,
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// A stream has ended.
    Closed {
        step: StepId,
        stream: Stream,
    },
    Said {
        step: StepId,
        line: String,
        warning: bool,
    },
    Ended {
        step: StepId,
        headline: Box<Headline>,
    },
    /// These are masked from here on.
    Secrets(Secrets),
    /// Nothing follows.
    Finish,
}

/// The near end of the queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pump {
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    /// Of output that is in the queue or with the audience.
    bytes: usize,
    pieces: usize,
    /// Room for pieces, to be used again.
    spare: Vec<Vec<u8>>,
    /// The thread waits for a message.
    is_asleep: bool,
    /// Somebody waits for room.
    is_awaited: bool,
    /// Output is dropped: it cannot be written any more, or nobody waits for it.
    is_deaf: bool,
}

impl State {
    fn is_full(&self) -> bool {
        !self.is_deaf && (self.bytes >= ROOM || self.pieces >= PIECES)
    }

    fn drop_piece(&mut self, bytes: Vec<u8>) {
        self.bytes = self.bytes.saturating_sub(bytes.len());
        self.pieces = self.pieces.saturating_sub(1);
        self.keep_room(bytes);
    }

    fn keep_room(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < ROOM / LARGE_PIECE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

impl Queue {
    /// The state is whole between any two statements that change it, so a panic elsewhere does not matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message. `None`: there was none until then.
    fn next(&self, until: Instant) -> Option<Message> {
        let mut state = self.state();
        loop {
            if let Some(message) = state.messages.pop_front() {
                return Some(message);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state.is_asleep = true;
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.is_asleep = false;
        }
    }

    fn delivered(&self, bytes: Vec<u8>) {
        let mut state = self.state();
        state.drop_piece(bytes);
        // Half empty: not one wake-up per piece.
        if state.is_awaited && state.bytes <= ROOM / 2 && state.pieces <= PIECES / 2 {
            state.is_awaited = false;
            drop(state);
            self.room.notify_waiters();
        }
    }

    /// Drops output from now on, and what waits of it.
    fn turn_deaf(&self) {
        let mut state = self.state();
        state.is_deaf = true;
        state.messages.retain(|message| !matches!(message, Message::Output { .. }));
        state.spare.clear();
        drop(state);
        self.room.notify_waiters();
    }
}

impl Pump {
    /// Starts the thread. What it returns gives the audience back after [`Message::Finish`]. A log that fails is told once to `events`.
    /// # Errors
    /// There is no thread to be had.
    pub fn start<A: Audience>(
        audience: A,
        secrets: Secrets,
        events: mpsc::UnboundedSender<Event>,
    ) -> io::Result<(Self, oneshot::Receiver<A>)> {
        let queue = Arc::new(Queue::default());
        let (sender, receiver) = oneshot::channel();
        let delivery = Delivery::new(audience, secrets, Arc::clone(&queue), events);
        std::thread::Builder::new().name("audience".to_owned()).spawn(move || drop(sender.send(delivery.run())))?;
        Ok((Self { queue }, receiver))
    }

    /// Puts a message into the queue. It is delivered soon after the next [`Pump::wake`] at the latest.
    pub fn push(&self, message: Message) {
        self.queue.state().messages.push_back(message);
    }

    /// There may be something to deliver. Once after several messages is enough.
    pub fn wake(&self) {
        let state = self.queue.state();
        if state.is_asleep && !state.messages.is_empty() {
            drop(state);
            self.queue.arrived.notify_one();
        }
    }

    /// Waits until output may be put into the queue.
    pub async fn room(&self) {
        loop {
            let room = self.queue.room.notified();
            {
                let mut state = self.queue.state();
                if !state.is_full() {
                    return;
                }
                state.is_awaited = true;
            }
            room.await;
        }
    }

    /// Empty, with room for a piece of output.
    pub fn piece(&self, is_large: bool) -> Vec<u8> {
        let mut bytes = self.queue.state().spare.pop().unwrap_or_default();
        bytes.reserve(if is_large { LARGE_PIECE } else { SMALL_PIECE });
        bytes
    }

    /// A piece that was not used.
    pub fn give_back(&self, bytes: Vec<u8>) {
        self.queue.state().keep_room(bytes);
    }

    pub fn output(&self, step: StepId, stream: Stream, bytes: Vec<u8>) {
        let mut state = self.queue.state();
        let is_asleep = state.is_asleep;
        state.bytes += bytes.len();
        state.pieces += 1;
        if state.is_deaf || bytes.is_empty() {
            state.drop_piece(bytes);
            return;
        }
        match state.messages.back_mut() {
            Some(Message::Output { step: last_step, stream: last_stream, bytes: last })
                if *last_step == step && *last_stream == stream && last.len() + bytes.len() <= COALESCED =>
            {
                last.extend_from_slice(&bytes);
                let length = bytes.len();
                state.drop_piece(bytes);
                state.bytes += length;
            }
            _ => state.messages.push_back(Message::Output { step, stream, bytes }),
        }
        drop(state);
        if is_asleep {
            self.queue.arrived.notify_one();
        }
    }

    /// Drops the output that was not delivered, and all that follows: nobody waits for it any more.
    pub fn give_up(&self) {
        self.queue.turn_deaf();
    }
}
