//! Host and plugin as two processes: the fake through a whole life, and what becomes of a plugin that fails.
#![cfg(unix)]

use runner_fleeting::contract::{self, Trial};
use runner_fleeting::{
    Change, Changed, Failure, Health, Hosted, InstanceGroup, InstanceId, Level, Options, Plugin, Record, Settings, StartFault,
};
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
        early_shutdown: true,
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
async fn fls_01_a_plugin_that_is_started_by_a_person_says_that_this_is_a_mistake() {
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
async fn flh_32_a_plugin_that_dies_fails_the_call_that_waits_for_it() {
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
async fn a_program_that_does_not_end_is_killed_with_its_children() {
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

#[tokio::test]
async fn flh_05_only_the_first_line_counts() {
    assert_eq!(fault_of("echo hello; echo '1|0|unix|/p|grpc|'", &options()).await, "unrecognized remote plugin message: hello: PLUGIN");
}

#[tokio::test]
async fn flh_13_a_first_line_without_an_end_is_refused() {
    let fault = fault_of("head -c 70000 /dev/zero; exec sleep 1000", &options()).await;
    assert_eq!(fault, "the first line of `PLUGIN` is longer than 65536 bytes; is it a fleeting plugin?");
}

/// The fake, after some lines of shell.
async fn after(directory: &Path, text: &str, options: &Options) -> Result<Plugin, StartFault> {
    Plugin::start(&script(directory, &format!("{text}\nexec {FAKE}")), options).await
}

/// What the shell wrote into a file, as the number of a process.
fn number_in(file: &Path) -> rustix::process::Pid {
    let number = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    rustix::process::Pid::from_raw(number).unwrap()
}

#[tokio::test]
async fn flh_14_what_comes_after_the_first_line_is_read_and_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let (begin, done) = (directory.path().join("begin"), directory.path().join("done"));
    assert!(std::process::Command::new("mkfifo").args([&begin, &done]).status().unwrap().success());
    // Opening a pipe waits for the other side.
    let writes = format!("(read word <{}; head -c 10485760 /dev/zero; echo >{}) &", begin.display(), done.display());
    let plugin = after(directory.path(), &writes, &options()).await.unwrap();
    std::fs::write(begin, "go\n").unwrap();
    tokio::task::spawn_blocking(|| std::fs::read(done)).await.unwrap().unwrap();
    assert_eq!(plugin.health().await, Ok(()));
}

#[tokio::test]
async fn flh_16_a_plugin_has_the_hosts_environment_and_our_words_in_it_win() {
    let directory = tempfile::tempdir().unwrap();
    let environment = [("FOO", "1"), ("PLUGIN_MIN_PORT", "5")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = Options { environment, ..options() };
    let checks = r#"[ "$FOO:$PLUGIN_MIN_PORT:$PLUGIN_MAX_PORT" = "1:10000:25000" ] && [ -n "$PATH" ] || exit 9"#;
    assert!(after(directory.path(), checks, &options).await.is_ok());
}

#[tokio::test]
async fn flh_17_a_plugin_is_told_the_versions_of_the_host() {
    let directory = tempfile::tempdir().unwrap();
    assert!(after(directory.path(), r#"[ "$PLUGIN_PROTOCOL_VERSIONS" = 0 ] || exit 9"#, &options()).await.is_ok());
}

#[tokio::test]
async fn flh_34_a_plugin_that_does_not_end_when_asked_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    // The process that was started is the shell, which does not end with the plugin.
    let text = format!("{FAKE} & exec sleep 1000");
    let options = Options { grace: Duration::from_millis(100), ..options() };
    let plugin = Plugin::start(&script(directory.path(), &text), &options).await.unwrap();
    assert!(!plugin.end().await);
}

#[tokio::test]
async fn flh_35_a_grandchild_that_holds_the_log_open_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let plugin = after(directory.path(), &format!("sleep 1000 & echo $! >{}", file.display()), &options()).await.unwrap();
    assert!(plugin.end().await, "it ends, and its end is seen");
    rustix::process::kill_process(number_in(&file), rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn flh_37_ctrl_c_does_not_end_a_plugin() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let plugin = after(directory.path(), &format!("echo $$ >{}", file.display()), &options()).await.unwrap();
    let pid = number_in(&file);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(plugin.health().await, Ok(()));
    assert_ne!(rustix::process::getpgid(Some(pid)).unwrap(), rustix::process::getpgid(None).unwrap(), "nor is it in our group");
    assert!(plugin.end().await);
}

/// What a plugin logs, as it comes.
fn overheard(options: Options) -> (Options, tokio::sync::mpsc::UnboundedReceiver<Record>) {
    let (sender, heard) = tokio::sync::mpsc::unbounded_channel();
    let log = std::sync::Arc::new(move |_: &str, record: &Record| drop(sender.send(record.clone())));
    (Options { log, ..options }, heard)
}

#[tokio::test]
async fn fls_11_what_a_plugin_prints_reaches_the_log_and_never_the_handshake() {
    let (options, mut heard) = overheard(options());
    let plugin = with_faults(&options, json!(["Update: print 2"])).await;
    plugin.update().await.unwrap();
    let (mut printed, mut logged) = (Vec::new(), None);
    while printed.len() < 2 || logged.is_none() {
        let record = heard.recv().await.unwrap();
        match record.message.as_str() {
            "record" => logged = Some((record.level, record.fields["line"].clone())),
            line if line.starts_with("line ") => printed.push(record.message),
            _ => {}
        }
    }
    assert_eq!((printed, logged), (vec!["line 0".to_owned(), "line 1".to_owned()], Some((Level::Info, json!(1)))));
}

#[tokio::test]
async fn fls_14_a_key_that_nobody_knows_is_said_in_the_log() {
    let (options, mut heard) = overheard(options());
    let plugin = started(&options).await;
    plugin.init(&json!({"fualts": []}), &Settings::default()).await.unwrap();
    plugin.end().await;
    let all = std::iter::from_fn(|| heard.try_recv().ok());
    let warnings: Vec<String> = all.filter(|record| record.level == Level::Warn).map(|record| record.message).collect();
    assert_eq!(warnings, ["plugin_config: `fualts` is not known and has no effect; did you mean `faults`?"]);
}

#[tokio::test]
async fn fls_16_an_instance_that_is_not_there_counts_as_removed() {
    let plugin = with_faults(&options(), json!([])).await;
    let stranger = vec![InstanceId::from("x")];
    assert_eq!(plugin.change(Change::Decrease(stranger.clone())).await, Ok(Changed::instances(stranger)));
}

#[tokio::test]
async fn fls_17_a_shutdown_without_init_is_fine() {
    assert_eq!(started(&options()).await.shutdown().await, Ok(()));
}

#[tokio::test]
async fn fls_19_a_plugin_ends_when_it_is_asked_to_whatever_it_is_doing() {
    let plugin = std::sync::Arc::new(with_faults(&options(), json!(["Increase: hang"])).await);
    let busy = std::sync::Arc::clone(&plugin);
    let call = tokio::spawn(async move { busy.change(Change::Increase(1)).await });
    // It has the call when it answers the next one.
    plugin.heartbeat(&InstanceId::from("x")).await.unwrap();
    call.abort();
    let _ = call.await;
    assert!(std::sync::Arc::into_inner(plugin).unwrap().end().await);
}

#[tokio::test]
async fn fls_20_an_unhealthy_instance_is_told_with_its_reason() {
    let plugin = with_faults(&options(), json!([])).await;
    let unhealthy = Health::Unhealthy { reason: "instance is unhealthy: instance x does not exist".to_owned() };
    assert_eq!(plugin.heartbeat(&InstanceId::from("x")).await, Ok(unhealthy));
}

#[tokio::test]
async fn fls_23_a_plugin_tells_its_services_by_reflection() {
    let mut services = started(&options()).await.services().await.unwrap();
    services.sort();
    services.dedup();
    for service in ["grpc.health.v1.Health", "plugin.GRPCBroker", "plugin.GRPCController", "plugin.GRPCStdio", "proto.InstanceGroup"] {
        assert!(services.iter().any(|found| found == service), "{service}: {services:?}");
    }
}

#[tokio::test]
async fn the_fake_conforms_and_a_program_that_is_no_plugin_does_not() {
    let findings = runner_fleeting::conformance::examine(fake(), &trial(), &options()).await;
    let report: Vec<String> = findings.iter().filter(|finding| finding.fault.is_some()).map(ToString::to_string).collect();
    assert_eq!((report, findings.len()), (Vec::new(), 22));
    let directory = tempfile::tempdir().unwrap();
    let findings = runner_fleeting::conformance::examine(&script(directory.path(), "echo hello"), &trial(), &options()).await;
    let report: Vec<String> = findings.iter().map(|finding| finding.to_string().lines().next().unwrap_or_default().to_owned()).collect();
    let expected = [
        "FAILED  without its host it refuses to run, and says nothing on standard output",
        "should  `--version` is answered without a host",
        "should  it starts and ends with automatic TLS",
        "should  a shutdown without init is fine",
        "FAILED  it starts",
    ];
    assert_eq!(report, expected);
}
