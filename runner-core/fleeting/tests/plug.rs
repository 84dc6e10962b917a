//! Host and plugin as two processes: the fake through a whole life, and what becomes of a plugin that fails.
#![cfg(unix)]

use runner_fleeting::contract::{self, Trial};
use runner_fleeting::{Change, Changed, Failure, Health, Hosted, InstanceGroup, InstanceId, Options, Plugin, Settings, StartFault};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FAKE: &str = env!("CARGO_BIN_EXE_fleeting-plugin-fake");

fn options() -> Options {
    Options { start_limit: Duration::from_secs(20), ..Options::named("fake") }
}

fn fake() -> &'static Path {
    Path::new(FAKE)
}

async fn started(options: &Options) -> Plugin {
    Plugin::start(fake(), options).await.unwrap()
}

async fn with_faults(options: &Options, faults: Value) -> Plugin {
    let plugin = started(options).await;
    plugin.init(&json!({"faults": faults}), &Settings::default()).await.unwrap();
    plugin
}

fn trial() -> Trial {
    Trial {
        config: Value::Null,
        settings: Settings::default(),
        instances: 3,
        patience: Duration::from_secs(20),
        look: Duration::from_millis(1),
    }
}

/// A shell script in the place of a plugin.
fn script(directory: &Path, text: &str) -> PathBuf {
    let file = directory.join("fleeting-plugin-script");
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

async fn fault_of(text: &str, options: &Options) -> String {
    let directory = tempfile::tempdir().unwrap();
    let program = script(directory.path(), text);
    let fault = Plugin::start(&program, options).await.unwrap_err().to_string();
    fault.replace(&program.display().to_string(), "PLUGIN")
}

#[tokio::test]
async fn the_fake_keeps_the_contract_over_the_wire_in_the_clear_and_in_tls() {
    for tls in [false, true] {
        let plugin = started(&Options { tls, ..options() }).await;
        let findings = contract::judge(&plugin, &trial()).await;
        let failed: Vec<String> = findings.iter().filter(|finding| finding.fault.is_some()).map(ToString::to_string).collect();
        assert_eq!((failed, findings.len()), (Vec::new(), 16), "tls: {tls}");
        assert!(plugin.end().await, "it ends when it is asked to");
    }
}

#[tokio::test]
async fn a_program_that_is_no_plugin_is_told_with_its_reason() {
    let late = Options { start_limit: Duration::from_millis(50), ..options() };
    assert_eq!(fault_of("echo hello", &options()).await, "unrecognized remote plugin message: hello: PLUGIN");
    assert_eq!(fault_of("exit 7", &options()).await, "plugin exited before we could connect (exit status: 7): PLUGIN");
    assert_eq!(
        fault_of("echo '2|0|unix|/p|grpc|'", &options()).await,
        "incompatible core API version with plugin. Plugin version: 2, Core version: 1: PLUGIN"
    );
    assert_eq!(fault_of("exec sleep 1000", &late).await, "timeout while waiting for plugin to start: `PLUGIN` has said nothing for 50ms");
    assert_eq!(
        fault_of("head -c 70000 /dev/zero; exec sleep 1000", &options()).await,
        "the first line of `PLUGIN` is longer than 65536 bytes; is it a fleeting plugin?"
    );
    assert!(fault_of("echo '1|0|unix|/nobody/listens|grpc|'", &options()).await.starts_with("could not reach the plugin `PLUGIN`: "));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let missing = Plugin::start(&directory.path().join("none"), &options()).await.unwrap_err().to_string();
    assert!(missing.ends_with("is it there, and its interpreter or loader, if it needs one?"), "{missing}");
    let program = script(directory.path(), "");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Plugin::start(&program, &options()).await.unwrap_err().to_string();
    assert!(refused.ends_with("Permission denied (os error 13); make it executable by `chmod +x`"), "{refused}");
}

#[tokio::test]
async fn a_plugin_without_a_certificate_is_refused_where_tls_is_asked_for() {
    let tls = Options { tls: true, ..options() };
    let fault = fault_of("echo '1|0|unix|/tmp/p|grpc|'; exec sleep 1000", &tls).await;
    assert_eq!(fault, "plugin did not return a certificate, though TLS was asked for: PLUGIN");
}

#[tokio::test]
async fn s1_a_plugin_that_is_started_by_a_person_says_that_this_is_a_mistake() {
    let output = std::process::Command::new(FAKE).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), b"".as_slice()));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("This binary is a plugin. These are not meant to be executed directly.\n"));
}

#[tokio::test]
async fn an_answer_that_is_late_fails_and_the_plugin_still_answers() {
    let mut options = options();
    options.limits.update = Duration::from_millis(50);
    let plugin = with_faults(&options, json!(["Update: hang"])).await;
    assert_eq!(plugin.update().await, Err(Failure::Late { call: "Update", limit: Duration::from_millis(50) }));
    assert_eq!(plugin.update().await, Ok(Vec::new()));
}

#[tokio::test]
async fn h32_a_plugin_that_dies_fails_the_call_that_waits_for_it() {
    let plugin = with_faults(&options(), json!(["Increase: die"])).await;
    let failure = plugin.change(Change::Increase(1)).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the plugin does not run: it has ended (signal: 6 (SIGABRT) (core dumped))".replace(" (core dumped)", core(&failure))
    );
}

/// Whether there is a core file is the machine's affair.
fn core(failure: &Failure) -> &'static str {
    if failure.to_string().contains("core dumped") { " (core dumped)" } else { "" }
}

#[tokio::test]
async fn a_plugin_cannot_have_made_more_than_it_was_asked_for() {
    let plugin = with_faults(&options(), json!(["Increase: claim 5"])).await;
    assert_eq!(plugin.change(Change::Increase(2)).await, Ok(Changed::count(2)));
}

#[tokio::test]
async fn a_refusal_has_the_plugins_own_words() {
    let plugin = with_faults(&options(), json!(["ConnectInfo: refuse no address yet", "Heartbeat: refuse who knows"])).await;
    let id = InstanceId::from("i");
    assert_eq!(plugin.connect_info(&id).await, Err(Failure::refused("no address yet")));
    assert_eq!(plugin.heartbeat(&id).await, Ok(Health::Unhealthy { reason: "who knows".to_owned() }));
}

#[tokio::test]
async fn a_plugin_that_floods_its_log_and_its_output_harms_nothing() {
    let plugin = with_faults(&options(), json!(["Update: print 100000"])).await;
    assert_eq!(plugin.update().await, Ok(Vec::new()));
    assert_eq!(plugin.change(Change::Increase(1)).await, Ok(Changed::count(1)));
    assert!(plugin.end().await);
}

#[tokio::test]
async fn h34_a_plugin_that_does_not_end_is_killed_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let text = format!("sleep 1000 & echo $! >{}; exec sleep 1000", pid.display());
    let program = script(directory.path(), &text);
    let late = Options { start_limit: Duration::from_millis(500), ..options() };
    let fault = Plugin::start(&program, &late).await.unwrap_err();
    assert!(matches!(fault, StartFault::Late { .. }), "{fault}");
    let child: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    // Killed a moment ago, perhaps not yet gone.
    let gone = || std::fs::read_to_string(format!("/proc/{child}/stat")).map_or(true, |stat| stat.contains(") Z "));
    while !gone() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_plugin_that_has_died_is_started_again_and_takes_up_its_group() {
    let hosted = Hosted::new(fake().into(), options());
    let info = hosted.init(&json!({"faults": ["Update: die"]}), &Settings::default()).await.unwrap();
    assert_eq!(info.id, "fake");
    let failure = hosted.update().await.unwrap_err();
    assert!(
        failure.to_string().ends_with("; it is started again in 1s") || failure.to_string().contains("it is started again in 999"),
        "{failure}"
    );
    // Meanwhile it fails at once.
    assert!(matches!(hosted.update().await, Err(Failure::Gone { again: Some(_), .. })));
    // The fault is configured anew with every start: the second life ends like the first, after a successful init.
    while matches!(hosted.change(Change::Increase(1)).await, Err(Failure::Gone { .. })) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(hosted.change(Change::Increase(2)).await, Ok(Changed::count(2)));
    assert_eq!(hosted.shutdown().await, Ok(()));
}

#[tokio::test]
async fn a_wrong_configuration_is_the_plugins_word_and_no_reason_to_replace_it() {
    let hosted = Hosted::new(fake().into(), options());
    let failure = hosted.init(&json!({"faults": ["Update: explode"]}), &Settings::default()).await.unwrap_err();
    assert!(failure.to_string().starts_with("plugin_config: faults: `Update: explode` is not `CALL: FAULT`"), "{failure}");
    assert!(hosted.init(&Value::Null, &Settings::default()).await.is_ok());
}
