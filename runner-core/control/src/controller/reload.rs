//! A new configuration, without touching jobs that run.

use super::Controller;
use crate::agenda::Subject;
use crate::health::ServerHealth;
use crate::id::InstanceId;
use crate::runner::Runner;
use crate::settings::Settings;
use step_model::time::Deadline;

impl Controller {
    pub(super) fn on_reloaded(&mut self, settings: Settings) {
        let settle_by = Deadline::after(self.desk.now, crate::job::LOSS_PATIENCE);
        for (id, new) in &settings.runners {
            match self.runners.get_mut(id) {
                Some(runner) => {
                    runner.settings = new.clone();
                    runner.is_removed = false;
                    runner.intake.health = ServerHealth::default();
                    runner.fleet.recount(&new.environments);
                    runner.fleet.scaler.reconfigured();
                }
                None => {
                    self.runners.insert(id.clone(), Runner::new(new.clone(), None, settle_by));
                }
            }
        }
        for (id, runner) in &mut self.runners {
            runner.is_removed = !settings.runners.contains_key(id);
            self.desk.touch_runner(id);
            for (name, _) in runner.fleet.instances() {
                self.desk.touch_instance(&InstanceId::new(id, name));
            }
        }
        self.settings = settings;
        self.desk.touch(Subject::Process);
    }
}
