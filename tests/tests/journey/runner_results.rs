//! The results of jobs: pushed to the service of the server, kept while it is away, sent once whoever is killed; and for a person, a tree and a payload.

use super::runner_run::{Scene, jobs};
use ci_tests::program::Finished;
use runner_mock_gitlab::scenario::{self, CallKind, Wrong};
use runner_mock_gitlab::world::{TakenResult, World};
use runner_mock_gitlab::{Burst, Fault, Report};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The scene, with its server as the results service too.
fn scene(bursts: Vec<Burst>, faults: Vec<scenario::Fault>) -> Scene {
    let scene = Scene::with(bursts, |scenario| scenario.faults = faults);
    let text = scene.workshop.read("config.toml");
    let results = format!("[runner_core.results]\naddress = \"{}\"\ntoken = \"for-results\"\n", scene.server.url());
    scene.workshop.file("config.toml", format!("{text}\n{results}"));
    scene
}

fn fault(times: u64, what: Wrong) -> scenario::Fault {
    scenario::Fault { call: CallKind::Result, job: None, skip: 0, times, every: 1, what }
}

fn results(scene: &Scene) -> Vec<TakenResult> {
    scene.server.look(|world| world.results().to_vec())
}

fn all_have_results(world: &World) -> bool {
    world.results().len() == world.jobs().len() && world.results().iter().all(|result| result.was_answered)
}

fn ask(scene: &Scene, arguments: &[&str]) -> Finished {
    scene.workshop.runner_core(arguments).finish()
}

/// Names of the files below the results of the state that are still to be sent.
fn unsent(scene: &Scene) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scene.workshop.path(".runner-core/results/unsent")).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// What Prometheus would read.
fn metrics(scene: &Scene) -> String {
    let mut stream = UnixStream::connect(scene.workshop.path(".runner-core/runner-core.sock")).expect("a runner answers");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn the_result_of_each_job_reaches_the_service_and_a_person_sees_the_tree_and_saves_the_payload() {
    let failing = Burst {
        name: "build".to_owned(),
        masked: [("PASSWORD".to_owned(), "correct horse battery".to_owned())].into(),
        ..jobs(1, &["echo the password is $PASSWORD", "exit 7"])
    };
    let scene = scene(vec![failing, jobs(1, &["echo fine"])], Vec::new());
    let runner = scene.run();
    scene.until_all_ended();
    scene.until(all_have_results);
    let results = results(&scene);
    let of = |state: &str| results.iter().find(|result| result.head.state == state).expect("a result");
    let (failed, succeeded) = (of("failed"), of("success"));
    let job = failed.head.job.as_ref().expect("a job");
    assert_eq!((failed.head.failure_reason.as_str(), failed.head.exit_code, job.name.as_str()), ("script_failure", 7, "build"));
    assert!(failed.head.runner.as_ref().is_some_and(|runner| runner.name == "journey"));
    assert!(!failed.tree.is_empty() && !succeeded.tree.is_empty());

    let number = job.number.to_string();
    let shown = ask(&scene, &["result", &number, "--config", "config.toml"]).exits(0).prints("failed").prints("build").stdout();
    assert!(shown.contains("exit status 7"), "{shown}");
    let json = ask(&scene, &["result", &number, "--config", "config.toml", "--output", "json"]).exits(0).stdout();
    let tree: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(tree["status"], "failure", "{json}");

    // The last line of the trace says what to type; it works as it stands, with the secret supplied.
    let trace = scene.server.look(|world| String::from_utf8_lossy(&world.jobs().values().next().expect("a job").trace).into_owned());
    let last = trace.trim_end().lines().last().expect("a line");
    assert!(last.contains(&format!("runner-core payload {number} && step-runner run job-{number}.json")), "{trace}");
    ask(&scene, &["payload", &number, "--config", "config.toml"]).exits(0).says("step-runner run");
    let file = format!("job-{number}.json");
    assert!(!scene.workshop.read(&file).contains("correct horse"), "{}", scene.workshop.read(&file));
    scene.workshop.step_runner(&["run", &file]).finish().exits(3).says("PASSWORD");
    scene.workshop.file("secrets.env", "PASSWORD=battery staple\n");
    scene.workshop.step_runner(&["run", &file, "--secrets", "secrets.env"]).finish().exits(1).prints("the password is [MASKED]");
    scene.end(runner, |report| report);
}

#[test]
fn results_wait_for_a_service_that_is_away_and_one_whose_answer_was_lost_is_known_there() {
    let away = Wrong::Status { status: 503, headers: Default::default(), body: String::new() };
    let scene = scene(vec![jobs(3, &["echo hello"])], vec![fault(2, away), fault(1, Wrong::Lost), fault(1, Wrong::Close)]);
    let runner = scene.run();
    scene.until_all_ended();
    scene.until(all_have_results);
    let mut times: Vec<u64> = results(&scene).iter().map(|result| result.times).collect();
    times.sort();
    assert_eq!(times, [1, 1, 2], "only the one whose answer was lost came twice");
    scene.end(runner, |report| report);
}

#[test]
fn a_runner_that_is_killed_while_the_service_is_away_leaves_its_results_to_the_next_one_which_sends_each_once() {
    let scene = scene(vec![jobs(4, &["echo hello"])], Vec::new());
    let whole = scene.workshop.read("config.toml");
    // A port that was free a moment ago: nobody listens there.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let address = format!("address = \"{}\"", scene.server.url());
    scene.workshop.file("config.toml", whole.replace(&address, &format!("address = \"http://{nobody}\"")));
    let mut runner = scene.run();
    scene.until_all_ended();
    runner.wait_for("results wait for the results service: connection refused");
    assert_eq!((unsent(&scene).len(), results(&scene).len()), (4, 0));
    runner.signal(Signal::KILL);
    drop(runner.finish());

    scene.workshop.file("config.toml", whole);
    let runner = scene.run();
    scene.until(|world| !world.results().is_empty());
    runner.signal(Signal::KILL);
    drop(runner.finish());
    let mut runner = scene.run();
    runner.wait_for("runner-core begins");
    scene.until(all_have_results);
    scene.end(runner, of_a_killed_runner);
}

/// One that was killed before its records were gone says the end of a job once more, and the server says that it had it.
fn of_a_killed_runner(report: Report) -> Report {
    let mut report = report.without_offsets();
    report.violations.retain(|violation| !matches!(violation.what, Fault::AfterTheEnd { .. }));
    report
}

#[test]
fn without_a_service_a_result_becomes_an_artifact_of_its_job_where_that_is_wanted() {
    let scene = Scene::new(vec![jobs(1, &["echo hello", "exit 3"])]);
    let text = scene.workshop.read("config.toml");
    scene.workshop.file("config.toml", format!("{text}\n[runner_core.results]\nartifact = true\n"));
    let runner = scene.run();
    scene.until_all_ended();
    let artifacts = scene.server.look(|world| world.jobs().values().next().expect("a job").artifacts.clone());
    let [(query, body)] = &artifacts[..] else { panic!("{} artifacts", artifacts.len()) };
    assert_eq!(query, "artifact_format=gzip&artifact_type=metrics_referee");
    assert!(body.windows(2).any(|window| window == b"\x1f\x8b") && body.windows(19).any(|window| window == b"step-result.json.gz"));
    scene.end(runner, |report| report);
}

#[test]
fn without_a_service_results_are_kept_for_people_and_old_ones_go() {
    let scene = Scene::new(vec![jobs(3, &["echo hello"])]);
    let text = scene.workshop.read("config.toml");
    scene.workshop.file("config.toml", format!("{text}\n[runner_core.results]\nkeep_count = 2\n"));
    let runner = scene.run();
    scene.until_all_ended();
    let ids = scene.server.look(|world| world.jobs().keys().map(|key| key.id.to_string()).collect::<Vec<_>>());
    let metrics = metrics(&scene);
    for counted in ["gitlab_runner_jobs_total{", "endpoint=\"request_job\",status=\"201\"} "] {
        let line = metrics.lines().find(|line| line.contains(counted)).unwrap_or_else(|| panic!("{counted}\n{metrics}"));
        assert!(line.ends_with("} 3") && line.contains("runner_name=\"journey\""), "{line}");
    }
    let found = ids.iter().filter(|id| ask(&scene, &["result", id, "--config", "config.toml"]).status.success()).count();
    assert_eq!(found, 2);
    ask(&scene, &["result", "4711", "--config", "config.toml"]).exits(1).says("no result of job 4711 is kept");
    ask(&scene, &["payload", "4711", "--config", "config.toml"]).exits(1).says("hint");
    scene.end(runner, |report| report);
}
