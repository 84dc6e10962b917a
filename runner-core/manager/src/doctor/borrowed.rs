//! One instance of a group: one that is there, or one that is made for a moment and removed again.

use super::sheet::Trouble;
use runner_fleeting::{Change, Failure, Hosted, Instance, InstanceGroup as _, InstanceId, State};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Between two looks at a group that makes an instance.
const LOOKS: Duration = Duration::from_millis(200);

/// For the removal of what was made.
const TO_REMOVE: Duration = Duration::from_secs(60);

/// A group, and what was made in it.
#[derive(Debug)]
pub struct Borrowed {
    group: Hosted,
    /// Who was there before one was asked for. `None`: none was.
    before: Option<BTreeSet<InstanceId>>,
}

/// What there is to try.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    There(InstanceId),
    Made(InstanceId),
    /// None is there, and none may be made.
    Nothing,
}

impl Borrowed {
    pub fn of(group: Hosted) -> Self {
        Self { group, before: None }
    }

    pub fn group(&self) -> &Hosted {
        &self.group
    }

    /// # Errors
    /// The group gives none, in time.
    pub async fn instance(&mut self, may_make: bool, wait: Duration) -> Result<Found, Trouble> {
        let listed = self.group.update().await.map_err(|failure| trouble(&failure))?;
        if let Some(there) = listed.iter().find(|instance| instance.state == State::Running) {
            return Ok(Found::There(there.id.clone()));
        }
        if !may_make {
            return Ok(Found::Nothing);
        }
        self.before = Some(listed.into_iter().map(|instance| instance.id).collect());
        let changed = self.group.change(Change::Increase(1)).await.map_err(|failure| trouble(&failure))?;
        if changed.count == 0 {
            let why = changed.trouble.unwrap_or_else(|| "the plugin makes no instance, and does not say why".to_owned());
            return Err(Trouble::new(why, HINT));
        }
        let began = Instant::now();
        loop {
            let listed = self.group.update().await.map_err(|failure| trouble(&failure))?;
            match self.made(&listed).next() {
                Some(Instance { id, state: State::Running }) => return Ok(Found::Made(id.clone())),
                Some(Instance { id, state: state @ (State::Timeout | State::Deleted | State::Deleting) }) => {
                    return Err(Trouble::new(format!("the instance `{id}` was given up while it was made: {state}"), HINT));
                }
                _ if began.elapsed() > wait => {
                    return Err(Trouble::new(
                        format!("no instance is ready after {} s", wait.as_secs()),
                        "`--wait SECONDS` waits longer; the plugin's messages say how far it came",
                    ));
                }
                _ => tokio::time::sleep(LOOKS).await,
            }
        }
    }

    /// Those that came since one was asked for.
    fn made<'a>(&self, listed: &'a [Instance]) -> impl Iterator<Item = &'a Instance> {
        let before = self.before.clone();
        listed.iter().filter(move |instance| before.as_ref().is_some_and(|before| !before.contains(&instance.id)))
    }

    /// Removes what was made, and lets the plugin go. Returns what is left behind, in words.
    pub async fn give_back(&mut self) -> Option<String> {
        let removed = tokio::time::timeout(TO_REMOVE, self.remove()).await;
        let left = match removed {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(format!("an instance that was made could not be removed: {failure}")),
            Err(_) => Some(format!("an instance that was made is not gone after {} s", TO_REMOVE.as_secs())),
        };
        // It has a time limit of its own.
        let _ = self.group.shutdown().await;
        self.group.end().await;
        left
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        if self.before.is_none() {
            return Ok(());
        }
        loop {
            let listed = self.group.update().await?;
            let made: Vec<InstanceId> = self.made(&listed).map(|instance| instance.id.clone()).collect();
            if made.is_empty() {
                self.before = None;
                return Ok(());
            }
            let is_going = |instance: &Instance| matches!(instance.state, State::Deleting | State::Deleted | State::Timeout);
            let open: Vec<InstanceId> =
                self.made(&listed).filter(|instance| !is_going(instance)).map(|instance| instance.id.clone()).collect();
            if !open.is_empty() {
                self.group.change(Change::Decrease(open)).await?;
            }
            tokio::time::sleep(LOOKS).await;
        }
    }
}

const HINT: &str = "the messages of the plugin above say why; quota, images and rights are the usual reasons";

fn trouble(failure: &Failure) -> Trouble {
    Trouble::new(failure.to_string(), HINT)
}
