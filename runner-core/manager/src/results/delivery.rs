//! Gives results to the service, the oldest first, several at once. One that cannot be taken waits, with all others, until the service is back.

use super::opened::{Service, Why};
use super::shelf::Key;
use super::store::Store;
use runner_config::settings::Results as Settings;
use runner_control::backoff::Backoff;
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// So many calls are open at once: a service that is far away answers as many in one round trip.
const AT_ONCE: usize = 16;

/// Nothing waits: whatever comes next wakes.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// What sends. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Delivery {
    service: Service,
    store: Arc<Store>,
    wake: Arc<Notify>,
    is_idle: Arc<watch::Sender<bool>>,
}

/// How it stands with sending: the pure part.
#[derive(Debug, Default)]
struct Standing {
    /// In a row.
    failures: u32,
    /// Nothing is sent before then. Since the beginning.
    waits_until: Option<Duration>,
    on_their_way: BTreeSet<Key>,
    /// Those that the service does not want, until the next process tries them again.
    set_aside: BTreeSet<Key>,
    said: Option<String>,
}

impl Standing {
    /// The next ones to be sent: they are on their way from now on.
    fn chosen(&mut self, unsent: Vec<Key>, now: Duration) -> Vec<Key> {
        if self.waits_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        self.waits_until = None;
        let free = AT_ONCE.saturating_sub(self.on_their_way.len());
        let open = unsent.into_iter().filter(|key| !self.on_their_way.contains(key) && !self.set_aside.contains(key));
        let chosen: Vec<Key> = open.take(free).collect();
        self.on_their_way.extend(chosen.iter().cloned());
        chosen
    }

    /// `fraction`: the dice, from zero to below one. Returns what an operator is told: of a service that is away once.
    fn on(&mut self, key: Key, outcome: Result<(), Why>, now: Duration, fraction: f64) -> Option<String> {
        self.on_their_way.remove(&key);
        match outcome {
            Ok(()) => {
                (self.failures, self.waits_until) = (0, None);
                self.said.take().map(|_| "the results service takes results again".to_owned())
            }
            Err(Why::Unwanted(why)) => {
                let told = format!("the results service does not take {}: {why}", key.1);
                self.set_aside.insert(key);
                Some(told)
            }
            Err(Why::Away(why)) => {
                // Of several that failed together one counts.
                if self.waits_until.is_none() {
                    self.waits_until = Some(now + Backoff::SERVER.wait(self.failures, fraction));
                    self.failures = self.failures.saturating_add(1);
                }
                let told = (self.said.as_ref() != Some(&why)).then(|| format!("results wait for the results service: {why}"));
                self.said = Some(why);
                told
            }
        }
    }

    /// Nothing is on its way, and nothing can be sent now.
    fn is_idle(&self) -> bool {
        self.on_their_way.is_empty()
    }
}

impl Delivery {
    /// # Errors
    /// There can be no service at this address, or its certificates cannot be read.
    pub fn new(address: &str, settings: &Settings, store: Arc<Store>) -> Result<Self, String> {
        let service = Service::of(address, settings)?;
        Ok(Self { service, store, wake: Arc::default(), is_idle: Arc::new(watch::Sender::new(false)) })
    }

    /// There is something to send.
    pub fn wake(&self) {
        self.is_idle.send_replace(false);
        self.wake.notify_one();
    }

    /// Comes back when nothing is on its way: all was taken, or the service is away.
    pub async fn until_idle(&self) {
        // The sender lives as long as this value.
        let _ = self.is_idle.subscribe().wait_for(|is_idle| *is_idle).await;
    }

    /// Sends for as long as it is let.
    pub async fn run(self) {
        let (began, mut standing, mut sending) = (Instant::now(), Standing::default(), JoinSet::new());
        loop {
            for key in standing.chosen(self.store.unsent(), began.elapsed()) {
                sending.spawn(self.clone().send(key));
            }
            self.is_idle.send_replace(standing.is_idle());
            let rest = standing.waits_until.map_or(FOR_EVER, |until| until.saturating_sub(began.elapsed()));
            tokio::select! {
                Some(sent) = sending.join_next() => {
                    let Ok((key, outcome)) = sent else { continue };
                    if let Some(told) = standing.on(key, outcome, began.elapsed(), fraction()) {
                        tracing::warn!("{told}");
                    }
                }
                () = self.wake.notified() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    async fn send(self, key: Key) -> (Key, Result<(), Why>) {
        let outcome = match self.store.read(&key) {
            Ok(kept) => self.service.report(kept).await,
            Err(fault) => Err(Why::Unwanted(format!("it cannot be read: {fault}"))),
        };
        if outcome.is_ok() {
            self.store.mark_sent(&key);
        }
        (key, outcome)
    }
}

fn fraction() -> f64 {
    let dice = RandomState::new().hash_one(0);
    // The upper 53 bits: as many as a number of this kind holds.
    (dice >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u64) -> Key {
        (Duration::from_secs(at), format!("r~{at}").into())
    }

    fn away() -> Result<(), Why> {
        Err(Why::Away("connection refused".to_owned()))
    }

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn a_service_that_is_away_is_said_once_and_asked_ever_more_rarely() {
        let mut standing = Standing::default();
        assert_eq!(standing.chosen(vec![key(1), key(2)], NOW).len(), 2);
        let told = standing.on(key(1), away(), NOW, 0.0);
        assert_eq!(told.as_deref(), Some("results wait for the results service: connection refused"));
        assert_eq!((standing.on(key(2), away(), NOW, 0.0), standing.failures), (None, 1), "they failed together");
        assert_eq!(standing.chosen(vec![key(1)], NOW), []);
        let later = NOW + Duration::from_secs(1);
        assert_eq!(standing.chosen(vec![key(1)], later), [key(1)]);
        assert_eq!(standing.on(key(1), away(), later, 0.5), None);
        assert_eq!(standing.waits_until, Some(later + Duration::from_millis(1500)));
        let told = standing.on(key(1), Ok(()), later, 0.0);
        assert_eq!((told.as_deref(), standing.failures), (Some("the results service takes results again"), 0));
    }

    #[test]
    fn one_that_the_service_does_not_want_holds_up_no_other() {
        let mut standing = Standing::default();
        let told = standing.on(key(1), Err(Why::Unwanted("too large".to_owned())), NOW, 0.0);
        assert_eq!(told.as_deref(), Some("the results service does not take r~1: too large"));
        assert_eq!(standing.chosen(vec![key(1), key(3)], NOW), [key(3)]);
    }

    #[test]
    fn nothing_is_sent_twice_at_once_and_not_too_much() {
        let mut standing = Standing::default();
        let all: Vec<Key> = (0..100).map(key).collect();
        assert_eq!(standing.chosen(all.clone(), NOW), all[..AT_ONCE]);
        assert_eq!(standing.chosen(all.clone(), NOW), []);
        standing.on(key(3), Ok(()), NOW, 0.0);
        assert_eq!(standing.chosen(all[AT_ONCE..].to_vec(), NOW), all[AT_ONCE..=AT_ONCE]);
        assert!(!standing.is_idle());
    }
}
