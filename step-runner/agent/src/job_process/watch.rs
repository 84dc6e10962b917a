//! One process, from its start until nobody can write to its pipes any more: reads, signals, reaps, reports.
//!
//! ```text
//! runs --ended--> drains what was written before --> [was asked: waits until its group is gone] --reaped--> Exited --> follows
//! ```
//!
//! A process that left something in the background has ended all the same; what that writes still goes to the log, until the job ends.

mod sources;

use super::pump::{Message, Pump};
use crate::system::{Child, Running};
use sources::Sources;
use std::pin::pin;
use std::time::Duration;
use step_engine::event::Event;
use step_model::result::StepId;
use tokio::sync::{mpsc, watch};

/// After a kill, how long the audience may take with what the process wrote. It had the grace period before.
const PATIENCE: Duration = Duration::from_secs(1);
/// Rounds of looking whether a group is gone: at first often, since most processes end at once.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How much somebody wants a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Urgency {
    #[default]
    None,
    Asked,
    Killed,
}

/// A process and who hears of it.
#[derive(Debug)]
pub struct Watch {
    step: StepId,
    child: Child,
    sources: Sources,
    urgency: watch::Receiver<Urgency>,
    /// Turns true when nothing of the job runs any more.
    closing: watch::Receiver<bool>,
    pump: Pump,
    events: mpsc::UnboundedSender<Event>,
}

impl Watch {
    pub fn new(
        step: StepId,
        running: Running,
        urgency: watch::Receiver<Urgency>,
        closing: watch::Receiver<bool>,
        pump: Pump,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let sources = Sources::new(step, running.pipes, pump.clone());
        Self { step, child: running.child, sources, urgency, closing, pump, events }
    }

    /// The number of the process.
    pub fn number(&self) -> u32 {
        self.child.number()
    }

    pub async fn run(mut self) {
        apply(*self.urgency.borrow_and_update(), &self.child);
        self.until_ended().await;
        self.drain_or_lose().await;
        if self.group_is_gone().await {
            self.drain_or_lose().await;
        }
        let (exit, usage) = self.child.reap();
        let _ = self.events.send(Event::Exited { step: self.step, exit, usage });
        self.follow().await;
    }

    async fn until_ended(&mut self) {
        let Self { child, sources, urgency, .. } = self;
        loop {
            tokio::select! {
                biased;
                () = child.ended() => return,
                now = changed(urgency) => apply(now, child),
                () = sources.read(), if !sources.are_closed() => {}
            }
        }
    }

    /// Reads what was written before the process ended. The audience may be slow; when the process was killed it gets only a moment more.
    async fn drain_or_lose(&mut self) {
        let Self { child, sources, urgency, .. } = self;
        let is_lost = {
            let mut drained = pin!(sources.drain());
            loop {
                let patience = async {
                    let is_killed = *urgency.borrow_and_update() == Urgency::Killed;
                    if is_killed {
                        tokio::time::sleep(PATIENCE).await
                    } else {
                        apply(changed(urgency).await, child)
                    }
                    is_killed
                };
                tokio::select! {
                    biased;
                    () = &mut drained => break false,
                    is_over = patience => if is_over { break true },
                }
            }
        };
        if is_lost {
            let line = "what the step wrote last was dropped: it was killed, and nobody takes its output".to_owned();
            self.pump.push(Message::Said { step: self.step, line, warning: true });
            self.sources.close();
        }
    }

    /// Waits until nothing is left in the group of a process that was asked to end; a kill ends what is. Tells whether there was a wait.
    async fn group_is_gone(&mut self) -> bool {
        let Self { child, urgency, .. } = self;
        let mut pause = FIRST_LOOK;
        let mut has_waited = false;
        while *urgency.borrow_and_update() == Urgency::Asked && child.group_has_others() {
            has_waited = true;
            tokio::select! {
                biased;
                now = changed(urgency) => apply(now, child),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
        has_waited
    }

    /// Reads on behalf of what was left in the background.
    async fn follow(mut self) {
        while !self.sources.are_closed() {
            tokio::select! {
                biased;
                () = closed(&mut self.closing) => {
                    self.sources.drain().await;
                    self.sources.close();
                }
                () = self.sources.read() => {}
            }
        }
        self.pump.wake();
    }
}

/// The next urgency; never, when nobody can want anything any more.
async fn changed(urgency: &mut watch::Receiver<Urgency>) -> Urgency {
    match urgency.changed().await {
        Ok(()) => *urgency.borrow_and_update(),
        Err(_) => std::future::pending().await,
    }
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    // Also when nobody is there any more to say so.
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}

fn apply(urgency: Urgency, child: &Child) {
    match urgency {
        Urgency::None => {}
        Urgency::Asked => child.ask(),
        Urgency::Killed => child.kill(),
    }
}
