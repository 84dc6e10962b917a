//! Events as lines of JSON: a bug report is a history, and a regression test is that history played back.

use crate::controller::{Controller, Seed};
use crate::effect::Effect;
use crate::event::Event;
use crate::id::Generation;
use crate::record::Record;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use step_model::time::{Now, Timestamp};

/// One line. The first of a history is a `Start`, all others are events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The monotonic clock.
    pub at: Duration,
    /// The clock on the wall, in nanoseconds since 1970.
    pub wall: i64,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum What {
    Start { settings: Settings, records: Vec<Record>, generation: Generation, seed: u64 },
    Event(Event),
}

impl Line {
    pub fn of(event: &Event, now: Now) -> Self {
        Self::at(now, What::Event(event.clone()))
    }

    pub fn start(settings: &Settings, records: &[Record], generation: Generation, seed: Seed, now: Now) -> Self {
        Self::at(now, What::Start { settings: settings.clone(), records: records.to_vec(), generation, seed: seed.0 })
    }

    fn at(now: Now, what: What) -> Self {
        Self { at: now.monotonic, wall: now.wall.nanoseconds(), what }
    }

    /// Without a newline.
    /// # Panics
    /// Never: everything here can be written as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names, numbers and texts can be written as JSON")
    }

    fn now(&self) -> Now {
        Now { monotonic: self.at, wall: Timestamp::from_nanoseconds(self.wall) }
    }
}

/// A history that cannot be played.
#[derive(Debug)]
pub enum Unplayable {
    Line {
        number: usize,
        source: serde_json::Error,
    },
    /// It does not begin with a `Start`.
    NoStart,
}

/// Plays a history: the controller as it was at its end, and what was asked for at each line.
/// # Errors
/// A line is not one of a history, or the first is no `Start`.
pub fn play(text: &str) -> Result<(Controller, Vec<Vec<Effect>>), Unplayable> {
    let mut played: Option<(Controller, Vec<Vec<Effect>>)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line: Line = serde_json::from_str(line).map_err(|source| Unplayable::Line { number, source })?;
        let now = line.now();
        match (line.what, &mut played) {
            (What::Start { settings, records, generation, seed }, _) => {
                let (controller, effects) = Controller::start(settings, records, generation, Seed(seed), now);
                played = Some((controller, vec![effects]));
            }
            (What::Event(event), Some((controller, asked))) => asked.push(controller.on(event, now)),
            (What::Event(_), None) => return Err(Unplayable::NoStart),
        }
    }
    played.ok_or(Unplayable::NoStart)
}
