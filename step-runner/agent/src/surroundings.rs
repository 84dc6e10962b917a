//! What a job inherits from the process that runs it.

use crate::around;
use std::collections::BTreeMap;
use std::sync::Arc;
use step_model::environment::EntryPoint;
use step_model::value::Value;

/// What is told to the agent alone.
const FOR_US: [&str; 2] = [around::OWN_NETWORK, around::HELD];

/// The log level is none, in the original's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("init global environment: log level: {0} not supported")]
pub struct NoLogLevel(pub String);

/// What a job inherits (original.md E.4), with the log level that every step is told. `log_level`: the job variable
/// `CI_STEPS_LOG_LEVEL`.
/// # Errors
/// The log level is none.
pub fn process_env<'a>(
    env: impl IntoIterator<Item = (&'a str, &'a str)>,
    log_level: Option<&str>,
) -> Result<BTreeMap<Arc<str>, Value>, NoLogLevel> {
    let level = log_level.unwrap_or("info").trim().to_lowercase();
    if !["debug", "info", "warn", "error"].contains(&level.as_str()) {
        return Err(NoLogLevel(level));
    }
    // A pipeline that this program itself may be a part of is none of the job's business (original.md S 2.5).
    let passed_on = env.into_iter().filter(|(name, _)| EntryPoint::Run.passes_on(name) && !FOR_US.contains(name));
    let mut env: BTreeMap<Arc<str>, Value> = passed_on.map(|(name, value)| (name.into(), value.into())).collect();
    env.insert("CI_STEPS_LOG_LEVEL".into(), level.into());
    Ok(env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_pipeline_are_not_passed_on() {
        let names = ["CI", "CI_X", "GITLAB_X", "FF_X", "DOCKER_ENV_X", "DOCKER_X", "PATH", "CI_STEPS_LOG_LEVEL", "STEP_RUNNER_HELD"];
        let env = process_env(names.map(|name| (name, "x")), None).expect("a level");
        assert_eq!(env.keys().map(|name| &**name).collect::<Vec<_>>(), ["CI", "CI_STEPS_LOG_LEVEL", "DOCKER_X", "PATH"]);
        assert_eq!(env["CI_STEPS_LOG_LEVEL"], Value::from("info"));
    }

    #[test]
    fn the_log_level_is_one_of_four() {
        assert_eq!(process_env([], Some(" Debug ")).expect("a level")["CI_STEPS_LOG_LEVEL"], Value::from("debug"));
        let refused = process_env([], Some("xxx")).expect_err("no level");
        assert_eq!(refused.to_string(), "init global environment: log level: xxx not supported");
    }
}
