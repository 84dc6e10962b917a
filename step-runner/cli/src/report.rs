//! What a run tells the world: to people as text, to programs as a JSON line per event.
//!
//! ```text
//! agent --(Audience)--> Text or Lines: what is said, a function of the events --(Surface)--> Screen: standard output and error
//! ```

pub mod json;
pub mod outline;
pub mod screen;
pub mod teller;
pub mod text;
pub mod words;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use step_engine::run::Headline;
use step_model::result::StepId;

/// Where a report goes: two streams and, on a terminal, one line that changes.
pub trait Surface: Send + 'static {
    /// Writes to standard output.
    /// # Errors
    /// It cannot be written any more.
    fn output(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes whole lines to standard error. May hold styles; they are taken out where they are not wanted.
    fn say(&mut self, lines: &str);
    /// What the status line is to show from now on: what runs, or nothing.
    fn running(&mut self, label: Option<&str>);
    /// Time has passed.
    fn tick(&mut self);
}

/// The steps of a run by the path of their names: `build/compile`.
#[derive(Debug, Default)]
pub struct Paths {
    of: BTreeMap<StepId, Arc<str>>,
    /// What stands for the one step without a name.
    title: Arc<str>,
}

impl Paths {
    pub fn set_title(&mut self, title: &str) {
        self.title = title.into();
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// The path of a step whose parents have been seen. Empty for the job itself.
    pub fn of(&mut self, step: StepId, headline: &Headline) -> Arc<str> {
        if let Some(path) = self.of.get(&step) {
            return path.clone();
        }
        let path: Arc<str> = match headline.parent {
            None => "".into(),
            Some(StepId::ROOT) if headline.name.is_empty() => self.title.clone(),
            Some(parent) => match self.of.get(&parent) {
                Some(above) if !above.is_empty() && *above != self.title => format!("{above}/{}", headline.name).into(),
                _ => headline.name.clone(),
            },
        };
        self.of.insert(step, path.clone());
        path
    }

    /// A step that has ended is not asked for again.
    pub fn forget(&mut self, step: StepId) {
        self.of.remove(&step);
    }
}
