//! From what the engine wants started to what the system starts: program, arguments, environment, directory.

use super::shell;
use super::step_files;
use crate::system::{self, Missing, Start, StartFault};
use crate::system_error;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use step_engine::effect::{Process, Script};
use step_engine::event::{SpawnFault, SpawnFaultKind};
use step_model::value::Value;

/// Where a job's processes run and where its files are.
#[derive(Debug, Clone)]
pub struct Places {
    pub work_dir: PathBuf,
    pub files_dir: PathBuf,
}

/// A command in the system's terms.
#[derive(Debug)]
pub struct Command<'a> {
    program: PathBuf,
    words: Vec<Cow<'a, str>>,
    environment: Vec<(&'a str, Cow<'a, str>)>,
    work_dir: PathBuf,
    /// Holds a script that is too long for an argument; removed with the step's files.
    pub script_file: Option<PathBuf>,
}

impl<'a> Command<'a> {
    /// # Errors
    /// There is no such program.
    pub fn of(process: &'a Process, places: &Places, script_name: &str) -> Result<Self, SpawnFault> {
        let work_dir = places.work_dir.join(&*text_of(&process.work_dir));
        let mut environment: Vec<_> = process.env.iter().map(|(name, value)| (&**name, text_of(value))).collect();
        if let Some(script) = &process.script {
            let (variable, file) = shell::GITLAB_ENV;
            if matches!(script, Script::Legacy(_)) && !process.env.iter().any(|(name, _)| **name == *variable) {
                environment.push((variable, places.files_dir.join(file).to_string_lossy().into_owned().into()));
            }
            let shell = shell::find().ok_or_else(|| step_fault("shell not found"))?;
            let text = shell.text_of(script);
            let mut words: Vec<Cow<'_, str>> = vec![shell.path.to_string_lossy().into_owned().into(), "-c".into()];
            let script_file = if text.len() < shell::LONGEST_ARGUMENT {
                words.push(text);
                None
            } else {
                let file = places.files_dir.join(script_name);
                step_files::create(&file, text.as_bytes()).map_err(|error| machine_fault("script file", &error))?;
                words.push(shell::source(&file).into());
                Some(file)
            };
            return Ok(Self { program: shell.path.to_path_buf(), words, environment, work_dir, script_file });
        }
        let words: Vec<_> = process.command.iter().map(text_of).collect();
        let name = words.first().filter(|name| !name.is_empty()).ok_or_else(|| step_fault("exec: no command"))?;
        let path = environment.iter().find(|(name, _)| *name == "PATH").map(|(_, path)| OsStr::new(&**path));
        let program = system::find_program(OsStr::new(&**name), path, &work_dir).map_err(|missing| match missing {
            Missing::NotFound => step_fault(format!("exec: {name:?}: executable file not found in $PATH")),
            Missing::Relative => step_fault(format!("exec: {name:?}: cannot run executable found relative to current directory")),
        })?;
        Ok(Self { program, words, environment, work_dir, script_file: None })
    }

    /// Gives the process a variable, whatever else was to have its name.
    pub fn set(&mut self, name: &'a str, value: &'a str) {
        match self.environment.binary_search_by(|(known, _)| (*known).cmp(name)) {
            Ok(place) => self.environment[place].1 = value.into(),
            Err(place) => self.environment.insert(place, (name, value.into())),
        }
    }

    /// # Errors
    /// It does not run; the fault says why in the original's words, and more where these do not tell.
    pub(crate) fn start(&self, spawner: &system::Spawner, streams: super::Streams) -> Result<system::Running, SpawnFault> {
        self.start_by_spawner(|start| spawner.start(start), streams).map_err(|fault| self.told(fault))
    }

    /// As [`Command::start`], but what the system refuses of the confinement is told apart.
    /// # Errors
    /// It does not run.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_confined(
        &self,
        spawner: &system::Spawner,
        streams: super::Streams,
        confinement: &system::confined::Confinement,
    ) -> Result<system::Running, NotStarted> {
        let start = |start: &Start<'_>| spawner.start(&Start { confinement: Some(confinement), ..*start });
        self.start_by_spawner(start, streams).map_err(|fault| match fault {
            StartFault::Confinement(stage, error) => NotStarted::Confinement(stage, error),
            fault => NotStarted::Fault(self.told(fault)),
        })
    }

    fn start_by_spawner(
        &self,
        spawn: impl FnOnce(&Start<'_>) -> Result<system::Running, StartFault>,
        streams: super::Streams,
    ) -> Result<system::Running, StartFault> {
        let arguments: Vec<_> = self.words[1..].iter().map(|word| OsStr::new(&**word)).collect();
        let environment: Vec<_> = self.environment.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(&**value))).collect();
        let start = Start {
            program: &self.program,
            name: OsStr::new(&*self.words[0]),
            arguments: &arguments,
            environment: &environment,
            work_dir: &self.work_dir,
            streams,
            #[cfg(target_os = "linux")]
            confinement: None,
        };
        spawn(&start)
    }

    fn told(&self, fault: StartFault) -> SpawnFault {
        match fault {
            StartFault::Machine(error) => machine_fault("pipe", &error),
            StartFault::Program(error) => self.explain(&error),
            #[cfg(target_os = "linux")]
            StartFault::Confinement(_, error) => machine_fault("limits", &error),
        }
    }

    /// As [`Command::start`], for a host that starts processes its own way: `start` gets the command as the standard library has it.
    /// # Errors
    /// As [`Command::start`].
    pub fn start_by<T>(&self, start: impl FnOnce(std::process::Command) -> io::Result<T>) -> Result<T, SpawnFault> {
        let mut command = std::process::Command::new(&self.program);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut command, &*self.words[0]);
        command.args(self.words[1..].iter().map(|word| &**word)).env_clear().current_dir(&self.work_dir);
        command.envs(self.environment.iter().map(|(name, value)| (*name, &**value)));
        start(command).map_err(|error| self.explain(&error))
    }

    /// The system gives one number for all that can go wrong between fork and exec: this finds out which it was.
    fn explain(&self, error: &io::Error) -> SpawnFault {
        let directory = std::fs::metadata(&self.work_dir)
            .and_then(|found| if found.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) });
        if let Err(error) = directory {
            return step_fault(format!("chdir {}: {}", self.work_dir.display(), system_error::text(&error)));
        }
        let message = format!("fork/exec {}: {}", self.program.display(), system_error::text(error));
        if is_of_the_machine(error) {
            return SpawnFault { kind: SpawnFaultKind::Machine, message };
        }
        match self.reason(error) {
            Some(reason) => step_fault(format!("{message} ({reason})")),
            None => step_fault(message),
        }
    }

    fn reason(&self, error: &io::Error) -> Option<String> {
        match error.kind() {
            io::ErrorKind::NotFound => missing_interpreter(&self.work_dir.join(&self.program)),
            io::ErrorKind::ArgumentListTooLong => Some(self.what_is_too_long()),
            io::ErrorKind::InvalidInput => self.where_a_zero_is(),
            _ => None,
        }
    }

    fn what_is_too_long(&self) -> String {
        let longest = shell::LONGEST_ARGUMENT;
        let word = self.words.iter().position(|word| word.len() >= longest);
        if let Some(number) = word {
            return format!("argument {number} has {} bytes, the system takes fewer than {longest}", self.words[number].len());
        }
        let variable = self.environment.iter().find(|(name, value)| name.len() + 1 + value.len() >= longest);
        if let Some((name, value)) = variable {
            return format!("the variable {name} has {} bytes, the system takes fewer than {longest}", value.len());
        }
        let words: usize = self.words.iter().map(|word| word.len() + 1).sum();
        let variables: usize = self.environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        format!("arguments have {words} bytes and the environment {variables}, together more than the system takes")
    }

    fn where_a_zero_is(&self) -> Option<String> {
        let word = self.words.iter().position(|word| word.contains('\0'));
        let variable = || self.environment.iter().find(|(name, value)| name.contains('\0') || value.contains('\0'));
        let word = word.map(|number| format!("argument {number} contains a zero byte"));
        word.or_else(|| variable().map(|(name, _)| format!("the variable {name:?} contains a zero byte")))
    }
}

/// Why a process with limits does not run.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub enum NotStarted {
    Confinement(system::confined::Stage, io::Error),
    Fault(SpawnFault),
}

/// As a process gets it: text as it is, anything else as JSON.
fn text_of(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_json().to_string().into(), Cow::Borrowed)
}

fn step_fault(message: impl Into<String>) -> SpawnFault {
    SpawnFault { kind: SpawnFaultKind::Step, message: message.into() }
}

/// The machine could not give `what`.
fn machine_fault(what: &str, error: &io::Error) -> SpawnFault {
    SpawnFault { kind: SpawnFaultKind::Machine, message: format!("{what}: {}", system_error::text(error)) }
}

#[cfg(unix)]
fn is_of_the_machine(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::ENOSPC | libc::EIO))
}

#[cfg(not(unix))]
fn is_of_the_machine(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull)
}

/// The program is there, but what its first line names is not.
fn missing_interpreter(program: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(program).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let line = String::from_utf8_lossy(line);
    let interpreter = line.split_ascii_whitespace().next()?;
    Some(format!("its first line names the interpreter {:?}, which is not there", interpreter))
}
