//! The log of a served job, and the moment of its first step: what its fronts are told of.

use super::fronts::Told;
use super::spool::Spool;
use super::{Audience, Stream};
use std::io;
use step_engine::run::Headline;
use step_model::result::StepId;
use step_model::time::Timestamp;
use tokio::sync::watch;

/// Writes the log, and tells when the job has started.
#[derive(Debug)]
pub struct Watched {
    pub spool: Spool,
    told: watch::Sender<Told>,
}

impl Watched {
    pub fn new(spool: Spool, told: watch::Sender<Told>) -> Self {
        Self { spool, told }
    }
}

impl Audience for Watched {
    fn started(&mut self, step: StepId, headline: &Headline) {
        if step == StepId::ROOT {
            self.told.send_modify(|told| told.start = headline.start.map(Timestamp::nanoseconds));
        }
        self.spool.started(step, headline);
    }

    fn output(&mut self, step: StepId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.spool.output(step, stream, bytes)
    }

    fn said(&mut self, step: StepId, line: &str, warning: bool) {
        self.spool.said(step, line, warning);
    }

    fn ended(&mut self, step: StepId, headline: &Headline, tail: &[u8]) {
        self.spool.ended(step, headline, tail);
    }

    fn holds_back(&self) -> bool {
        self.spool.holds_back()
    }

    fn quiet(&mut self) {
        self.spool.quiet();
    }
}
