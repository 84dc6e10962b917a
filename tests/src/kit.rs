//! Real components for tests: collectors, browsers, engines. Each is a script in `tests/kit` that installs what it needs and says how it is
//! reached. Where that is not possible a test is skipped, and `./test` counts it as skipped.

use crate::{repository, skipped};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at a file of a component.
const LOOK: Duration = Duration::from_millis(20);
/// As long as a busy machine may need.
const LONGEST: Duration = Duration::from_secs(100);

/// A component that runs. It is stopped when this value is dropped.
#[derive(Debug)]
pub struct Component {
    name: &'static str,
    instance: String,
    values: BTreeMap<String, String>,
}

impl Component {
    /// Starts one of its own for this test. `None`: it cannot be had here, and the test is skipped.
    pub fn start(name: &'static str) -> Option<Self> {
        Self::start_with(name, &[])
    }

    /// The same, with variables that its script understands.
    pub fn start_with(name: &'static str, env: &[(&str, &str)]) -> Option<Self> {
        Self::started(name, &[], env)
    }

    /// The same, with words after `start`.
    pub fn start_with_arguments(name: &'static str, arguments: &[&str]) -> Option<Self> {
        Self::started(name, arguments, &[])
    }

    fn started(name: &'static str, arguments: &[&str], env: &[(&str, &str)]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let instance = format!("t{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut component = Self { name, instance, values: BTreeMap::new() };
        let env: Vec<(&str, &str)> = env.iter().copied().chain([("KIT_INSTANCE", component.instance.as_str())]).collect();
        let arguments: Vec<&str> = ["start"].into_iter().chain(arguments.iter().copied()).collect();
        let values = run(name, &arguments, &env)?;
        component.values = values;
        Some(component)
    }

    /// Waits until the file that `start` named has so many lines that begin so, and gives them.
    /// # Panics
    /// They do not come.
    pub fn wait_for_lines(&self, file: &str, beginning: &str, count: usize) -> Vec<String> {
        let until = Instant::now() + LONGEST;
        loop {
            let text = std::fs::read_to_string(self.get(file)).unwrap_or_default();
            let lines: Vec<String> = text.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect();
            if lines.len() >= count {
                return lines;
            }
            assert!(Instant::now() < until, "{} has not written {count} lines `{beginning}...`: {text}", self.name);
            std::thread::sleep(LOOK);
        }
    }

    /// Starts it again after it was killed, with the data that it had.
    pub fn start_again(mut self) -> Option<Self> {
        let values = run(self.name, &["start"], &[("KIT_INSTANCE", &self.instance)])?;
        self.values = values;
        Some(self)
    }

    /// What `start` printed: `KEY=VALUE`.
    /// # Panics
    /// It did not print this one.
    pub fn get(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("{} printed no {key}: {:?}", self.name, self.values))
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        let mut stop = command(self.name, &["stop"], &[("KIT_INSTANCE", &self.instance)]);
        // What stays behind is found by the next sweep; a test must not fail of it.
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Runs `tests/kit/NAME.sh` to its end and takes the `KEY=VALUE` lines that it prints. `None`: it failed, and the test is skipped.
pub fn run(name: &str, arguments: &[&str], env: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let output = command(name, arguments, env).output().ok()?;
    if !output.status.success() {
        skipped::because(&format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

fn command(name: &str, arguments: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new("bash");
    command.arg(repository::root().join("tests/kit").join(format!("{name}.sh"))).args(arguments).stdin(Stdio::null());
    command.envs(env.iter().copied());
    command
}
