//! Keeping records of jobs, and forgetting them.

use super::{Runner, World};
use crate::kept::{FoundJob, KeptJob};
use crate::seal::Seal;
use crate::state::Kept;
use runner_control::event::Event;
use runner_control::id::{EffectId, JobId, RunnerId};
use runner_control::record::Record;
use runner_gitlab::Token;
use std::sync::{Arc, PoisonError};

/// What follows the runner in the key of its former tokens.
const FORMER: &str = "#former";

/// So many are kept: a token that is changed every day, and a job of a week.
const MOST_FORMER: usize = 8;

/// What a record is of, in the state.
pub fn key(job: &JobId) -> String {
    format!("{}#{}", job.runner, job.number)
}

impl World {
    /// Changes of one record reach the state in the order of their effects: what is to be written is handed over before the task begins.
    pub(super) fn save(self: &Arc<Self>, id: EffectId, record: &Record) {
        let job = record.job.clone();
        let found = self.job(&job).zip(self.runner(&job.runner));
        let Some((known, runner)) = found else {
            return self.tell(Event::Saved { id, job, outcome: Err("the job is not known here".to_owned()) });
        };
        let key = key(&job);
        let sealed = runner.seal.seal(&KeptJob { record, kept: &known.kept }.to_bytes(), &key);
        known.set_owner_record(sealed.clone());
        let written = self.state.put(key, sealed);
        let world = self.clone();
        tokio::spawn(async move {
            let outcome = written.await.map_err(|fault| fault.to_string());
            world.tell(Event::Saved { id, job, outcome });
        });
    }

    /// The records of the process before, so that the controller can go on with their jobs. One that cannot be read stays where it is.
    pub fn recover(&self, kept: &[Kept]) -> Vec<Record> {
        let mut records = Vec::new();
        let (former, jobs): (Vec<&Kept>, Vec<&Kept>) = kept.iter().partition(|kept| kept.key.ends_with(FORMER));
        for Kept { key, sealed } in former {
            self.recover_tokens(key, sealed);
        }
        for Kept { key, sealed } in jobs {
            match self.read_kept(key, sealed) {
                Ok(found) => {
                    self.find_again(&found, sealed);
                    records.push(found.record);
                }
                Err(why) => tracing::warn!(record = key, "the record of a job cannot be read: {why}"),
            }
        }
        records
    }

    /// A runner as it is from now on: its jobs in flight go on with it. `was`: its token until now, if that was another one.
    pub fn renew(&self, id: RunnerId, runner: Runner, was: Option<&Token>) {
        let known = self.runner(&id);
        let former =
            known.map(|known| std::mem::take(&mut *known.former.lock().unwrap_or_else(PoisonError::into_inner))).unwrap_or_default();
        let newest = was.map(|token| (token.clone(), Seal::of_token(token.expose())));
        let former: Vec<(Token, Seal)> = newest.into_iter().chain(former).take(MOST_FORMER).collect();
        if was.is_some() {
            let key = format!("{id}{FORMER}");
            let tokens: Vec<&str> = former.iter().map(|(token, _)| token.expose()).collect();
            let text = serde_json::to_vec(&tokens).unwrap_or_default();
            // Without it only jobs in flight at the next start would be lost, and only when the disk is broken too.
            drop(self.state.put(key.clone(), runner.seal.seal(&text, &key)));
        }
        *runner.former.lock().unwrap_or_else(PoisonError::into_inner) = former;
        self.serve_also([(id, runner)].into());
    }

    fn recover_tokens(&self, key: &str, sealed: &[u8]) {
        let Some(runner) = key.strip_suffix(FORMER).and_then(|runner| self.runner(&RunnerId::new(runner))) else { return };
        let Ok(text) = runner.seal.open(sealed, key) else { return };
        let tokens: Vec<String> = serde_json::from_slice(&text).unwrap_or_default();
        let former = tokens.iter().map(|token| (Token::new(token), Seal::of_token(token)));
        *runner.former.lock().unwrap_or_else(PoisonError::into_inner) = former.collect();
    }

    fn read_kept(&self, key: &str, sealed: &[u8]) -> Result<FoundJob, String> {
        let runner = key.rsplit_once('#').map(|(runner, _)| RunnerId::new(runner));
        let runner = runner.and_then(|runner| self.runner(&runner)).ok_or("the configuration has no such runner any more")?;
        let opened = runner.open(sealed, key).map_err(|broken| broken.to_string())?;
        FoundJob::of_bytes(&opened).map_err(|fault| fault.to_string())
    }

    /// A job that was found: what is to be done about it can be done from now on.
    pub fn find_again(&self, found: &FoundJob, sealed: &[u8]) {
        let job = &found.record.job;
        if self.job(job).is_some() {
            return;
        }
        if let Some(restored) = self.runner(&job.runner).and_then(|runner| runner.source.restore(job, &found.kept)) {
            self.add(restored).set_owner_record(sealed.to_vec());
        }
    }

    pub(super) fn forget(self: &Arc<Self>, id: &JobId) {
        self.release(id, false);
        // One that stays because the disk is broken is reported once more after a restart, and the server says that it had it.
        drop(self.state.remove(key(id)));
    }

    pub(super) fn disown(&self, id: &JobId) {
        self.release(id, true);
    }

    fn release(&self, id: &JobId, kept: bool) {
        let job = self.jobs().remove(id);
        if let (Some(job), Some(runner)) = (job, self.runner(&id.runner)) {
            runner.source.release(&job, kept);
        }
    }
}
