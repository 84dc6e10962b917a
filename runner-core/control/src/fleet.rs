//! The environments of one runner: what there is, what is coming, and who has a free place. Counts follow each change and are never carried over.

pub(crate) mod instance;

use crate::attempt::Attempt;
use crate::id::{EffectId, InstanceName, JobId};
use crate::settings::{Environments, Shape};
use crate::taskscaler::policy::Scaling;
use crate::taskscaler::scaler::Scaler;
use instance::{Contact, Instance};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use step_model::time::Deadline;

#[derive(Debug, Default)]
pub(crate) struct Fleet {
    instances: BTreeMap<InstanceName, Instance>,
    /// Those with a free place, the one first that the next job should get.
    free: BTreeSet<(u64, InstanceName)>,
    /// Those without a job that are kept for some, the longest idle first.
    idle: BTreeSet<(Duration, InstanceName)>,
    /// Those whose removal may be asked for.
    removable: BTreeSet<InstanceName>,
    /// Those that were made for a job, by job.
    by_job: BTreeMap<JobId, InstanceName>,
    /// Of a provider that is asked per job: made for nobody that is known.
    unclaimed: BTreeSet<InstanceName>,
    pub counts: Counts,
    /// How many there should be.
    pub scaler: Scaler,
    /// When that is looked at again.
    pub scale_at: Option<Deadline>,
    /// Asked for and not listed so far.
    pub requested: u32,
    pub requested_until: Option<Deadline>,
    /// How many of them the open request is about.
    pub increasing: u32,
    /// Requests for one environment that are open, and the job of each.
    pub asked_for: BTreeMap<EffectId, JobId>,
    pub increase: Attempt,
    pub update: Attempt,
    pub decrease: Attempt,
    /// What the open removal is about.
    pub leaving: Vec<InstanceName>,
    /// Something changed while an update was open: ask again.
    pub is_stale: bool,
    /// An update has told what there is.
    pub is_known: bool,
    /// Found at the start and not reached so far.
    pub unsettled: BTreeSet<InstanceName>,
    /// All of it is being removed, since the process ends.
    pub is_closing: bool,
    /// What is gone, and what was asked for latest when that was known: a list that was asked for before may still name it.
    pub gone: BTreeMap<InstanceName, EffectId>,
    /// Why the provider did not do what was asked last.
    pub trouble: Option<String>,
}

/// Sums over all instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Those that there should be.
    pub live: u32,
    /// Places for jobs, now and soon.
    pub free: u32,
    pub coming: u32,
    /// Made for a job that does not hold it yet.
    pub awaited: u32,
    /// About which the provider will soon say something else.
    pub changing: u32,
    /// Of `live`: with a job; not reached so far.
    pub in_use: u32,
    pub creating: u32,
    /// Slots of `live` that jobs hold, and free ones that cannot be given out.
    pub acquired: u32,
    pub unavailable: u32,
}

impl Fleet {
    pub fn get(&self, name: &InstanceName) -> Option<&Instance> {
        self.instances.get(name)
    }

    pub fn instances(&self) -> impl Iterator<Item = (&InstanceName, &Instance)> {
        self.instances.iter()
    }

    pub fn len(&self) -> u32 {
        u32::try_from(self.instances.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// The one way to change an instance: sums and indexes follow. `None`: there is none of this name.
    pub fn change<T>(&mut self, name: &InstanceName, settings: &Environments, change: impl FnOnce(&mut Instance) -> T) -> Option<T> {
        let mut instance = self.take_out(name, settings)?;
        let given = change(&mut instance);
        self.put_in(name.clone(), instance, settings);
        Some(given)
    }

    pub fn insert(&mut self, name: InstanceName, instance: Instance, settings: &Environments) {
        debug_assert!(!self.instances.contains_key(&name), "{name} is there already");
        self.put_in(name, instance, settings);
    }

    pub fn remove(&mut self, name: &InstanceName, settings: &Environments) -> Option<Instance> {
        self.unsettled.remove(name);
        self.take_out(name, settings)
    }

    /// The one that a job should get.
    pub fn best_free(&self) -> Option<&InstanceName> {
        self.free.first().map(|(_, name)| name)
    }

    /// The one that has had no job for longest, and since when.
    pub fn longest_idle(&self) -> Option<(Duration, &InstanceName)> {
        self.idle.first().map(|(since, name)| (*since, name))
    }

    pub fn made_for(&self, job: &JobId) -> Option<&InstanceName> {
        self.by_job.get(job)
    }

    pub fn removable(&self) -> impl Iterator<Item = &InstanceName> {
        self.removable.iter()
    }

    pub fn unclaimed(&self) -> impl Iterator<Item = &InstanceName> {
        self.unclaimed.iter()
    }

    /// The provider did not give what was asked for last, and is asked again later: nobody counts on more until then.
    pub fn is_refused(&self) -> bool {
        self.increase.failures() > 0 && (self.increase.is_open() || self.increase.due().is_some())
    }

    /// It did not, and could be asked again: one instance shows whether it does now.
    pub fn is_on_trial(&self) -> bool {
        self.increase.failures() > 0
    }

    pub fn expects_change(&self) -> bool {
        self.requested > 0 || self.counts.changing > 0
    }

    /// Sums and indexes anew, after capacities have changed.
    pub fn recount(&mut self, settings: &Environments) {
        let instances = std::mem::take(&mut self.instances);
        self.free.clear();
        self.idle.clear();
        self.removable.clear();
        self.by_job.clear();
        self.unclaimed.clear();
        self.counts = Counts::default();
        instances.into_iter().for_each(|(name, instance)| self.put_in(name, instance, settings));
    }

    /// # Panics
    /// The sums or the indexes are not those of the instances.
    pub fn check_counts(&self, settings: &Environments) {
        let mut anew = Self::default();
        for (name, instance) in &self.instances {
            anew.index(name, instance, settings);
        }
        assert_eq!(self.counts, anew.counts, "sums follow the instances");
        assert_eq!(self.free, anew.free, "those with a free place are known");
        assert_eq!(self.idle, anew.idle, "those without a job are known");
        assert_eq!(self.removable, anew.removable, "those that nobody needs are known");
        assert_eq!(self.by_job, anew.by_job, "those that were made for a job are known");
        assert_eq!(self.unclaimed, anew.unclaimed, "those that were made for nobody are known");
    }

    fn put_in(&mut self, name: InstanceName, instance: Instance, settings: &Environments) {
        self.index(&name, &instance, settings);
        self.instances.insert(name, instance);
    }

    fn index(&mut self, name: &InstanceName, instance: &Instance, settings: &Environments) {
        let share = Share::of(instance, settings);
        self.counts.live += share.live;
        self.counts.free += share.free;
        self.counts.coming += share.coming;
        self.counts.awaited += share.awaited;
        self.counts.changing += share.changing;
        self.counts.in_use += share.in_use;
        self.counts.creating += share.creating;
        self.counts.acquired += share.acquired;
        self.counts.unavailable += share.unavailable;
        if share.free > 0 {
            self.free.insert((share.rank, name.clone()));
        }
        if let Some(since) = instance.removable_since() {
            self.idle.insert((since, name.clone()));
        }
        if instance.is_removable() {
            self.removable.insert(name.clone());
        }
        match &instance.for_job {
            Some(job) => {
                self.by_job.insert(job.clone(), name.clone());
            }
            None if settings.shape == Shape::PerJob => {
                self.unclaimed.insert(name.clone());
            }
            None => {}
        }
    }

    fn take_out(&mut self, name: &InstanceName, settings: &Environments) -> Option<Instance> {
        let instance = self.instances.remove(name)?;
        let share = Share::of(&instance, settings);
        self.counts.live -= share.live;
        self.counts.free -= share.free;
        self.counts.coming -= share.coming;
        self.counts.awaited -= share.awaited;
        self.counts.changing -= share.changing;
        self.counts.in_use -= share.in_use;
        self.counts.creating -= share.creating;
        self.counts.acquired -= share.acquired;
        self.counts.unavailable -= share.unavailable;
        if share.free > 0 {
            self.free.remove(&(share.rank, name.clone()));
        }
        if let Some(since) = instance.removable_since() {
            self.idle.remove(&(since, name.clone()));
        }
        self.removable.remove(name);
        self.unclaimed.remove(name);
        if let Some(job) = &instance.for_job {
            self.by_job.remove(job);
        }
        Some(instance)
    }
}

/// What one instance adds to the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    live: u32,
    pub free: u32,
    pub coming: u32,
    awaited: u32,
    changing: u32,
    in_use: u32,
    creating: u32,
    acquired: u32,
    unavailable: u32,
    /// Lower is taken first.
    rank: u64,
}

impl Share {
    pub fn of(instance: &Instance, settings: &Environments) -> Self {
        // One that was made for a job is free for that job alone.
        let is_open = settings.shape == Shape::Group;
        let is_live = instance.is_counted();
        let of_live = |count: u32| if is_live { count } else { 0 };
        Self {
            live: u32::from(is_live),
            free: if is_open { instance.free(settings) } else { 0 },
            coming: if is_open { instance.coming(settings) } else { 0 },
            awaited: u32::from(instance.is_awaited()),
            changing: u32::from(instance.is_changing()),
            in_use: of_live(u32::from(!instance.is_empty())),
            creating: of_live(u32::from(instance.contact == Contact::Never)),
            acquired: of_live(instance.used()),
            unavailable: of_live(instance.unavailable(settings)),
            rank: rank(instance, settings),
        }
    }
}

/// Of a fixed number the emptiest is taken; where the number follows the load, the oldest, so that the others can go; of machines the newest, as docker+machine
/// does.
fn rank(instance: &Instance, settings: &Environments) -> u64 {
    let ready = instance.ready_since.unwrap_or_default().as_millis();
    let ready = u64::try_from(ready).unwrap_or(u64::MAX);
    match settings.scaling {
        Scaling::Fixed => u64::from(instance.used()),
        Scaling::Slots(_) => ready,
        Scaling::Machines(_) => u64::MAX - ready,
    }
}
