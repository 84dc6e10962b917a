//! `step-runner remote` against an agent that serves: what a person types, sees, and is told when it does not work.

use ci_tests::program::{Finished, Invocation, Started};
use ci_tests::workshop::Workshop;
use rustix::process::Signal;

/// An agent in a workshop of its own. Its jobs end with it.
struct Agent {
    workshop: Workshop,
    front: Option<Started>,
}

impl Agent {
    fn new(arguments: &[&str]) -> Self {
        let workshop = Workshop::new();
        workshop.file(
            "build/step.yml",
            "{}\n---\nrun:\n  - {name: compile, script: 'echo compiled; echo careful >&2'}\n  - {name: test, script: exit 7}\n",
        );
        workshop.file("good/step.yml", "{}\n---\nexec: {command: [echo, fine]}\n");
        workshop.file("long/step.yml", "{}\n---\nexec: {command: [sh, -c, \"echo ready; sleep 1000\"]}\n");
        let mut front = workshop.step_runner(&[&["serve"], arguments].concat()).start();
        front.wait_for("is listening on socket");
        Self { workshop, front: Some(front) }
    }

    fn remote(&self, arguments: &[&str]) -> Invocation {
        self.workshop.step_runner(&[&["remote"], arguments].concat())
    }

    fn ends(&self, arguments: &[&str], code: i32) -> Finished {
        self.remote(arguments).finish().exits(code)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(front) = self.front.take() {
            front.signal(Signal::TERM);
            front.signal(Signal::TERM);
            if !std::thread::panicking() {
                front.finish();
            }
        }
    }
}

#[test]
fn a_job_that_runs_there_is_told_of_as_one_that_runs_here() {
    let agent = Agent::new(&[]);
    let finished = agent.ends(&["run", "./build"], 1).prints("compiled\n").prints("careful\n");
    finished.says("error: step \"test\": exec: exit status 7\n").says("job failed in ");
    agent.ends(&["run", "./good"], 0).prints("fine\n").says("job succeeded in ");
    agent.ends(&["run", "./build", "--pass-exit-code", "-q"], 7);
    agent.ends(&["status"], 0).prints("no jobs\n");
}

#[test]
fn a_job_that_is_left_alone_is_followed_asked_about_and_closed_by_its_id() {
    let agent = Agent::new(&[]);
    agent.ends(&["run", "./long", "--detach", "--id", "seven"], 0).prints("seven\n");
    let mut follow = agent.remote(&["follow", "seven"]).start();
    follow.wait_for("ready\n");
    agent.ends(&["status", "seven", "--output", "json"], 0).prints("{\"id\":\"seven\",\"status\":\"running\"");
    agent.ends(&["cancel", "seven"], 0);
    follow.finish().exits(0);
    agent.ends(&["status"], 0).prints("seven  cancelled").prints("job \"seven\" cancelled: ");
    let raw = agent.ends(&["follow", "seven", "--raw"], 0).stdout();
    assert!(raw.contains("Z 01O ready\n"), "{raw}");
    let from = raw.find("ready").expect("it is there").to_string();
    assert_eq!(agent.ends(&["follow", "seven", "--offset", &from], 0).stdout(), "ready\n");
    agent.ends(&["close", "seven", "nobody"], 0);
    agent.ends(&["status", "seven"], 3).says("error: no job with id \"seven\"\n hint: the agent has no jobs\n");
}

#[test]
fn programs_get_events_with_the_stream_of_each_piece() {
    let agent = Agent::new(&[]);
    let events = agent.ends(&["run", "./build", "--output", "json"], 1).stdout();
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    let output = |stream: &str| {
        let of_stream = events.iter().filter(|event| event["event"] == "output" && event["stream"] == stream);
        of_stream.filter_map(|event| event["text"].as_str()).collect::<String>()
    };
    assert!(output("stdout").contains("compiled\n"), "{events:#?}");
    assert_eq!(output("stderr"), "careful\n");
    let last = events.last().expect("events");
    assert_eq!((last["event"].as_str(), last["status"].as_str(), last["exit_code"].as_i64()), (Some("finished"), Some("failure"), Some(1)));
}

#[test]
fn ctrl_c_cancels_and_a_second_one_closes() {
    let agent = Agent::new(&[]);
    let mut run = agent.remote(&["run", "./long", "--id", "one", "--keep"]).start();
    run.wait_for("ready\n");
    run.signal_group(Signal::INT);
    run.finish().exits(130).says("SIGINT: the steps are asked to end");
    agent.ends(&["status", "one"], 0).prints("cancelled");

    agent.workshop.file("stubborn/step.yml", "{}\n---\nexec: {command: [sh, -c, \"trap '' TERM; echo ready; sleep 1000; sleep 1000\"]}\n");
    let mut run = agent.remote(&["run", "./stubborn", "--id", "two", "--keep"]).start();
    run.wait_for("ready\n");
    run.signal(Signal::TERM);
    run.wait_for("asked to end");
    run.signal(Signal::TERM);
    run.finish().exits(143).says("job `two` was ended and is forgotten there");
    agent.ends(&["status", "two"], 3).says("no job with id");
}

#[test]
fn a_request_can_be_looked_at_before_it_is_sent_and_holds_no_secret() {
    let agent = Agent::new(&[]);
    agent.workshop.file("secrets", "TOKEN=very-secret\n");
    let printed = agent.ends(&["run", "./good", "--secrets", "secrets", "--dry-run", "--id", "x"], 0).stdout();
    let request: serde_json::Value = serde_json::from_str(&printed).expect("json");
    assert_eq!((request["id"].as_str(), request["workDir"].as_str()), (Some("x"), Some(&*agent.workshop.dir().to_string_lossy())));
    assert!(printed.contains("[MASKED TOKEN]") && !printed.contains("very-secret"), "{printed}");
    agent.ends(&["status"], 0).prints("no jobs\n");
}

#[test]
fn what_goes_wrong_is_told_with_the_way_out() {
    let workshop = Workshop::new();
    let remote = |arguments: &[&str]| workshop.step_runner(&[&["remote"], arguments].concat()).finish();
    remote(&["status"])
        .exits(70)
        .says("error: could not reach an agent at `")
        .says("step-runner.sock`: no such file or directory\n hint: start one there with `step-runner serve`, or say with `--connect`");
    remote(&["status", "--connect", "exec:no-such-program x"])
        .exits(70)
        .says("could not start `no-such-program`")
        .says("must be in the PATH");
    remote(&["status", "--connect", "exec:echo I am no agent"])
        .exits(70)
        .says("the connection to the agent at `exec:echo I am no agent` was lost");
    remote(&["status", "--connect", "nowhere"]).exits(2).says("it is neither a socket nor a way to one").says("`unix:PATH`");
    remote(&["run", "./x", "--shell", "--grace", "soon"])
        .exits(2)
        .says("`--shell` cannot be used")
        .says("`--grace`: `soon` is not a length of time");
    remote(&[]).exits(2);
    drop(std::os::unix::net::UnixListener::bind(workshop.path("tmp/step-runner.sock")).expect("a socket"));
    remote(&["status"]).exits(70).says("connection refused").says("start `step-runner serve` again");
    workshop.step_runner(&["man", "remote"]).finish().exits(0).prints("connect");
}

#[test]
fn the_result_of_a_job_there_is_that_of_a_job_here() {
    let agent = Agent::new(&[]);
    agent.ends(&["run", "./build", "--id", "seven", "--keep", "--result", "at-once.json"], 1);
    agent.ends(&["result", "seven"], 0).prints("compile").prints("test: exec: exit status 7");
    let later = agent.ends(&["result", "seven", "--output", "json"], 0).stdout();
    let later: serde_json::Value = serde_json::from_str(&later).expect("json");
    assert_eq!(later, agent.workshop.result("at-once.json"));
    agent.workshop.file("later.json", later.to_string());
    agent.workshop.step_runner(&["show", "later.json"]).finish().exits(0).prints("exit status 7");
    agent.ends(&["result", "nobody"], 3).says("no job with id");
}

#[test]
fn a_job_as_it_was_received_runs_on_a_laptop() {
    let agent = Agent::new(&[]);
    agent.workshop.file("secrets", "TOKEN=very-secret\n");
    agent.workshop.file("job/step.yml", "{}\n---\nexec: {command: [echo, \"token: ${{ job.TOKEN }}\"]}\n");
    agent.ends(&["run", "./job", "--secrets", "secrets", "--id", "seven", "--keep"], 0).prints("token: [MASKED]");
    let payload = agent.ends(&["payload", "seven"], 0).stdout();
    assert!(payload.contains("[MASKED TOKEN]") && !payload.contains("very-secret"), "{payload}");
    agent.workshop.file("received.json", &payload);
    agent.workshop.step_runner(&["run", "received.json", "--secrets", "secrets"]).finish().exits(0).prints("token: [MASKED]");
    // A job of GitLab has steps that no text can say.
    let gitlab = r#"{"id": 9, "token": "t", "job_info": {"name": "j"}, "variables": [{"key": "WHO", "value": "ann", "public": true}],
        "steps": [{"name": "script", "script": ["echo hello $WHO"], "when": "on_success", "timeout": 60}]}"#;
    agent.workshop.file("payload.json", gitlab);
    agent.ends(&["run", "payload.json", "--id", "nine", "--keep"], 0).prints("hello ann");
    let payload = agent.ends(&["payload", "nine"], 0).stdout();
    agent.workshop.file("nine.json", &payload);
    agent.workshop.step_runner(&["run", "nine.json"]).finish().exits(0).prints("hello ann");
}

#[test]
fn an_agent_behind_ssh_is_reached_by_its_proxy() {
    let Some(farm) = ci_tests::kit::Component::start_with("sshd-farm", &[]) else { return };
    let agent = Agent::new(&[]);
    let host = farm.get("SSH_HOSTS").trim_matches('\'').split(' ').next().expect("a host").to_owned();
    // What ~/.ssh/config and the profile of the host say elsewhere: a key, and where the programs are.
    let workshop = &agent.workshop;
    let program = ci_tests::program::path("STEP_RUNNER");
    std::fs::create_dir_all(workshop.path("there")).expect("a directory");
    std::os::unix::fs::symlink(&program, workshop.path("there/step-runner")).expect("a link");
    let ssh = format!(
        "#!/bin/sh\n[ \"$1\" = -T ] || exit 2\nhost=$2; shift 2\nexec /usr/bin/ssh -T {} -i {} \"$host\" \"PATH={}:/usr/bin:/bin TMPDIR={} $*\"\n",
        farm.get("SSH_OPTIONS").trim_matches('\''),
        farm.get("SSH_KEY"),
        workshop.path("there").display(),
        workshop.path("tmp").display()
    );
    let script = workshop.file("bin/ssh", ssh);
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", workshop.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let place = format!("ssh:{}@{host}", farm.get("SSH_USER"));
    let remote = |words: &[&str]| agent.remote(&[words, &["--connect", &place]].concat()).env("PATH", &path).finish();
    let work_dir = workshop.dir().to_string_lossy().into_owned();
    remote(&["run", "./good", "--work-dir", &work_dir]).exits(0).prints("fine\n");
    remote(&["run", "./build", "--work-dir", &work_dir, "--id", "seven", "--keep"])
        .exits(1)
        .prints("compiled\n")
        .says("exec: exit status 7");
    remote(&["status", "seven"]).exits(0).prints("seven  failed");
    remote(&["close", "seven"]).exits(0);
    let nobody = agent.remote(&["status", "--connect", "ssh:root@127.77.0.254"]).env("PATH", &path).finish();
    nobody.exits(70).says("the connection to the agent at `ssh:root@127.77.0.254` was lost");
}

/// A container of a test, removed with it.
struct Container<'a> {
    engine: &'a ci_tests::docker::Engine,
    name: String,
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        let rm = std::process::Command::new("docker").args(["rm", "-f", &self.name]).env("DOCKER_HOST", &self.engine.host).output();
        drop(rm);
    }
}

#[test]
fn an_agent_that_is_the_first_process_of_a_container_is_reached_by_exec_and_reaps_what_nobody_waits_for() {
    let Some(engine) = ci_tests::docker::Engine::shared() else { return };
    let Some(()) = engine.images(&["busybox"]) else { return };
    let workshop = Workshop::new();
    let program = workshop.path("there/step-runner");
    std::fs::create_dir_all(workshop.path("there")).expect("a directory");
    std::fs::copy(ci_tests::program::path("STEP_AGENT"), &program).expect("a program");
    let name = format!("journey-remote-{}", std::process::id());
    let mount = format!("{}:/there:ro", workshop.path("there").display());
    let run = ["run", "-d", "--name", &name, "-v", &mount, "-e", "PATH=/there:/bin", "ci/busybox:1", "step-runner", "serve", "/tmp"];
    engine.docker(&run);
    let container = Container { engine: &engine, name };
    let place = format!("docker:{}", container.name);
    let path = std::env::var("PATH").unwrap_or_default();
    let remote = |words: &[&str]| {
        let words = [&["remote"], words, &["--connect", &place, "--wait", "20s"]].concat();
        // The last two are of `run` alone.
        let words: Vec<&str> = if words[1] == "run" { words } else { words[..words.len() - 2].to_vec() };
        workshop.step_runner(&words).env("PATH", &path).env("DOCKER_HOST", &engine.host).finish()
    };
    workshop.file("good/step.yml", "{}\n---\nexec: {command: [echo, fine]}\n");
    let steps = |script: &str| format!("step: dist://script\ninputs: {{script: \"{script}\"}}\n");
    remote(&["run", &steps("echo $$ >/tmp/pid; echo inside"), "--work-dir", "/tmp"]).exits(0).prints("inside\n");
    // The process of this job is killed: what it leaves has no parent but the agent.
    let orphaned = "sleep 0.1 & setsid sleep 0.1 & (sleep 0.1 &) ; kill -9 $PPID; sleep 1000";
    remote(&["run", &steps(orphaned), "--work-dir", "/tmp", "--id", "dead", "--keep"]).exits(70).says("interrupted");
    let zombies = "for each in /proc/[0-9]*/stat; do cat $each 2>/dev/null; done | grep -c ') Z ' || true";
    let mut left = String::new();
    for _ in 0..600 {
        left = engine.docker(&["exec", &container.name, "sh", "-c", zombies]);
        if left == "0" {
            break;
        }
    }
    assert_eq!(left, "0", "zombies stay");
    remote(&["status", "dead"]).exits(0).prints("interrupted");
}
