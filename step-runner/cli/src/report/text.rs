//! The report for people, as a function of what happens.
//!
//! ```text
//! step build: started                        a sequence
//! Running step name=compile                  the engine's own line, at the start of what executes something
//! ...                                        what the step writes, on standard output
//! step build/compile: ok in 1.24s
//! step build: ok in 1.25s
//! ```

use super::words::{self, BOLD, DIM, WARNING};
use super::{Paths, Surface};
use crate::run::settings::Talk;
use crate::run::signals::{Asked, Signal};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use step_agent::job_process::{Audience, Stream};
use step_engine::run::{Headline, Kind};
use step_model::result::{Status, StepId};

/// Tells people what happens.
#[derive(Debug)]
pub struct Text<S> {
    surface: S,
    talk: Talk,
    paths: Paths,
    /// What runs, the innermost last.
    running: Vec<(StepId, Arc<str>)>,
    /// What failed, with its last lines; kept until the job ends, when it is known which of them failed the job.
    failed: BTreeMap<StepId, String>,
    asked: Asked,
    /// As much of `asked` as has been told.
    told: Option<(Signal, bool)>,
    /// Whoever read standard output does so no longer.
    reader_left: bool,
}

impl<S: Surface> Text<S> {
    pub fn new(surface: S, talk: Talk, asked: Asked) -> Self {
        Self { surface, talk, paths: Paths::default(), running: Vec::new(), failed: BTreeMap::new(), asked, told: None, reader_left: false }
    }

    /// What stands for the one step without a name.
    pub fn set_title(&mut self, title: &str) {
        self.paths.set_title(title);
    }

    pub fn title(&self) -> &str {
        self.paths.title()
    }

    pub fn talk(&self) -> Talk {
        self.talk
    }

    pub fn say(&mut self, lines: &str) {
        self.surface.say(lines);
    }

    /// Writes what was asked for to standard output.
    /// # Errors
    /// It cannot be written.
    pub fn print(&mut self, text: &str) -> io::Result<()> {
        self.surface.output(text.as_bytes())
    }

    pub fn reader_left(&self) -> bool {
        self.reader_left
    }

    fn tell_what_was_asked(&mut self) {
        let asked = self.asked.so_far();
        if asked == self.told {
            return;
        }
        self.told = asked;
        if let Some((signal, insists)) = asked {
            self.surface.say(&words::asked(signal, insists));
        }
    }

    /// What is known about a step that failed: its command, exit code and last lines.
    pub fn failure_of(&self, step: StepId) -> Option<&str> {
        self.failed.get(&step).map(String::as_str)
    }

    fn show_running(&mut self) {
        let label = self.running.last().map(|(_, path)| path.clone());
        self.surface.running(label.as_deref());
    }
}

impl<S: Surface> Audience for Text<S> {
    fn started(&mut self, step: StepId, headline: &Headline) {
        let path = self.paths.of(step, headline);
        if path.is_empty() {
            return;
        }
        if self.talk >= Talk::Normal && headline.what == Kind::Sequence && !headline.name.is_empty() {
            self.surface.say(&format!("{DIM}step{DIM:#} {BOLD}{path}{BOLD:#}{DIM}: started{DIM:#}\n"));
        }
        self.running.push((step, path));
        self.show_running();
    }

    fn output(&mut self, _step: StepId, _stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.surface.output(bytes).inspect_err(|error| self.reader_left |= error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn said(&mut self, _step: StepId, line: &str, warning: bool) {
        match self.talk {
            Talk::Quiet => {}
            _ if warning => self.surface.say(&format!("{WARNING}warning{WARNING:#}: {line}\n")),
            _ => self.surface.say(&format!("{line}\n")),
        }
    }

    fn ended(&mut self, step: StepId, headline: &Headline, tail: &[u8]) {
        self.tell_what_was_asked();
        let path = self.paths.of(step, headline);
        self.paths.forget(step);
        self.running.retain(|(running, _)| *running != step);
        if path.is_empty() {
            return;
        }
        if headline.status != Status::Success && !headline.allowed_to_fail {
            self.failed.insert(step, words::circumstances(&path, headline, tail));
        }
        if self.talk == Talk::Verbose {
            self.surface.say(&words::command_and_directory(headline));
        }
        if self.talk >= Talk::Normal {
            self.surface.say(&words::ended(&path, headline, self.talk == Talk::Verbose));
        }
        self.show_running();
    }

    fn tick(&mut self) {
        self.tell_what_was_asked();
        self.surface.tick();
    }
}

#[cfg(test)]
mod tests;
