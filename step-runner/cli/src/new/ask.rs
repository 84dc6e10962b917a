//! Questions to whoever sits at the terminal. An empty answer takes what is offered.

use super::templates::Kind;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use step_console::exit::Stop;
use step_console::given::words;

/// Somebody who can answer.
pub struct Person;

impl Person {
    /// `None`: nobody is there, or nobody sees the questions.
    pub fn at_the_terminal() -> Option<Self> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then_some(Self)
    }

    /// # Errors
    /// The terminal is gone.
    pub fn ask(&mut self, question: &str, offered: &str) -> Result<String, Stop> {
        let fault = |error: std::io::Error| Stop::bad_input(format!("could not ask: {}", words(&error)));
        let mut error = std::io::stderr();
        write!(error, "{question} [{offered}]: ").and_then(|()| error.flush()).map_err(fault)?;
        let mut answer = String::new();
        if std::io::stdin().lock().read_line(&mut answer).map_err(fault)? == 0 {
            return Err(Stop::usage("there was no answer"));
        }
        let answer = answer.trim();
        Ok(if answer.is_empty() { offered.to_owned() } else { answer.to_owned() })
    }

    /// # Errors
    /// The terminal is gone.
    pub fn choose(&mut self) -> Result<Kind, Stop> {
        loop {
            match self.ask("What does it do? exec: runs a command; run: runs other steps; script: shell text", "exec")?.as_str() {
                "exec" | "e" => return Ok(Kind::Exec),
                "run" | "r" => return Ok(Kind::Run),
                "script" | "s" => return Ok(Kind::Script),
                _ => {}
            }
        }
    }
}
