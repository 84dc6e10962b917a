//! The loop: events to the machine, its effects to the host, and time.

use super::host::Host;
use super::{Ask, Audience, Ended, Settings};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime};
use step_engine::effect::Effect;
use step_engine::event::Event;
use step_engine::run::Run;
use step_model::plan::Plan;
use step_model::time::{Deadline, Now, Timestamp};
use tokio::sync::mpsc;

/// When somebody wants the job to end, how long the audience may take with what is left.
const PATIENCE: Duration = Duration::from_secs(2);

/// One job at a time: see [`super::run`].
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// See [`super::run`].
pub async fn run<A: Audience>(plan: Plan, settings: Settings, audience: A, asks: mpsc::UnboundedReceiver<Ask>) -> io::Result<Ended<A>> {
    let _turn = TURN.lock().await;
    let clock = Clock { start: Instant::now() };
    let mut asks = Asks { channel: Some(asks), latest: None };
    let (sender, mut events) = mpsc::unbounded_channel();
    let grace_period = plan.grace_period;
    let (mut host, mut audience) = Host::start(&plan, &settings, audience, sender)?;

    let (mut run, effects) = Run::start(plan, settings.seed, clock.now());
    let mut outcomes = VecDeque::new();
    carry_out(&mut host, effects, &run, &mut outcomes);
    loop {
        while let Some(event) = outcomes.pop_front() {
            let effects = run.on(event, clock.now());
            carry_out(&mut host, effects, &run, &mut outcomes);
        }
        if run.is_finished() {
            break;
        }
        host.wake_audience();
        let event = tokio::select! {
            biased;
            ask = asks.next() => event_of(ask),
            Some(event) = events.recv() => event,
            () = passed(run.next_deadline(), &clock) => Event::Woken,
        };
        outcomes.extend(host.note(event));
    }

    host.sweep(grace_period, &mut asks).await;
    if while_patient(host.close(), &mut asks).await.is_none() {
        host.give_up();
    }
    host.clean_up().await;
    host.end();
    let audience = while_patient(&mut audience, &mut asks).await.and_then(Result::ok);
    let log_failure = std::iter::from_fn(|| events.try_recv().ok()).find_map(|event| match event {
        Event::LogFailed { fault } => Some(fault),
        _ => None,
    });
    Ok(Ended { run, audience, secrets: host.secrets().clone(), redaction: host.redaction(), journal: host.give_journal(), log_failure })
}

fn carry_out(host: &mut Host, effects: Vec<Effect>, run: &Run, outcomes: &mut VecDeque<Event>) {
    for effect in effects {
        outcomes.extend(host.carry_out(effect, run));
    }
}

fn event_of(ask: Ask) -> Event {
    match ask {
        Ask::End => Event::Cancel,
        Ask::EndNow => Event::CancelNow,
    }
}

async fn passed(deadline: Option<Deadline>, clock: &Clock) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline.remaining(clock.now())).await,
        None => std::future::pending().await,
    }
}

/// Waits for `future`, but not for long once somebody wants the job to end.
async fn while_patient<F: Future>(future: F, asks: &mut Asks) -> Option<F::Output> {
    let mut future = pin!(future);
    while asks.latest.is_none() {
        tokio::select! {
            biased;
            outcome = &mut future => return Some(outcome),
            _ = asks.next() => {}
        }
    }
    tokio::time::timeout(PATIENCE, future).await.ok()
}

/// What comes from outside.
#[derive(Debug)]
pub struct Asks {
    /// `None`: closed, nothing comes any more.
    channel: Option<mpsc::UnboundedReceiver<Ask>>,
    pub latest: Option<Ask>,
}

impl Asks {
    /// May be dropped and called again.
    pub async fn next(&mut self) -> Ask {
        if let Some(channel) = &mut self.channel {
            if let Some(ask) = channel.recv().await {
                self.latest = Some(ask);
                return ask;
            }
            self.channel = None;
        }
        std::future::pending().await
    }
}

/// Both clocks.
#[derive(Debug)]
struct Clock {
    start: Instant,
}

impl Clock {
    fn now(&self) -> Now {
        let wall = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        Now { monotonic: self.start.elapsed(), wall: Timestamp::from_nanoseconds(wall) }
    }
}
