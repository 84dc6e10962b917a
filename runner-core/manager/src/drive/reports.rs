//! Telling the server of jobs.

use super::World;
use crate::ports::Standing;
use runner_control::event::{Acknowledgement, Event, ReportAnswer};
use runner_control::id::{EffectId, JobId};
use runner_control::report::Report;
use std::sync::Arc;

impl World {
    pub(super) fn heartbeat(self: &Arc<Self>, id: EffectId, job: JobId) {
        self.acknowledge(job, Standing::Prepared, move |job, answer| Event::Beaten { id, job, answer });
    }

    pub(super) fn accept(self: &Arc<Self>, id: EffectId, job: JobId) {
        self.acknowledge(job, Standing::Runs, move |job, answer| Event::Accepted { id, job, answer });
    }

    fn acknowledge(self: &Arc<Self>, id: JobId, standing: Standing, event: impl FnOnce(JobId, Acknowledgement) -> Event + Send + 'static) {
        let found = self.job(&id).zip(self.runner(&id.runner));
        let Some((job, source)) = found.map(|(job, runner)| (job, runner.source.clone())) else {
            return self.tell(event(id, Acknowledgement::Failed { reason: "the job is not known here".to_owned() }));
        };
        let world = self.clone();
        tokio::spawn(async move {
            let answer = source.acknowledge(&job, standing).await;
            world.tell(event(id, answer));
        });
    }

    pub(super) fn report(self: &Arc<Self>, id: EffectId, job: JobId, report: Report) {
        let found = self.job(&job).zip(self.runner(&job.runner));
        let Some((known, source)) = found.map(|(known, runner)| (known, runner.source.clone())) else {
            let answer = ReportAnswer::Failed { reason: "the job is not known here".to_owned() };
            return self.tell(Event::Reported { id, job, answer });
        };
        let world = self.clone();
        tokio::spawn(async move {
            let answer = source.report(&known, report).await;
            world.tell(Event::Reported { id, job, answer });
        });
    }
}
