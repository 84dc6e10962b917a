//! A runner is moved on: waiting jobs get places, environments are asked for and removed, polls are opened.

use super::Controller;
use super::ending::Mode;
use crate::agenda::Subject;
use crate::desk::Desk;
use crate::effect::{Ask, Effect};
use crate::fleet::instance::Retired;
use crate::id::{InstanceId, InstanceName, JobId, RunnerId};
use crate::runner::Runner;
use crate::settings::Shape;
use crate::taskscaler::policy::Scaling;
use step_model::time::Deadline;

impl Controller {
    pub(super) fn advance_runner(&mut self, id: &RunnerId) {
        if self.mode == Mode::Detaching {
            return;
        }
        self.place_waiting(id);
        let mode = self.mode;
        let Some(runner) = self.runners.get_mut(id) else { return };
        refresh(runner, &self.desk);
        resize(id, runner, mode, &mut self.desk);
        remove(id, runner, &mut self.desk);
        update(id, runner, &mut self.desk);
        self.feed(id);
        let now = self.desk.now;
        let due = self.runners.get(id).and_then(|runner| runner.due(now));
        self.desk.agenda.set(&Subject::Runner(id.clone()), due);
        if self.runners.get(id).is_some_and(Runner::is_over) {
            self.runners.remove(id);
            self.desk.agenda.set(&Subject::Runner(id.clone()), None);
        }
    }

    /// The earliest job gets the emptiest environment.
    pub(super) fn place_waiting(&mut self, id: &RunnerId) {
        while let Some((job, instance)) = self.next_placement(id) {
            let Some(mut turn) = self.turn(&job) else { return };
            turn.place(instance);
        }
    }

    fn next_placement(&self, id: &RunnerId) -> Option<(JobId, InstanceName)> {
        let runner = self.runners.get(id).filter(|runner| runner.settings.environments.shape == Shape::Group)?;
        let (_, job) = runner.queue.first_key_value()?;
        Some((job.clone(), runner.fleet.best_free()?.clone()))
    }
}

/// What waited for a time that has come, waits no more.
fn refresh(runner: &mut Runner, desk: &Desk) {
    let (now, fleet) = (desk.now, &mut runner.fleet);
    fleet.increase.refresh(now);
    fleet.update.refresh(now);
    fleet.decrease.refresh(now);
    runner.intake.health.probe.refresh(now);
    runner.intake.health.allows(now);
    if runner.announced_until.is_some_and(|deadline| deadline.has_passed(now)) {
        runner.announced = 0;
        runner.announced_until = None;
    }
    // What was granted and never listed will not come any more.
    if fleet.requested_until.is_some_and(|deadline| deadline.has_passed(now)) {
        fleet.requested = 0;
        fleet.requested_until = None;
        fleet.trouble = Some("environments that were granted were never listed".to_owned());
        fleet.scaler.failed(now);
    }
}

/// A group has as many instances as it should, or is asked for the rest, all at once.
fn resize(id: &RunnerId, runner: &mut Runner, mode: Mode, desk: &mut Desk) {
    let environments = &runner.settings.environments;
    let fleet = &mut runner.fleet;
    if environments.shape != Shape::Group || !fleet.is_known {
        return;
    }
    if environments.scaling != Scaling::Fixed {
        return super::scaling::scale(id, runner, mode, desk);
    }
    let is_serving = mode == Mode::Serving && !runner.is_removed && runner.settings.refused.is_none();
    let is_needed = is_serving || (mode != Mode::Stopping && !runner.queue.is_empty());
    let wanted = if is_needed { environments.max_instances } else { 0 };
    let have = fleet.counts.live + fleet.requested;
    // Those that are being removed still count against the most that there may be.
    let room = environments.max_instances.saturating_sub(fleet.len()).saturating_sub(fleet.requested);
    let missing = wanted.saturating_sub(have).min(room);
    if missing > 0 {
        let ask = Ask::Count(missing);
        if desk.attempt(&mut fleet.increase, |increase| Effect::Increase { id: increase, runner: id.clone(), ask }) {
            fleet.requested += missing;
            fleet.increasing = missing;
            fleet.requested_until = Some(Deadline::after(desk.now, environments.creation_timeout));
        }
    }
    let is_wanted_smaller = is_serving || runner.is_removed;
    if is_wanted_smaller && fleet.counts.live > wanted {
        retire_surplus(id, runner, runner_surplus(runner, wanted), desk);
    }
}

fn runner_surplus(runner: &Runner, wanted: u32) -> usize {
    usize::try_from(runner.fleet.counts.live.saturating_sub(wanted)).unwrap_or(usize::MAX)
}

/// The emptiest go first; those with jobs finish them.
fn retire_surplus(id: &RunnerId, runner: &mut Runner, surplus: usize, desk: &mut Desk) {
    let mut candidates: Vec<_> = runner
        .fleet
        .instances()
        .filter(|(_, instance)| instance.is_counted())
        .map(|(name, instance)| (instance.jobs.len(), name.clone()))
        .collect();
    candidates.sort();
    for (_, name) in candidates.into_iter().take(surplus) {
        runner.fleet.change(&name, &runner.settings.environments, |instance| instance.retire(Retired::Surplus));
        desk.touch_instance(&InstanceId::new(id, &name));
    }
}

/// What nobody needs is removed, all of it with one request.
fn remove(id: &RunnerId, runner: &mut Runner, desk: &mut Desk) {
    let fleet = &mut runner.fleet;
    if !fleet.decrease.may_start(desk.now) {
        return;
    }
    let names: Vec<_> = fleet.removable().cloned().collect();
    if names.is_empty() {
        return;
    }
    for name in &names {
        fleet.change(name, &runner.settings.environments, |instance| instance.is_leaving = true);
    }
    fleet.leaving.clone_from(&names);
    desk.attempt(&mut fleet.decrease, |decrease| Effect::Decrease { id: decrease, runner: id.clone(), instances: names });
}

/// The provider is asked what there is, more often while something is expected to change.
fn update(id: &RunnerId, runner: &mut Runner, desk: &mut Desk) {
    let is_needed = !runner.is_removed || !runner.fleet.is_empty() || runner.fleet.requested > 0;
    if is_needed {
        desk.attempt(&mut runner.fleet.update, |update| Effect::Update { id: update, runner: id.clone() });
    }
}
