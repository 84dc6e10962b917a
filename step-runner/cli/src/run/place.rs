//! Where the program stands: what of its surroundings a job depends on, read once.

use super::supply::all_missing;
use crate::exit::{Complaint, Exit, Stop};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use step_model::value::Value;

/// Variables of a pipeline that this program itself may be a part of: a job never sees them (original.md S 2.5).
const NOT_PASSED_ON: [&str; 4] = ["CI_", "GITLAB_", "FF_", "DOCKER_ENV_"];

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
        let dir = std::env::current_dir().map_err(|error| fault(super::source::words(&error)))?;
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
        let level = log_level.unwrap_or("info").trim().to_lowercase();
        if !["debug", "info", "warn", "error"].contains(&level.as_str()) {
            let message = format!("init global environment: log level: {level} not supported");
            return Err(Stop::bad_input(message).with_hint("set the job variable CI_STEPS_LOG_LEVEL to debug, info, warn or error"));
        }
        let passed_on = self.env.iter().filter(|(name, _)| !NOT_PASSED_ON.iter().any(|prefix| name.starts_with(prefix)));
        let mut env: BTreeMap<Arc<str>, Value> = passed_on.map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
        env.insert("CI_STEPS_LOG_LEVEL".into(), level.into());
        Ok(env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(names: &[&str]) -> Place {
        Place { env: names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect(), ..Place::default() }
    }

    #[test]
    fn variables_of_a_pipeline_are_not_passed_on() {
        let names = ["CI", "CI_X", "GITLAB_X", "FF_X", "DOCKER_ENV_X", "DOCKER_X", "PATH", "CI_STEPS_LOG_LEVEL"];
        let env = place(&names).process_env(None).expect("a level");
        assert_eq!(env.keys().map(|name| &**name).collect::<Vec<_>>(), ["CI", "CI_STEPS_LOG_LEVEL", "DOCKER_X", "PATH"]);
        assert_eq!(env["CI_STEPS_LOG_LEVEL"], Value::from("info"));
    }

    #[test]
    fn the_log_level_is_one_of_four() {
        assert_eq!(place(&[]).process_env(Some(" Debug ")).expect("a level")["CI_STEPS_LOG_LEVEL"], Value::from("debug"));
        let refused = place(&[]).process_env(Some("xxx")).expect_err("no level");
        assert_eq!(refused.to_string(), "init global environment: log level: xxx not supported");
    }
}
