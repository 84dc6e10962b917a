//! The audience's thread: masks output, keeps the last of each step, and calls the audience.

use super::{Message, Queue};
use crate::job_process::{Audience, Stream};
use crate::system_error;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use step_engine::event::Event;
use step_engine::run::Headline;
use step_model::masking::{Secrets, StreamMasker};
use step_model::result::StepId;
use step_model::value::{Data, Value};
use tokio::sync::mpsc;

/// A live line that changes five times a second looks alive.
const TICK: Duration = Duration::from_millis(200);
/// After this long without a byte a held beginning of a secret is released, if it is short (docs/reference/run.md).
const QUIET: Duration = Duration::from_millis(50);
/// What is kept of the end of a step's output: a hundred lines of eighty characters.
const TAIL: usize = 8 * 1024;

/// What the thread knows.
#[derive(Debug)]
pub struct Delivery<A> {
    audience: A,
    queue: Arc<Queue>,
    events: Option<mpsc::UnboundedSender<Event>>,
    secrets: Secrets,
    /// Of streams that wrote something since there are secrets.
    maskers: HashMap<(StepId, Stream), Masked>,
    tails: HashMap<StepId, Vec<u8>>,
    next_tick: Instant,
    /// When the audience got something last, while it holds something back.
    held_since: Option<Instant>,
    /// Masked output on its way, to be used again.
    masked: Vec<u8>,
}

#[derive(Debug)]
struct Masked {
    masker: StreamMasker,
    /// When a byte came last, while something is held back that quiet may release.
    quiet_since: Option<Instant>,
}

impl<A: Audience> Delivery<A> {
    pub fn new(audience: A, secrets: Secrets, queue: Arc<Queue>, events: mpsc::UnboundedSender<Event>) -> Self {
        Self {
            audience,
            queue,
            events: Some(events),
            secrets,
            maskers: HashMap::new(),
            tails: HashMap::new(),
            next_tick: Instant::now() + TICK,
            held_since: None,
            masked: Vec::new(),
        }
    }

    /// Delivers until the last message.
    pub fn run(mut self) -> A {
        // Also when the audience panics: nobody may wait for room then.
        let _deaf_at_the_end = DeafAtTheEnd(Arc::clone(&self.queue), self.events.clone());
        loop {
            let message = self.queue.next(self.due());
            if matches!(message, Some(Message::Finish)) {
                return self.audience;
            }
            let was_idle = message.is_none();
            if let Some(message) = message {
                self.deliver(message);
                self.held_since = self.audience.holds_back().then(Instant::now);
            }
            self.on_time(was_idle);
        }
    }

    fn due(&self) -> Instant {
        let quiet = self.maskers.values().filter_map(|masked| masked.quiet_since).chain(self.held_since).min();
        quiet.map_or(self.next_tick, |since| self.next_tick.min(since + QUIET))
    }

    /// Does what is due. Quiet counts only when nothing waits: what waits may be the rest of a secret.
    fn on_time(&mut self, was_idle: bool) {
        let now = Instant::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.audience.tick();
        }
        if was_idle && !self.maskers.is_empty() {
            self.release_quiet(now);
        }
        if was_idle && self.held_since.is_some_and(|since| now >= since + QUIET) {
            self.held_since = None;
            self.audience.quiet();
        }
    }

    fn release_quiet(&mut self, now: Instant) {
        let mut released = Vec::new();
        for (stream, masked) in &mut self.maskers {
            if masked.quiet_since.is_some_and(|since| now >= since + QUIET) {
                masked.quiet_since = None;
                let mut bytes = Vec::new();
                masked.masker.quiet(&mut bytes);
                released.push((*stream, bytes));
            }
        }
        for ((step, stream), bytes) in released {
            self.write(step, stream, &bytes);
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Started { step, headline } => self.audience.started(step, &self.masked_headline(*headline)),
            Message::Said { step, line, warning } => self.audience.said(step, &self.secrets.mask(&line), warning),
            Message::Output { step, stream, bytes } => {
                self.output(step, stream, &bytes);
                self.queue.delivered(bytes);
            }
            Message::Closed { step, stream } => self.close(step, stream),
            Message::Ended { step, headline } => {
                let tail = self.tails.remove(&step).unwrap_or_default();
                self.audience.ended(step, &self.masked_headline(*headline), last_lines(&tail));
            }
            Message::Secrets(secrets) => {
                for masked in self.maskers.values_mut() {
                    masked.masker.update(&secrets);
                }
                self.secrets = secrets;
            }
            Message::Finish => {}
        }
    }

    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) {
        if self.secrets.is_empty() {
            self.write(step, stream, bytes);
            return;
        }
        let secrets = &self.secrets;
        let start = || Masked { masker: StreamMasker::new(secrets), quiet_since: None };
        let masked = self.maskers.entry((step, stream)).or_insert_with(start);
        let mut out = std::mem::take(&mut self.masked);
        masked.masker.push(bytes, &mut out);
        masked.quiet_since = (masked.masker.held() > 0).then(Instant::now);
        self.write(step, stream, &out);
        out.clear();
        self.masked = out;
    }

    fn close(&mut self, step: StepId, stream: Stream) {
        if let Some(mut masked) = self.maskers.remove(&(step, stream)) {
            let mut rest = Vec::new();
            masked.masker.finish(&mut rest);
            self.write(step, stream, &rest);
        }
    }

    fn write(&mut self, step: StepId, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        keep_tail(self.tails.entry(step).or_default(), bytes);
        if self.events.is_none() {
            return;
        }
        if let Err(error) = self.audience.output(step, stream, bytes) {
            // Told once; the job ends, and what its steps still write is of no use.
            if let Some(events) = self.events.take() {
                let _ = events.send(Event::LogFailed { fault: system_error::text(&error) });
            }
            self.queue.turn_deaf();
        }
    }

    /// A headline holds texts that steps and expressions have made.
    fn masked_headline(&self, mut headline: Headline) -> Headline {
        if self.secrets.is_empty() {
            return headline;
        }
        if let Some(failure) = &mut headline.failure {
            failure.message = self.secrets.mask(&failure.message).into_owned();
        }
        headline.name = self.secrets.mask(&headline.name).into();
        for value in headline.command.iter_mut().chain(&mut headline.work_dir) {
            if let Data::String(text) = value.data() {
                *value = Value::from(&*self.secrets.mask(text)).marked(value.is_sensitive());
            }
        }
        headline
    }
}

/// Keeps one byte more than is given, which tells whether the first line of that is whole.
fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL + 1)..]);
    // Not moved for every few bytes.
    if tail.len() > 2 * TAIL {
        tail.drain(..tail.len() - TAIL - 1);
    }
}

/// Whole lines, unless there is not even one.
fn last_lines(tail: &[u8]) -> &[u8] {
    let Some(cut) = tail.len().checked_sub(TAIL + 1) else { return tail };
    let last = &tail[cut..];
    match last.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < last.len() => &last[end + 1..],
        _ => &last[1..],
    }
}

struct DeafAtTheEnd(Arc<Queue>, Option<mpsc::UnboundedSender<Event>>);

impl Drop for DeafAtTheEnd {
    fn drop(&mut self) {
        self.0.turn_deaf();
        if std::thread::panicking()
            && let Some(events) = &self.1
        {
            let _ = events.send(Event::LogFailed { fault: "the part that shows the log has panicked".to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_however_they_came() {
        let text: Vec<u8> = (0..5000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
        for size in [1, 7, 100, 5000, TAIL, 3 * TAIL] {
            let mut tail = Vec::new();
            for piece in text.chunks(size) {
                keep_tail(&mut tail, piece);
                let end = piece.as_ptr_range().end as usize - text.as_ptr() as usize;
                let last = last_lines(&tail);
                assert!(text[..end].ends_with(last) && last.len() <= TAIL);
                let before = end - last.len();
                assert!(before == 0 || text[before - 1] == b'\n', "{size}: the line before {before} is cut");
            }
        }
        let mut endless = Vec::new();
        keep_tail(&mut endless, &[b'x'; 3 * TAIL]);
        assert_eq!(last_lines(&endless), [b'x'; TAIL]);
    }
}
