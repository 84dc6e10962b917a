//! An agent to be measured: its front, its jobs, and what they use.

use ci_tests::program;
use ci_tests::workshop::Workshop;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use step_client::connect::UnixSocket;
use step_client::{AgentClient, RunRequest};
use tokio::runtime::Runtime;

/// `step-runner serve` in a workshop of its own; its jobs end with it.
#[derive(Debug)]
pub struct Front {
    pub workshop: Workshop,
    pub child: Child,
    pub framing: &'static str,
}

impl Front {
    pub fn new(framing: &'static str) -> Self {
        let workshop = Workshop::new();
        let child = spawn(&workshop, framing);
        let front = Self { workshop, child, framing };
        front.wait_until_it_serves();
        front
    }

    fn socket(&self) -> PathBuf {
        self.workshop.path("tmp/step-runner.sock")
    }

    pub fn wait_until_it_serves(&self) {
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Needs a runtime.
    pub fn client(&self) -> AgentClient {
        AgentClient::new(UnixSocket::new(self.socket()))
    }

    /// Kills the front; its jobs go on.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the front can be killed");
    }
}

pub fn spawn(workshop: &Workshop, framing: &str) -> Child {
    let mut command = Command::new(program::path("STEP_RUNNER"));
    command.args(["serve", "--log", framing]).env("TMPDIR", workshop.path("tmp")).current_dir(workshop.dir());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

impl Drop for Front {
    fn drop(&mut self) {
        let signal = |pid: u32| Command::new("kill").args(["-TERM", &pid.to_string()]).status();
        // The second one ends the jobs too.
        for _ in 0..2 {
            signal(self.child.id()).expect("a signal can be sent");
        }
        self.child.wait().expect("it ends");
    }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub fn job(id: &str, script: &str) -> RunRequest {
    let script = serde_json::to_string(script).expect("a string");
    RunRequest { id: id.into(), steps: format!("{{}}\n---\nrun:\n  - {{name: s, script: {script}}}\n"), ..RunRequest::default() }
}

/// Runs a job that must succeed: run, follow, status, close.
pub async fn to_end(agent: &AgentClient, request: RunRequest) {
    let ended = agent.run_to_end(request, |_| Ok(())).await.expect("it ends");
    assert!(ended.status.outcome().into_result().is_ok(), "{:?}", ended.status);
}

/// A process and its children.
pub fn processes_of(front: u32) -> Vec<u32> {
    let mut all = vec![front];
    all.extend(job_processes(front));
    all
}

/// Job processes, whoever their parent is: the zygote and those that run a job of this front.
pub fn job_processes(front: u32) -> Vec<u32> {
    let image = std::fs::read_link(format!("/proc/{front}/exe")).expect("the front runs");
    let place = std::fs::read(format!("/proc/{front}/environ")).expect("the front runs");
    let tmpdir = place.split(|byte| *byte == 0).find(|entry| entry.starts_with(b"TMPDIR=")).expect("a workshop").to_vec();
    let is_ours = |pid: &u32| {
        *pid != front
            && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == image)
            && std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == tmpdir))
    };
    let entries = std::fs::read_dir(Path::new("/proc")).expect("there is a /proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

/// The sum of lines of a file in /proc, in kB. Zero for a process that has ended.
pub fn kilobytes(pid: u32, file: &str, names: &[&str]) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let of_line =
        |line: &str| names.iter().find_map(|name| line.strip_prefix(name))?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok();
    text.lines().filter_map(of_line).sum()
}
