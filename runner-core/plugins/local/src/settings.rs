//! `plugin_config` of the plugin, checked.

use runner_fleeting::config::Config;
use runner_fleeting::{Failure, Locate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What goes to an instance without being named: what programs need to find their way, and nothing that could be a secret of the host.
pub const PASSED: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "STEP_RUNNER_AGENTS",
];

/// The agent adds `/i-XXXXXX/step-runner.sock`, and the path of a socket has at most 107 bytes.
const LONGEST_DIRECTORY: usize = 107 - "/i-XXXXXX/step-runner.sock".len();

/// Instances are removed when they are idle, and end at once. Less than the 30 s that a host gives a shutdown, which waits for it.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How a group is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSettings {
    /// Names the group in logs.
    pub name: String,
    pub directory: PathBuf,
    /// The agent, and what it is called with after `serve DIR`.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// All that an instance has.
    pub environment: BTreeMap<String, OsString>,
    pub max_size: u32,
    /// Between being asked to end and being killed.
    pub stop_timeout: Duration,
}

/// What there is besides the configuration.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub environment: BTreeMap<String, OsString>,
    /// Where this program lies: the agent is often beside it.
    pub beside: Option<PathBuf>,
    /// Of the administrator's user.
    pub system_wide: bool,
    pub processors: u32,
}

impl Surroundings {
    /// As this process finds them.
    #[cfg(unix)]
    pub fn look() -> Self {
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf));
        let processors = std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
        Self { environment, beside, system_wide: rustix::process::geteuid().is_root(), processors }
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.environment.get(name).filter(|value| !value.is_empty())
    }

    fn default_directory(&self, name: &str) -> Option<PathBuf> {
        let state = match (self.get("XDG_STATE_HOME"), self.get("HOME")) {
            _ if self.system_wide => PathBuf::from("/var/lib"),
            (Some(state), _) => PathBuf::from(state),
            (None, Some(home)) => Path::new(home).join(".local/state"),
            (None, None) => return None,
        };
        Some(state.join("fleeting-plugin-local").join(name))
    }
}

impl LocalSettings {
    /// # Errors
    /// Everything that is wrong, with what to change.
    pub fn read(config: &Value, surroundings: &Surroundings) -> Result<Self, Failure> {
        let mut config = Config::of(config);
        let name = config.text("name").unwrap_or_else(|| "local".to_owned());
        if name.contains('/') || name.starts_with('.') {
            config.problem("name", format!("`{name}` cannot be part of a path; use letters, digits and hyphens"));
        }
        let directory = directory(&mut config, &name, surroundings);
        let program = program(&mut config, surroundings);
        let arguments = config.texts("arguments").unwrap_or_default();
        let environment = environment(&mut config, surroundings);
        let max_size = config.count("max_size", 1..=10_000).unwrap_or(surroundings.processors.max(1));
        let stop_timeout = config.duration("stop_timeout").unwrap_or(STOP_TIMEOUT);
        config.finish()?;
        Ok(Self { name, directory, program, arguments, environment, max_size, stop_timeout })
    }
}

fn directory(config: &mut Config, name: &str, surroundings: &Surroundings) -> PathBuf {
    let given = config.text("directory").map(PathBuf::from);
    let Some(directory) = given.or_else(|| surroundings.default_directory(name)) else {
        config.problem("directory", "there is no home directory to put it in; name a directory for the instances");
        return PathBuf::new();
    };
    let length = directory.as_os_str().len();
    if !directory.is_absolute() {
        config.problem("directory", format!("`{}` depends on where the plugin is started; write the whole path", directory.display()));
    } else if length > LONGEST_DIRECTORY {
        config
            .problem("directory", format!("the path has {length} bytes, and sockets in it allow {LONGEST_DIRECTORY}; name a shorter one"));
    }
    directory
}

fn program(config: &mut Config, surroundings: &Surroundings) -> PathBuf {
    const AGENT: &str = "step-runner";
    let given = config.text("program");
    let wanted = given.as_deref().unwrap_or(AGENT);
    if wanted.contains('/') {
        if let Err(problem) = runner_fleeting::locate(wanted, &Locate::default()) {
            config.problem("program", problem.looked.join("; "));
        }
        return PathBuf::from(wanted);
    }
    let beside = if given.is_none() { surroundings.beside.clone() } else { None };
    let path = surroundings.get("PATH").into_iter().flat_map(std::env::split_paths);
    let found = beside.into_iter().chain(path).map(|directory| directory.join(wanted)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        config.problem("program", format!("there is no `{wanted}` on PATH; install the agent, or name its file with the whole path"));
        PathBuf::new()
    })
}

fn environment(config: &mut Config, surroundings: &Surroundings) -> BTreeMap<String, OsString> {
    let named = config.texts("pass_environment").unwrap_or_default();
    let passed = PASSED.into_iter().map(ToOwned::to_owned).chain(named);
    let mut environment: BTreeMap<String, OsString> =
        passed.filter_map(|name| surroundings.environment.get(&name).map(|value| (name, value.clone()))).collect();
    for (name, value) in config.table("environment").unwrap_or_default() {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            config.problem("environment", format!("`{name}` cannot be a variable"));
        }
        environment.insert(name, value.into());
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn surroundings() -> Surroundings {
        let environment = [("HOME", "/home/u"), ("PATH", "/nowhere"), ("LANG", "C"), ("CI_TOKEN", "secret")];
        let environment = environment.map(|(name, value)| (name.to_owned(), OsString::from(value))).into();
        Surroundings { environment, beside: None, system_wide: false, processors: 4 }
    }

    fn read(config: &Value) -> Result<LocalSettings, String> {
        LocalSettings::read(config, &surroundings()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn without_a_configuration_there_are_as_many_instances_as_processors_in_the_users_state() {
        let settings = read(&json!({"program": "/bin/sh"})).unwrap();
        assert_eq!((settings.name.as_str(), settings.max_size), ("local", 4));
        assert_eq!(settings.directory, Path::new("/home/u/.local/state/fleeting-plugin-local/local"));
        let root = Surroundings { system_wide: true, ..surroundings() };
        let settings = LocalSettings::read(&json!({"program": "/bin/sh", "name": "b"}), &root).unwrap();
        assert_eq!(settings.directory, Path::new("/var/lib/fleeting-plugin-local/b"));
    }

    #[test]
    fn an_instance_gets_no_variable_of_the_host_that_is_not_named() {
        let names = |config: Value| read(&config).unwrap().environment.into_keys().collect::<Vec<_>>();
        assert_eq!(names(json!({"program": "/bin/sh"})), ["HOME", "LANG", "PATH"]);
        let more = json!({"program": "/bin/sh", "pass_environment": ["CI_TOKEN", "ABSENT"], "environment": {"A": "b"}});
        assert_eq!(names(more), ["A", "CI_TOKEN", "HOME", "LANG", "PATH"]);
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_with_the_way_out() {
        let long = format!("/{}", "x".repeat(90));
        let wrong = json!({
            "name": "a/b", "directory": long, "program": "/nowhere/agent", "max_size": 0, "stop_timeout": 5, "environment": {"A=B": "c"}
        });
        let problems = read(&wrong).unwrap_err();
        let expected = "\
plugin_config: name: `a/b` cannot be part of a path; use letters, digits and hyphens
plugin_config: directory: the path has 91 bytes, and sockets in it allow 81; name a shorter one
plugin_config: program: /nowhere/agent: no such file
plugin_config: environment: `A=B` cannot be a variable
plugin_config: max_size: `0` is a number, it must be a whole number from 1 to 10000
plugin_config: stop_timeout: `5` is a number, it must be a time such as \"90s\", \"5m\" or \"1h30m\"";
        assert_eq!(problems, expected);
        assert!(
            read(&json!({"directory": "here"}))
                .unwrap_err()
                .contains("`here` depends on where the plugin is started; write the whole path")
        );
        let nobody = Surroundings::default();
        let failure = LocalSettings::read(&Value::Null, &nobody).unwrap_err().to_string();
        assert!(failure.contains("there is no home directory") && failure.contains("there is no `step-runner` on PATH"), "{failure}");
    }
}
