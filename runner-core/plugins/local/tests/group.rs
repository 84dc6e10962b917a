//! The group with the real agent: in this process, and as a plugin behind a host. `./test` names the agent in STEP_RUNNER.
#![cfg(unix)]

use fleeting_plugin_local::LocalGroup;
use runner_fleeting::contract::{self, Trial};
use runner_fleeting::{Change, Failure, Health, Instance, InstanceGroup, InstanceId, Options, Plugin, Settings, State, protocol};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// # Panics
/// The variable is not set: a guess at a build directory would test a stale program.
fn step_runner() -> String {
    std::env::var("STEP_RUNNER")
        .expect("STEP_RUNNER is not set: run the tests by ./test, which builds the agent first and exports its path")
}

/// A directory whose instances end with the test, also when it fails.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn config(&self) -> Value {
        json!({"directory": self.path().join("g"), "program": step_runner(), "max_size": 4, "stop_timeout": "20s"})
    }

    fn agent(&self, id: &InstanceId) -> Pid {
        let lock = self.path().join("g").join(&id.0).join(".step-runner.lock");
        Pid::from_raw(std::fs::read_to_string(lock).unwrap().parse().unwrap()).unwrap()
    }

    fn instances(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join("g")).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| name.starts_with("i-")).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for id in self.instances() {
            let lock = self.path().join("g").join(id).join(".step-runner.lock");
            let number = std::fs::read_to_string(lock).ok().and_then(|number| Pid::from_raw(number.parse().ok()?));
            let _ = number.map(|agent| rustix::process::kill_process(agent, Signal::KILL));
        }
    }
}

fn trial(config: Value) -> Trial {
    let (patience, look) = (Duration::from_secs(30), Duration::from_millis(5));
    Trial { config, settings: Settings::default(), instances: 3, patience, look, early_shutdown: true }
}

fn assert_kept(findings: &[contract::Finding]) {
    let report: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.iter().all(|finding| finding.fault.is_none()), "{}", report.join("\n"));
    assert_eq!(findings.len(), 15, "{}", report.join("\n"));
}

async fn group(config: &Value) -> LocalGroup {
    let group = LocalGroup::default();
    group.init(config, &Settings::default()).await.unwrap();
    group
}

async fn with_one(config: &Value) -> (LocalGroup, InstanceId) {
    let group = group(config).await;
    assert_eq!(group.change(Change::Increase(1)).await.unwrap().count, 1);
    let report = group.update().await.unwrap();
    assert_eq!(report.iter().map(|instance| instance.state).collect::<Vec<_>>(), [State::Running]);
    (group, report[0].id.clone())
}

fn running(id: &InstanceId) -> Vec<Instance> {
    vec![Instance { id: id.clone(), state: State::Running }]
}

#[tokio::test]
async fn the_group_keeps_the_contract_in_this_process() {
    let place = Place::new();
    assert_kept(&contract::judge(&LocalGroup::default(), &trial(place.config())).await);
    assert_eq!(place.instances(), Vec::<String>::new(), "nothing is left");
}

#[tokio::test]
async fn the_group_keeps_the_contract_as_a_plugin_in_the_clear_and_in_tls() {
    for tls in [false, true] {
        let place = Place::new();
        let options = Options { tls, ..Options::named("local") };
        let plugin = Plugin::start(Path::new(env!("CARGO_BIN_EXE_fleeting-plugin-local")), &options).await.unwrap();
        assert_kept(&contract::judge(&plugin, &trial(place.config())).await);
        assert!(plugin.end().await);
    }
}

#[tokio::test]
async fn an_instance_is_told_by_its_socket_and_a_protocol_of_its_own() {
    let place = Place::new();
    let (group, id) = with_one(&place.config()).await;
    let info = group.connect_info(&id).await.unwrap();
    assert_eq!((info.connector.protocol.as_str(), info.external_address.as_str()), (protocol::AGENT_SOCKET, ""));
    assert!(UnixStream::connect(info.internal_address).is_ok());
    assert_eq!(group.heartbeat(&id).await, Ok(Health::Healthy));
}

#[tokio::test]
async fn an_instance_outlives_its_plugin_and_the_next_one_finds_it() {
    let place = Place::new();
    let (first, id) = with_one(&place.config()).await;
    let agent = place.agent(&id);
    assert_eq!(first.shutdown().await, Ok(()));
    drop(first);
    let second = group(&place.config()).await;
    assert_eq!(second.update().await, Ok(running(&id)));
    assert_eq!(place.agent(&id), agent, "it is the same process");
    assert_eq!(rustix::process::getsid(Some(agent)).unwrap(), agent, "in a session of its own");
}

#[tokio::test]
async fn an_agent_that_was_killed_is_started_again_in_its_directory() {
    let place = Place::new();
    let (group, id) = with_one(&place.config()).await;
    let agent = place.agent(&id);
    rustix::process::kill_process(agent, Signal::KILL).unwrap();
    // The kernel may take a moment to let go of its lock.
    while UnixStream::connect(group.connect_info(&id).await.unwrap().internal_address).is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(group.update().await, Ok(running(&id)));
    assert_ne!(place.agent(&id), agent);
}

#[tokio::test]
async fn a_removal_that_was_interrupted_is_finished_by_the_next_plugin() {
    let place = Place::new();
    let (first, id) = with_one(&place.config()).await;
    drop(first);
    // All that a plugin does before it may be killed.
    std::fs::write(place.path().join("g").join(&id.0).join("ending"), "").unwrap();
    std::fs::create_dir(place.path().join("g/.gone-i-older1")).unwrap();
    let second = group(&place.config()).await;
    assert_eq!(second.update().await.unwrap()[0].state, State::Deleting);
    assert_eq!(second.connect_info(&id).await, Err(Failure::refused(format!("instance {id} does not exist"))));
    assert_eq!(second.shutdown().await, Ok(()), "it waits for what is ending");
    assert_eq!(place.instances(), Vec::<String>::new());
    assert!(!place.path().join("g/.gone-i-older1").exists(), "leftovers are swept");
}

#[tokio::test]
async fn there_are_never_more_instances_than_the_configuration_allows() {
    let place = Place::new();
    let group = group(&json!({"directory": place.path().join("g"), "program": step_runner(), "max_size": 2})).await;
    let made = group.change(Change::Increase(5)).await.unwrap();
    assert_eq!((made.count, made.trouble.as_deref()), (2, Some("there is room for 2 more instances: `max_size` is 2")));
    let ids = group.update().await.unwrap().into_iter().map(|instance| instance.id).collect();
    group.change(Change::Decrease(ids)).await.unwrap();
    group.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_no_agent_is_given_up_after_three_tries() {
    let place = Place::new();
    let group = group(&json!({"directory": place.path().join("g"), "program": "/bin/false"})).await;
    assert_eq!(group.change(Change::Increase(1)).await.unwrap().count, 1);
    let report = group.update().await.unwrap();
    assert_eq!(report.iter().map(|instance| instance.state).collect::<Vec<_>>(), [State::Timeout]);
    group.shutdown().await.unwrap();
    assert_eq!(place.instances(), Vec::<String>::new());
}

#[tokio::test]
async fn two_plugins_with_one_group_see_the_same_instances() {
    let place = Place::new();
    let (first, second) = (group(&place.config()).await, group(&place.config()).await);
    let (a, b) = tokio::join!(first.change(Change::Increase(2)), second.change(Change::Increase(2)));
    assert_eq!((a.unwrap().count, b.unwrap().count), (2, 2));
    let (seen_by_first, seen_by_second) = (first.update().await.unwrap(), second.update().await.unwrap());
    assert_eq!((seen_by_first.len(), &seen_by_first), (4, &seen_by_second));
    assert_eq!(first.change(Change::Increase(1)).await.unwrap().count, 0, "the size is that of the group");
}

#[tokio::test]
async fn an_instance_that_has_gone_is_reported_as_deleted_once() {
    let place = Place::new();
    let (group, id) = with_one(&place.config()).await;
    group.change(Change::Decrease(vec![id.clone()])).await.unwrap();
    let mut report = group.update().await.unwrap();
    while report[0].state == State::Deleting {
        report = group.update().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(report, [Instance { id, state: State::Deleted }]);
    assert_eq!(group.update().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_path_is_no_instance() {
    let place = Place::new();
    let (group, id) = with_one(&place.config()).await;
    for stranger in ["../g", "i-", ".", "", &format!("./{id}"), "i-../x"] {
        let stranger = InstanceId::from(stranger);
        assert_eq!(group.change(Change::Decrease(vec![stranger.clone()])).await.unwrap().instances, [stranger]);
    }
    assert_eq!(group.update().await, Ok(running(&id)), "it is still there");
}
