//! The loop: what happened goes into the controller, what it wants is carried out, one task per effect; the outcome is the next event.

mod agents;
mod instances;
mod polls;
mod records;
mod reports;

use crate::ports::{Job, JobSource};
use crate::seal::{Seal, SealBroken};
use crate::state::State;
use agents::Agents;
pub use agents::id_at_agent;
use polls::Polls;
use runner_control::effect::{Effect, Exit};
use runner_control::event::Event;
use runner_control::id::{JobId, RunnerId};
use runner_control::{Controller, Seed};
use runner_fleeting::InstanceGroup;
use runner_gitlab::Token;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use step_model::time::{Now, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// One entry of the configuration, as the loop needs it.
pub struct Runner {
    pub source: Arc<dyn JobSource>,
    pub group: Arc<dyn InstanceGroup>,
    /// Seals the records of its jobs.
    pub seal: Seal,
    /// The tokens that it had before, with their seals: records from then open with them.
    pub former: Mutex<Vec<(Token, Seal)>>,
}

impl Runner {
    pub fn new(source: Arc<dyn JobSource>, group: Arc<dyn InstanceGroup>, seal: Seal) -> Self {
        Self { source, group, seal, former: Mutex::default() }
    }

    /// # Errors
    /// No token that this runner has or had seals like this.
    fn open(&self, sealed: &[u8], belongs_to: &str) -> Result<Vec<u8>, SealBroken> {
        let opened = self.seal.open(sealed, belongs_to);
        if opened != Err(SealBroken::OtherKey) {
            return opened;
        }
        let former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        former.iter().find_map(|(_, seal)| seal.open(sealed, belongs_to).ok()).ok_or(SealBroken::OtherKey)
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner")
    }
}

/// Everything that effects act on.
#[derive(Debug)]
pub struct World {
    /// A reload adds some; none is taken away, since its jobs may still run.
    runners: RwLock<BTreeMap<RunnerId, Arc<Runner>>>,
    state: State,
    jobs: Mutex<BTreeMap<JobId, Arc<Job>>>,
    agents: Agents,
    polls: Polls,
    events: UnboundedSender<Event>,
}

impl World {
    /// `events`: where everybody tells what happened.
    pub fn new(runners: BTreeMap<RunnerId, Runner>, state: State, events: UnboundedSender<Event>) -> Arc<Self> {
        let runners = RwLock::new(runners.into_iter().map(|(id, runner)| (id, Arc::new(runner))).collect());
        Arc::new(Self { runners, state, jobs: Mutex::default(), agents: Agents::default(), polls: Polls::default(), events })
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more: the process is about to end.
        let _ = self.events.send(event);
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that this process has to do with. `None`: it was forgotten, and what is wanted of it comes too late.
    fn job(&self, id: &JobId) -> Option<Arc<Job>> {
        self.jobs().get(id).cloned()
    }

    /// Makes a job known, so that effects about it can be carried out. One that is known stays as it is.
    pub fn add(&self, job: Job) -> Arc<Job> {
        self.jobs().entry(job.id.clone()).or_insert_with(|| Arc::new(job)).clone()
    }

    fn runner(&self, id: &RunnerId) -> Option<Arc<Runner>> {
        self.runners.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Runners that a new configuration brings, or brings again.
    pub fn serve_also(&self, runners: BTreeMap<RunnerId, Runner>) {
        let mut known = self.runners.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(runners.into_iter().map(|(id, runner)| (id, Arc::new(runner))));
    }

    /// Releases the groups, whose plugins end.
    pub async fn shut_down(&self) {
        let groups: Vec<_> =
            self.runners.read().unwrap_or_else(PoisonError::into_inner).values().map(|runner| runner.group.clone()).collect();
        for group in groups {
            // It has a time limit of its own, and there is nobody to tell.
            let _ = group.shutdown().await;
        }
    }

    /// Starts one task. Whatever has to keep its order is begun here, before the task.
    fn carry_out(self: &Arc<Self>, effect: Effect) {
        tracing::debug!(?effect, "effect");
        match effect {
            Effect::Take { id, runner, open } => self.take(id, runner, open),
            Effect::Withdraw { take } => self.polls.withdraw(take),
            Effect::Verify { id, runner } => self.verify(id, runner),
            Effect::Save { id, record } => self.save(id, &record),
            Effect::Heartbeat { id, job } => self.heartbeat(id, job),
            Effect::Accept { id, job } => self.accept(id, job),
            Effect::Increase { id, runner, ask } => self.increase(id, runner, ask),
            Effect::Decrease { id, runner, instances } => self.decrease(id, runner, instances),
            Effect::Update { id, runner } => self.update(id, runner),
            Effect::Inspect { id, instance } => self.inspect(id, instance),
            Effect::Connect { id, instance, .. } => self.connect(id, instance),
            Effect::Disconnect { instance } => self.agents.drop(&instance),
            Effect::Dispatch { id, job, instance, time_limit, .. } => self.dispatch(id, job, instance, time_limit),
            Effect::Follow { id, job, instance, .. } => self.follow(id, job, instance),
            Effect::Cancel { id, job, instance, how, .. } => self.cancel(id, job, instance, how),
            Effect::Close { id, job, instance, .. } => self.close(id, job, instance),
            Effect::Report { id, job, report } => self.report(id, job, report),
            Effect::Forget { job } => self.forget(&job),
            Effect::Disown { job } => self.disown(&job),
            Effect::Exit { .. } => {}
        }
    }
}

/// What jitter and ids of this process come from.
pub fn seed() -> Seed {
    Seed(RandomState::new().hash_one(0))
}

/// Both clocks, from one moment.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Timestamp::from_nanoseconds(i64::try_from(wall.as_nanos()).unwrap_or(i64::MAX));
        Now { monotonic: self.0.elapsed(), wall }
    }
}

/// Nothing is due: whatever comes next is an event.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A look at the controller between two events.
pub type Look = Box<dyn FnOnce(&Controller) + Send>;

/// Runs until the controller says that the process may end. `looks`: of those who only want to see.
pub async fn run(
    mut controller: Controller,
    first: Vec<Effect>,
    world: Arc<World>,
    mut happened: UnboundedReceiver<Event>,
    mut looks: UnboundedReceiver<Look>,
    clock: Clock,
) -> Exit {
    let mut effects = first;
    loop {
        for effect in effects.drain(..) {
            if let Effect::Exit { how } = effect {
                return how;
            }
            world.carry_out(effect);
        }
        let rest = controller.next_deadline().map_or(FOR_EVER, |deadline| deadline.remaining(clock.now()));
        let event = tokio::select! {
            biased;
            // The world holds a sender, so there is always a next event.
            event = happened.recv() => event.unwrap_or(Event::Woken),
            Some(look) = looks.recv() => {
                look(&controller);
                continue;
            }
            () = tokio::time::sleep(rest) => Event::Woken,
        };
        tracing::debug!(?event, "event");
        effects = controller.on(event, clock.now());
    }
}
