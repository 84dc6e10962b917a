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
