//! Serves an editor: the Language Server Protocol (3.17) over standard input and output.
//!
//! ```text
//! bytes --wire--> requests and notifications --session--> answers: pure functions of the open texts and the files on disk
//! ```

mod answers;
mod position;
mod session;
mod surroundings;
mod wire;

use serde_json::Value as Json;
use session::{Next, Session};
use std::io::{BufReader, Write as _};
use std::sync::mpsc::channel;
use step_console::exit::{Exit, Stop};
use step_console::given::words;

/// # Errors
/// The editor is gone in the middle of a message.
pub fn run() -> anyhow::Result<Exit> {
    let (sender, messages) = channel::<std::io::Result<Option<Json>>>();
    // What was typed meanwhile is read while an answer is made, so only the last text is checked.
    std::thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin().lock());
        loop {
            let message = wire::read(&mut input);
            let is_last = !matches!(message, Ok(Some(_)));
            if sender.send(message).is_err() || is_last {
                return;
            }
        }
    });
    let mut session = Session::default();
    let mut out = std::io::stdout().lock();
    let fault = |error: std::io::Error| Stop::new(Exit::Fault, format!("could not talk to the editor: {}", words(&error)));
    let mut next = messages.recv().ok();
    while let Some(message) = next {
        let Some(message) = message.map_err(fault)? else {
            // The protocol wants a goodbye; without one something went wrong on the other side.
            return Ok(if session.is_over() { Exit::Done } else { Exit::Failed });
        };
        match session.on(&message) {
            Next::Answers(answers) => answers.iter().try_for_each(|answer| wire::write(&mut out, answer)).map_err(fault)?,
            Next::End => return Ok(if session.is_over() { Exit::Done } else { Exit::Failed }),
        }
        next = match messages.try_recv() {
            Ok(message) => Some(message),
            Err(_) => {
                for answer in session.diagnostics() {
                    wire::write(&mut out, &answer).map_err(fault)?;
                }
                out.flush().map_err(fault)?;
                messages.recv().ok()
            }
        };
    }
    Ok(Exit::Done)
}
