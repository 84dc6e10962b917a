//! A group follows its policies: instances are asked for when slots are missing, and go when they have been idle for long enough.

use super::Controller;
use super::ending::Mode;
use crate::desk::Desk;
use crate::effect::{Ask, Effect};
use crate::fleet::instance::Retired;
use crate::id::{InstanceId, RunnerId};
use crate::runner::Runner;
use crate::taskscaler::required::Required;
use std::time::Duration;
use step_model::time::{Deadline, Now};

/// How long an announcement is believed when nobody repeats it.
const ANNOUNCEMENT: Duration = Duration::from_secs(10 * 60);

impl Controller {
    /// Jobs of this runner are known to come. The latest word counts.
    pub(super) fn on_announced(&mut self, runner: &RunnerId, jobs: u32) {
        let until = Deadline::after(self.desk.now, ANNOUNCEMENT);
        if let Some(known) = self.runners.get_mut(runner) {
            known.announced = jobs;
            known.announced_until = (jobs > 0).then_some(until);
            self.desk.touch_runner(runner);
        }
    }
}

/// Called with whatever has changed; costs the same with ten instances as with ten thousand.
pub(super) fn scale(id: &RunnerId, runner: &mut Runner, mode: Mode, desk: &mut Desk) {
    let now = desk.now;
    let is_serving = mode == Mode::Serving && !runner.is_removed && runner.settings.refused.is_none();
    let Some(target) = runner.fleet.scaler.target(&runner.settings.environments.scaling, now) else { return };
    let on_demand = (!is_serving).then(|| target.clone().on_demand());
    let Some(target) = on_demand.as_ref().or(runner.fleet.scaler.current()) else { return };
    let (required, idle_time) = (target.required(&runner.figures(), &runner.limits()), target.idle_time());
    let is_growing = is_serving || (mode != Mode::Stopping && !runner.queue.is_empty());
    let is_held = is_growing && grow(id, runner, required.grow, desk);
    let idle_time = if runner.is_removed { Duration::ZERO } else { idle_time };
    let idle_at = if is_serving || runner.is_removed { shrink(id, runner, required, idle_time, desk) } else { None };
    let throttle = runner.settings.environments.scaling.throttle();
    let due = runner.fleet.scaler.due(is_held, throttle, now);
    runner.fleet.scale_at = due.into_iter().chain(idle_at).min();
}

/// True: some of them are asked for later.
fn grow(id: &RunnerId, runner: &mut Runner, missing: u32, desk: &mut Desk) -> bool {
    let now = desk.now;
    let throttle = runner.settings.environments.scaling.throttle();
    let patience = runner.settings.environments.creation_timeout;
    let fleet = &mut runner.fleet;
    let count = fleet.scaler.grow(missing, throttle, now);
    let ask = Ask::Count(count);
    if count > 0 && desk.attempt(&mut fleet.increase, |increase| Effect::Increase { id: increase, runner: id.clone(), ask }) {
        fleet.scaler.asked(count, throttle, now);
        fleet.requested += count;
        fleet.increasing = count;
        fleet.requested_until = Some(Deadline::after(now, patience));
        return count < missing;
    }
    missing > 0
}

/// The longest idle go first. Given: when the next one may.
fn shrink(id: &RunnerId, runner: &mut Runner, required: Required, idle_time: Duration, desk: &mut Desk) -> Option<Deadline> {
    let now = desk.now;
    for gone in 0..required.shrink {
        let (since, name) = runner.fleet.longest_idle()?;
        let goes_at = Deadline::after(Now { monotonic: since, wall: now.wall }, idle_time);
        let is_due = goes_at.has_passed(now);
        if !is_due && gone >= required.at_once {
            return Some(goes_at);
        }
        let why = if is_due { Retired::Idle } else { Retired::Surplus };
        let name = name.clone();
        runner.fleet.change(&name, &runner.settings.environments, |instance| instance.retire(why));
        desk.touch_instance(&InstanceId::new(id, &name));
    }
    None
}
