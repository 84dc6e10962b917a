//! Where the program stands: what of its surroundings a job depends on, read once.

use super::supply::all_missing;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use step_agent::surroundings;
use step_console::exit::{Complaint, Exit, Stop};
use step_model::value::Value;

/// The process as it was started.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Absolute.
    pub dir: Arc<str>,
    pub temporary: PathBuf,
    pub env: BTreeMap<String, String>,
    /// Names of variables whose values are not UTF-8.
    pub strange: Vec<String>,
}

impl Place {
    /// # Errors
    /// There is no current directory, or its path is not UTF-8.
    pub fn read() -> Result<Self, Stop> {
        let fault = |why: String| Stop::new(Exit::BadInput, format!("could not find the current directory: {why}"));
        let dir = std::env::current_dir().map_err(|error| fault(step_console::given::words(&error)))?;
        let dir = dir.into_os_string().into_string().map_err(|dir| fault(format!("{} is not UTF-8", dir.to_string_lossy())))?;
        let mut place = Self { dir: dir.into(), temporary: std::env::temp_dir(), ..Self::default() };
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(place.env.insert(name, value)),
                (Ok(name), Err(_)) => place.strange.push(name),
                (Err(name), _) => place.strange.push(name.to_string_lossy().into_owned()),
            }
        }
        Ok(place)
    }

    /// What would have to be given besides what is in the environment.
    pub fn absent(&self, names: &[String]) -> Option<Complaint> {
        let absent: Vec<String> = names.iter().filter(|name| !self.env.contains_key(*name)).cloned().collect();
        (!absent.is_empty()).then(|| all_missing(&absent))
    }

    /// What a job inherits (original.md E.4), with the log level that every step is told.
    /// # Errors
    /// The log level is none, in the original's words.
    pub fn process_env(&self, log_level: Option<&str>) -> Result<BTreeMap<Arc<str>, Value>, Stop> {
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        surroundings::process_env(env, log_level).map_err(|refused| {
            Stop::bad_input(refused.to_string()).with_hint("set the job variable CI_STEPS_LOG_LEVEL to debug, info, warn or error")
        })
    }
}
