//! Asks the person at the terminal for a value, without showing what is typed.

use step_console::exit::Stop;

/// Asks once. `None`: there is nobody to ask.
pub fn secret(name: &str) -> Option<Result<String, Stop>> {
    system::secret(name)
}

#[cfg(unix)]
mod system {
    use crate::run::signals::Signals;
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
    use std::fs::File;
    use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
    use step_console::exit::{Exit, Stop};

    /// Whether there is somebody to ask: whoever reads what is said on standard error.
    fn is_possible() -> bool {
        std::io::stderr().is_terminal() && File::open("/dev/tty").is_ok()
    }

    pub fn secret(name: &str) -> Option<Result<String, Stop>> {
        if !is_possible() {
            return None;
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(answer(&terminal, name))
    }

    /// The terminal does not show what is typed while this lives.
    struct Silence<'a> {
        terminal: &'a File,
        before: Termios,
    }

    impl<'a> Silence<'a> {
        fn of(terminal: &'a File) -> rustix::io::Result<Self> {
            let before = tcgetattr(terminal)?;
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            tcsetattr(terminal, OptionalActions::Flush, &silent)?;
            Ok(Self { terminal, before })
        }
    }

    impl Drop for Silence<'_> {
        fn drop(&mut self) {
            let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
        }
    }

    /// Waits for a line or a signal; after a signal the terminal must show again what is typed, so none may end the process here.
    fn answer(terminal: &File, name: &str) -> Result<String, Stop> {
        let fault = |error: std::io::Error| Stop::new(Exit::Fault, format!("could not ask: {error}"));
        let reader = terminal.try_clone().map_err(fault)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(fault)?;
        runtime.block_on(async {
            let mut signals = Signals::catch().map_err(fault)?;
            let _silence = Silence::of(terminal).map_err(|error| fault(error.into()))?;
            let mut prompt = terminal;
            write!(prompt, "value of {name}: ").map_err(fault)?;
            let (sender, line) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                let mut line = String::new();
                let outcome = BufReader::new(reader).read_line(&mut line).map(|_| line);
                let _ = sender.send(outcome);
            });
            let answer = tokio::select! {
                line = line => {
                    let line = line.map_err(|_| Stop::new(Exit::Fault, "could not ask: nobody reads the terminal"))?.map_err(fault)?;
                    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
                }
                signal = signals.next() => Err(Stop::new(signal.exit(), format!("cancelled by {}", signal.name()))),
            };
            writeln!(prompt).map_err(fault)?;
            answer
        })
    }
}

#[cfg(not(unix))]
mod system {
    use step_console::exit::Stop;

    pub fn secret(_name: &str) -> Option<Result<String, Stop>> {
        None
    }
}
