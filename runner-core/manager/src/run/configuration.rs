//! The configuration file: where it is, what it says, and what is said about it.

use runner_config::location::{self, Surroundings};
use runner_config::{Parsed, Settings, Severity};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given;

/// A file that can be used.
#[derive(Debug)]
pub struct Configuration {
    pub path: PathBuf,
    /// Files that belong to it lie here: certificates, the system's id, the state.
    pub directory: PathBuf,
    pub settings: Settings,
    /// Of the process: the file refers to it.
    pub environment: BTreeMap<String, String>,
    pub modified: Option<SystemTime>,
    parsed: Parsed,
}

impl Configuration {
    /// # Errors
    /// There is none, or it cannot be used, with every reason.
    pub fn read(given: Option<&Path>) -> Result<Self, Stop> {
        let environment = environment();
        let path = given.map_or_else(|| default_path(&environment), Path::to_path_buf);
        Self::read_file(path, environment)
    }

    /// The same file as it is now.
    /// # Errors
    /// As for [`Configuration::read`].
    pub fn again(&self) -> Result<Self, Stop> {
        Self::read_file(self.path.clone(), self.environment.clone())
    }

    fn read_file(path: PathBuf, environment: BTreeMap<String, String>) -> Result<Self, Stop> {
        let modified = modified(&path);
        let text = given::file(&path).map_err(|stop| stop.with_hint("`--config FILE` names another one"))?.text;
        let parsed = runner_config::parse(&text, &environment);
        let Some(settings) = parsed.settings.clone() else {
            let errors = parsed.problems.iter().filter(|problem| problem.severity == Severity::Error);
            let problems = errors.map(|problem| {
                let complaint = Complaint::new(format!("{}: {problem}", path.display()));
                problem.hint.iter().fold(complaint, |complaint, hint| complaint.with_hint(hint))
            });
            return Err(Stop::all(Exit::BadInput, problems.collect()));
        };
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        let directory = absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
        Ok(Self { path: absolute, directory, settings, environment, modified, parsed })
    }

    /// Logs what is doubtful in the file, and which entries are not served.
    pub fn tell(&self) {
        for problem in &self.parsed.problems {
            let (title, hint) = (self.parsed.title(problem), problem.hint.as_deref().unwrap_or_default());
            let line = problem.place.as_ref().map(|place| place.line);
            match problem.severity {
                Severity::Notice => tracing::debug!(line, hint, "CONFIGURATION: {title}"),
                Severity::Warning => tracing::warn!(line, hint, "CONFIGURATION: {title}"),
                Severity::Refused | Severity::Error => tracing::error!(line, hint, "CONFIGURATION: {title}"),
            }
        }
    }

    /// Whether the file has changed since it was read.
    pub fn has_changed(&self) -> bool {
        modified(&self.path).is_some_and(|now| Some(now) != self.modified)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Of this process, as far as it is UTF-8.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// Where GitLab's runner looks.
pub fn default_path(environment: &BTreeMap<String, String>) -> PathBuf {
    let value = |name: &str| environment.get(name).map(String::as_str);
    let surroundings = Surroundings {
        config_file: value("CONFIG_FILE"),
        home: value("HOME"),
        is_root: rustix::process::geteuid().is_root(),
        is_windows: cfg!(windows),
    };
    PathBuf::from(location::default_path(surroundings))
}
