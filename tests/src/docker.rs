//! A Docker engine for tests: the one of this machine, or one of the test's own that may be killed.

use crate::kit::{self, Component};
use crate::program::{self, Invocation};
use crate::skipped;
use crate::workshop::Workshop;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// An engine that answers.
#[derive(Debug, Clone)]
pub struct Engine {
    /// As `DOCKER_HOST` has it.
    pub host: String,
}

impl Engine {
    /// The engine of this machine, installed and started where it is not there. It goes on until the sweep at the end of all tests. `None`: it cannot
    /// be had here, and the test is skipped.
    pub fn shared() -> Option<Self> {
        static ENGINE: OnceLock<Option<Component>> = OnceLock::new();
        let component = ENGINE.get_or_init(|| Component::start("docker-engine"));
        if component.is_none() {
            skipped::because("there is no Docker engine, and none could be started");
        }
        component.as_ref().map(|component| Self { host: component.get("DOCKER_HOST").to_owned() })
    }

    /// An engine of a component that is the test's own.
    pub fn of(component: &Component) -> Self {
        Self { host: component.get("DOCKER_HOST").to_owned() }
    }

    /// Has the images of `tests/kit/docker-images.sh`. `None`: they cannot be made here, and the test is skipped.
    pub fn images(&self, names: &[&str]) -> Option<()> {
        kit::run("docker-images", names, &[("DOCKER_HOST", &self.host)]).map(drop)
    }

    /// Runs `docker` and gives what it printed, without the line end.
    /// # Panics
    /// It fails.
    pub fn docker(&self, arguments: &[&str]) -> String {
        let output = Command::new("docker").args(arguments).env("DOCKER_HOST", &self.host).stdin(Stdio::null()).output();
        let output = output.expect("docker is installed with the engine");
        assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Containers and networks that carry the mark.
    pub fn left(&self, mark: &Mark) -> Vec<String> {
        let filter = format!("label={}", mark.0);
        let containers = self.docker(&["ps", "-aq", "--filter", &filter]);
        let networks = self.docker(&["network", "ls", "-q", "--filter", &filter]);
        containers.lines().chain(networks.lines()).map(str::to_owned).collect()
    }

    /// `step-runner run ./job` in the workshop, against this engine and with the agent that `./test` built.
    pub fn run(&self, workshop: &Workshop, definition: &str, more: &[&str]) -> Invocation {
        workshop.file("job/func.yml", definition);
        let arguments: Vec<&str> = ["run", "./job"].into_iter().chain(more.iter().copied()).collect();
        self.step_runner(workshop, &arguments)
    }

    pub fn step_runner(&self, workshop: &Workshop, arguments: &[&str]) -> Invocation {
        workshop.step_runner(arguments).env("DOCKER_HOST", &self.host).env("STEP_RUNNER_AGENTS", self.agents())
    }

    /// The directory with the agent that `./test` built.
    pub fn agents(&self) -> PathBuf {
        program::path("STEP_AGENT").parent().map(PathBuf::from).expect("a file lies in a directory")
    }
}

/// A label that one test gives everything it makes.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Self(format!("journey-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

/// The label as an input: `labels: {MARK: ""}`.
impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}: \"\"}}", self.0)
    }
}
