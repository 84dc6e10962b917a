//! Plugins and hosts that somebody else wrote: the dummy plugin of the public Go module under our host, and the Go library above our plugins.

use ci_tests::{kit, program};
use runner_fleeting::{Change, Changed, Failure, Health, Instance, InstanceGroup, InstanceId, Options, Plugin, Settings, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// `None`: there is no Go here, and the test is skipped.
fn go() -> Option<BTreeMap<String, String>> {
    kit::run("go-fleeting", &[], &[])
}

async fn dummy(path: &str, tls: bool) -> Plugin {
    Plugin::start(Path::new(path), &Options { tls, ..Options::named("dummy") }).await.expect("the plugin starts")
}

fn states(report: &[Instance]) -> Vec<State> {
    report.iter().map(|instance| instance.state).collect()
}

/// The dummy finishes what it was asked for at the next look.
async fn when(plugin: &Plugin, wanted: &[State]) -> Vec<InstanceId> {
    loop {
        let mut report = plugin.update().await.expect("the group is reported");
        report.retain(|instance| instance.state != State::Deleted);
        report.sort_by(|a, b| a.id.cmp(&b.id));
        if states(&report) == wanted {
            return report.into_iter().map(|instance| instance.id).collect();
        }
    }
}

#[tokio::test]
async fn flh_20_the_dummy_plugin_in_go_lives_a_whole_life_under_our_host_in_the_clear_and_in_tls() {
    let Some(go) = go() else { return };
    for tls in [false, true] {
        let plugin = dummy(&go["FLEETING_PLUGIN_DUMMY"], tls).await;
        let info = plugin.init(&json!({"MaxSize": 5, "Suspendable": true}), &Settings::default()).await.expect("it takes up its group");
        assert_eq!((info.id.as_str(), info.max_size, info.can_suspend()), ("dummy/dummy", 5, true));
        assert_eq!(plugin.change(Change::Increase(3)).await, Ok(Changed::count(3)));
        let ids = when(&plugin, &[State::Running; 3]).await;
        let reached = plugin.connect_info(&ids[0]).await.expect("it says how an instance is reached");
        assert_eq!(reached.id, ids[0]);
        assert_eq!(plugin.heartbeat(&ids[0]).await, Ok(Health::Healthy));
        let stranger = InstanceId::from("x");
        assert_eq!(plugin.connect_info(&stranger).await, Err(Failure::refused("instance x does not exist")));
        assert!(matches!(plugin.heartbeat(&stranger).await, Ok(Health::Unhealthy { .. })));
        assert_eq!(plugin.change(Change::Suspend(vec![ids[1].clone()])).await, Ok(Changed::instances(vec![ids[1].clone()])));
        when(&plugin, &[State::Running, State::Suspended, State::Running]).await;
        assert_eq!(plugin.change(Change::Resume(vec![ids[1].clone()])).await, Ok(Changed::instances(vec![ids[1].clone()])));
        when(&plugin, &[State::Running; 3]).await;
        let removed = plugin.change(Change::Decrease(ids.clone())).await.expect("it removes what it made");
        assert_eq!(removed.count, 3);
        when(&plugin, &[]).await;
        assert_eq!(plugin.shutdown().await, Ok(()));
        assert!(plugin.end().await, "it ends by itself, TLS: {tls}");
    }
}

#[tokio::test]
async fn what_a_go_plugin_says_and_does_wrong_is_told_in_its_words() {
    let Some(go) = go() else { return };
    let plugin = dummy(&go["FLEETING_PLUGIN_DUMMY"], false).await;
    let refused = plugin.init(&json!([]), &Settings::default()).await.unwrap_err();
    let expected = "unmarshaling config: json: cannot unmarshal array into Go value of type dummy.InstanceGroup";
    assert_eq!(refused, Failure::refused(expected));
    assert!(plugin.init(&Value::Null, &Settings::default()).await.is_ok(), "no configuration is an empty one");
    plugin.end().await;
    // Without an init this plugin dies of its shutdown.
    let plugin = dummy(&go["FLEETING_PLUGIN_DUMMY"], false).await;
    let gone = plugin.shutdown().await.unwrap_err();
    assert_eq!(gone.to_string(), "the plugin does not run: it has ended (exit status: 2)");
}

#[test]
fn a_plugin_in_go_and_ours_are_judged_by_one_program() {
    let Some(go) = go() else { return };
    let judge = program::path("FLEETING_CONFORMANCE");
    let judged = |plugin: &str, config: &Value| {
        let arguments = ["--config", "-", "--wait", "30", plugin];
        let ended = program::Invocation::of(&judge, arguments).input(config.to_string()).finish();
        let lines: Vec<String> = ended.stdout().lines().filter(|line| !line.starts_with("ok ")).map(ToOwned::to_owned).collect();
        (ended.status.code(), lines)
    };
    let directory = tempfile::tempdir().expect("a directory");
    let config = json!({"directory": directory.path().join("g"), "program": program::path("STEP_RUNNER"), "max_size": 4});
    let local = program::path("FLEETING_PLUGIN_LOCAL").display().to_string();
    assert_eq!(judged(&local, &config), (Some(0), vec!["21 claims: 0 failed, 0 should be better".to_owned()]));
    let (code, lines) = judged(&go["FLEETING_PLUGIN_DUMMY"], &json!({"Suspendable": true, "ListenSSH": true}));
    let expected = [
        "should  a shutdown without init is fine",
        "          the plugin does not run: it has ended (exit status: 2)",
        "should  an instance that is not there counts as removed",
        "          instance (\"no-such-instance\") not found",
        "22 claims: 0 failed, 2 should be better",
    ];
    assert_eq!((code, lines.iter().map(String::as_str).collect::<Vec<_>>()), (Some(0), expected.to_vec()));
}

fn driven(tls: bool, plugin: &str, config: &Value) -> Vec<String> {
    let Some(go) = go() else { return Vec::new() };
    let plugin = program::path(plugin);
    let (config, plugin) = (config.to_string(), plugin.display().to_string());
    let flag = if tls { vec!["--tls"] } else { vec![] };
    let arguments: Vec<&str> = flag.into_iter().chain([plugin.as_str(), &config, "3"]).collect();
    let ended = program::Invocation::of(Path::new(&go["GO_FLEETING_HOST"]), arguments).finish();
    assert!(ended.status.success(), "{}", ended.stderr());
    ended.stdout().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn the_go_library_leads_our_fake_through_a_whole_life() {
    let said = driven(false, "FLEETING_PLUGIN_FAKE", &json!({}));
    let reached = r#"reached by "ssh" at true"#;
    let life = ["started", "initialized", "running 3", reached, reached, reached, "slept and woke", "gone", "ended"];
    assert!(said.is_empty() || said == life, "{said:?}");
    let said = driven(true, "FLEETING_PLUGIN_FAKE", &json!({}));
    assert!(said.is_empty() || said == ["started", "healthy", "initialized", "running 3", "gone", "ended"], "{said:?}");
}

#[test]
fn the_go_library_leads_the_local_plugin_through_a_whole_life() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = json!({"directory": directory.path().join("g"), "program": program::path("STEP_RUNNER"), "max_size": 4});
    let said = driven(false, "FLEETING_PLUGIN_LOCAL", &config);
    let reached = r#"reached by "step-runner+unix" at true"#;
    assert!(said.is_empty() || said == ["started", "initialized", "running 3", reached, reached, reached, "gone", "ended"], "{said:?}");
    let said = driven(true, "FLEETING_PLUGIN_LOCAL", &config);
    assert!(said.is_empty() || said == ["started", "healthy", "initialized", "running 3", "gone", "ended"], "{said:?}");
}
