//! What a job leaves behind: its journal holds the result at any time, and a job whose process died is put in order.

use crate::world::{Job, Outcome, runs, runtime};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use step_agent::job_process::journal::{self, Closed, Follower, Journal};
use step_agent::job_process::remains::Remains;
use step_agent::job_process::spool::{Framing, Spool, SpoolSettings};
use step_agent::job_process::{self, Streams};
use step_client::wire::result::{Format, OwnedTree, Writing, read, read_message, write};
use step_engine::run::{Headline, Kind};
use step_model::masking::Secrets;
use step_model::result::{FailureKind, ResultTree as _, Status, StepId};

/// Three levels, environments on each, exports in between, secrets that are marked and secrets that are not.
fn nested(directory: &Path) -> Job {
    let leaf = r#"spec: {inputs: {word: {type: string}}, outputs: {token: {type: string, sensitive: true}, list: {type: array}}}
---
env: {LEAF: "${{ inputs.word }}"}
exec:
  command:
    - sh
    - -c
    - |
      printf '{"name": "token", "value": "sword%s"}\n' fish >> ${{ output_file }}
      echo '{"name": "list", "value": [1, "known-secret"]}' >> ${{ output_file }}
      echo '{"name": "EXPORTED_BY_${{ inputs.word }}", "value": "here"}' >> ${{ export_file }}
"#;
    let middle = r#"spec: {inputs: {word: {type: string}}}
---
env: {MIDDLE: two}
run:
- {name: one, step: ../leaf, inputs: {word: a}, env: {FOR_ONE: x}}
- {name: two, step: ../leaf, inputs: {word: "${{ inputs.word }}"}}
- {name: token, script: "echo ${{ steps.one.outputs.token }}"}
"#;
    let job = r#"run:
- {name: first, step: ./middle, inputs: {word: b}, env: {LEVEL: one, SECRET: known-secret}}
- {name: second, step: ./leaf, inputs: {word: c}}
- {name: third, script: "exit 3"}
- {name: never, script: "true"}
"#;
    let mut secrets = Secrets::default();
    secrets.add("known-secret").unwrap();
    Job::new(job).with_file("leaf/step.yml", leaf).with_file("middle/step.yml", middle).changed(|job| {
        job.settings.journal = Some(directory.to_owned());
        job.settings.secrets = secrets;
    })
}

/// As `run --result` writes it.
fn written(outcome: &Outcome) -> OwnedTree {
    let mut text = Vec::new();
    let writing = Writing { format: Format::Json, our_fields: true, redaction: &outcome.ended.redaction };
    write(&mut text, &outcome.ended.run.result(), StepId::ROOT, writing).unwrap();
    read(std::str::from_utf8(&text).unwrap()).unwrap()
}

fn kept(directory: &Path) -> OwnedTree {
    let reading = journal::read(directory).unwrap();
    let mut bytes = Vec::new();
    assert_eq!(reading.write_result(&mut bytes).unwrap(), bytes.len() as u64);
    assert_eq!(prost::Message::encoded_len(&reading.result().unwrap()), bytes.len());
    read_message(&bytes).unwrap()
}

#[test]
fn the_journal_holds_the_same_result_as_the_file_that_run_writes() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = nested(directory.path()).run();
    assert_eq!(outcome.message, "step \"third\": exec: exit status 3");
    let (written, kept) = (written(&outcome), kept(directory.path()));
    assert_eq!(kept.len(), written.len());
    for id in (0..7).map(StepId) {
        assert_eq!(kept.node(id), written.node(id), "{id:?}");
        assert_eq!(kept.children(id), written.children(id), "{id:?}");
    }
    let journal = std::fs::read(directory.path().join("journal")).unwrap();
    let holds = |text: &str| journal.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("EXPORTED_BY_a") && !holds("swordfish") && !holds("known-secret"));
}

#[test]
fn a_journal_that_is_cut_anywhere_holds_the_beginning_of_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let job = Job::scripts(&["true", "exit 3"]).changed(|job| job.settings.journal = Some(directory.path().to_owned()));
    job.run();
    let file = directory.path().join("journal");
    let whole = std::fs::read(&file).unwrap();
    let (mut steps, mut ended) = (0, 0);
    for length in 4..=whole.len() {
        std::fs::write(&file, &whole[..length]).unwrap();
        let reading = journal::read(directory.path()).unwrap();
        let now = reading.steps.iter().filter(|(_, headline)| headline.end.is_some()).count();
        assert!(reading.steps.len() >= steps && now >= ended, "at {length}");
        (steps, ended) = (reading.steps.len(), now);
        assert_eq!(reading.result().is_some(), steps > 0, "at {length}");
        let mut follower = Follower::open(directory.path()).unwrap();
        follower.advance().unwrap();
        assert_eq!(follower.standing().running(), reading.running(), "at {length}");
        assert_eq!(follower.standing().outcome, reading.outcome, "at {length}");
    }
    assert_eq!((steps, ended), (3, 3));
}

#[test]
fn a_follower_reads_only_what_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(directory.path()).unwrap();
    let mut follower = Follower::open(directory.path()).unwrap();
    assert!(!follower.advance().unwrap());
    journal.accepted().unwrap();
    journal.started(StepId(0), &running("", None), &Secrets::default()).unwrap();
    journal.started(StepId(1), &running("build", Some(0)), &Secrets::default()).unwrap();
    assert!(follower.advance().unwrap() && follower.standing().accepted);
    journal.started(StepId(2), &running("test", Some(1)), &Secrets::default()).unwrap();
    assert!(follower.advance().unwrap());
    assert_eq!(follower.standing().running(), ["build", "test"]);
    journal.ended(StepId(2), &running("test", Some(1)), &Secrets::default()).unwrap();
    assert!(follower.advance().unwrap() && !follower.advance().unwrap());
    assert_eq!((follower.standing().running(), follower.standing().steps), (vec!["build".to_owned()], 3));
}

#[test]
fn an_output_that_no_record_takes_leaves_its_step_in_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let script = "printf '{\"name\": \"BIG\", \"value\": \"' >> ${{ export_file }}; head -c 52000000 /dev/zero | tr '\\0' x >> ${{ export_file }}; echo '\"}' >> ${{ export_file }}";
    let job = Job::script(script).changed(|job| job.settings.journal = Some(directory.path().to_owned()));
    job.run().succeeded();
    let reading = journal::read(directory.path()).unwrap();
    assert_eq!(reading.steps.iter().map(|(_, headline)| headline.status).collect::<Vec<_>>(), [Status::Success; 2]);
    assert_eq!(reading.outcome.map(|outcome| outcome.status), Some(Status::Success));
}

fn running(name: &str, parent: Option<u32>) -> Headline {
    Headline {
        name: name.into(),
        parent: parent.map(StepId),
        depth: 0,
        what: Kind::Sequence,
        status: Status::Running,
        failure: None,
        exit_code: None,
        signal: None,
        command: Vec::new(),
        work_dir: None,
        start: None,
        end: None,
        usage: None,
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    }
}

/// A job whose process died in the step `build` > `test`.
struct Dead {
    directory: tempfile::TempDir,
    remains: Remains,
}

impl Dead {
    fn new(log: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join(".job");
        std::fs::create_dir(&inner).unwrap();
        let mut journal = Journal::create(&inner).unwrap();
        journal.accepted().unwrap();
        journal.begun("the-word-of-this-job", false).unwrap();
        journal.started(StepId(0), &running("", None), &Secrets::default()).unwrap();
        journal.started(StepId(1), &running("build", Some(0)), &Secrets::default()).unwrap();
        journal.started(StepId(2), &running("test", Some(1)), &Secrets::default()).unwrap();
        std::fs::write(directory.path().join("logs"), log).unwrap();
        let trace = serde_json::json!({"argv": ["sh", "-c", format!("echo cleaned >>{}/trace", inner.display())]});
        std::fs::write(inner.join("cleanup"), format!("{trace}\n")).unwrap();
        Self { remains: Remains { inner, log: Some(directory.path().join("logs")) }, directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("logs")).unwrap()
    }

    fn trace(&self) -> String {
        std::fs::read_to_string(self.remains.inner.join("trace")).unwrap_or_default()
    }
}

const DIED: &str = "step-runner: the log ends here: the process that ran the job died; bytes that were still in a pipe are lost\n";

#[test]
fn a_dead_job_is_put_in_order_once() {
    let dead = Dead::new("one\ntorn");
    let reading = dead.remains.finish().unwrap();
    let outcome = reading.outcome.clone().unwrap();
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.message, "step \"build\": step \"test\": interrupted: the process that ran the job has died");
    assert_eq!((failure.kind, outcome.failed_step, reading.running()), (FailureKind::Interrupted, Some(StepId(2)), vec!["build", "test"]));
    assert_eq!((dead.log(), dead.trace()), (format!("one\ntorn\n{DIED}"), "cleaned\n".to_owned()));
    assert_eq!(reading.closed.unwrap().log_bytes, dead.log().len() as u64);
    let journal = std::fs::read(dead.remains.inner.join("journal")).unwrap();
    assert_eq!(dead.remains.finish().unwrap(), reading);
    assert_eq!(std::fs::read(dead.remains.inner.join("journal")).unwrap(), journal);
    assert_eq!((dead.log(), dead.trace()), (format!("one\ntorn\n{DIED}"), "cleaned\n".to_owned()));
}

#[test]
fn whoever_comes_after_one_that_was_killed_while_putting_in_order_completes_it() {
    let whole = Dead::new("one\ntorn");
    let before = std::fs::metadata(whole.remains.inner.join("journal")).unwrap().len();
    whole.remains.finish().unwrap();
    let journal = std::fs::read(whole.remains.inner.join("journal")).unwrap();
    let log = whole.log();
    // Killed while the log was ended, and then while the journal was.
    let in_log = (8..log.len()).step_by(3).map(|length| (length, usize::try_from(before).unwrap()));
    let in_journal = (usize::try_from(before).unwrap()..journal.len()).step_by(3).map(|length| (log.len(), length));
    for (log_length, journal_length) in in_log.chain(in_journal) {
        std::fs::write(whole.directory.path().join("logs"), &log[..log_length]).unwrap();
        std::fs::write(whole.remains.inner.join("journal"), &journal[..journal_length]).unwrap();
        let reading = whole.remains.finish().unwrap();
        assert_eq!((whole.log(), whole.trace()), (log.clone(), "cleaned\n".to_owned()), "{log_length} {journal_length}");
        assert!(reading.closed.is_some() && reading.outcome.unwrap().is_interrupted(), "{log_length} {journal_length}");
    }
}

#[test]
fn the_log_of_a_dead_job_that_was_cut_has_one_marker() {
    let cut = "one\nstep-runner: the log ends here: it has reached its limit of 4 bytes; the job goes on\n";
    let dead = Dead::new(cut);
    let reading = dead.remains.finish().unwrap();
    assert_eq!(dead.log(), cut);
    assert!(reading.closed.unwrap().log_is_cut);
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_dead_job_left_running_is_killed_and_nothing_else() {
    let dead = Dead::new("");
    let start = |word: &str| {
        let mut command = Command::new("sleep");
        command.arg("600").env("STEP_RUNNER_JOB", word).stdin(Stdio::null()).process_group(0).spawn().unwrap()
    };
    let mut own = start("the-word-of-this-job");
    let mut inner = start("around:the-word-of-this-job:inside");
    let mut other = start("the-word-of-this-job-2");
    dead.remains.finish().unwrap();
    assert!(!own.wait().unwrap().success() && !inner.wait().unwrap().success());
    let number = dead.directory.path().join("number");
    std::fs::File::create(&number).unwrap().write_all(other.id().to_string().as_bytes()).unwrap();
    assert!(runs(&number));
    other.kill().unwrap();
    other.wait().unwrap();
}

/// A file system of one megabyte. `None`: it may not be had here.
struct Small(tempfile::TempDir);

impl Small {
    fn new() -> Option<Self> {
        let small = Self(tempfile::tempdir().unwrap());
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(small.0.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(small)
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.path().join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0]).is_ok() {}
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

#[test]
fn on_a_disk_that_is_full_a_log_ends_with_one_marker_and_the_job_goes_on() {
    let Some(disk) = Small::new() else { return skipped("a small file system may not be mounted here") };
    for framing in [Framing::Stamped, Framing::Raw] {
        let directory = disk.0.path().join(format!("{framing:?}"));
        std::fs::create_dir(&directory).unwrap();
        let spool = SpoolSettings { framing, ..SpoolSettings::default() };
        let spool = Spool::create(&directory, &directory, spool).unwrap();
        let extent = spool.extent();
        let mut job = Job::script("yes a line of the log | head -c 3000000; echo done >done");
        job.settings.journal = Some(directory.clone());
        job.settings.streams = if framing == Framing::Stamped { Streams::Separate } else { Streams::Shared };
        let (_asks, receiver) = tokio::sync::mpsc::unbounded_channel();
        let ended = runtime().block_on(job_process::run(job.plan(), job.settings.clone(), spool, receiver)).unwrap();
        assert_eq!(ended.run.status(), Status::Success, "the step is not ended by its log");
        assert!(job.work_dir.join("done").exists());
        let log = std::fs::read_to_string(directory.join("logs")).unwrap();
        let last = log.lines().last().unwrap();
        assert!(
            last.ends_with("step-runner: the log ends here: it could not be written (no space left on device); the job goes on"),
            "{last}"
        );
        assert_eq!(log.matches("the log ends here").count(), 1);
        assert!(log.ends_with('\n') && extent.borrow().is_cut && extent.borrow().bytes == log.len() as u64);
        if framing == Framing::Stamped {
            assert!(log.lines().all(|line| line.len() > 32 && &line[26..30] == "Z 01"), "no line is torn");
        }
        let reading = journal::read(&directory).unwrap();
        assert_eq!(reading.outcome.map(|outcome| outcome.status), Some(Status::Success), "its last records found room");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn on_a_disk_that_others_have_filled_the_journal_still_gets_its_last_records() {
    let Some(disk) = Small::new() else { return skipped("a small file system may not be mounted here") };
    let directory = disk.0.path();
    let mut journal = Journal::create(directory).unwrap();
    journal.accepted().unwrap();
    drop(journal);
    let mut journal = Journal::open(directory).unwrap();
    disk.fill();
    for step in 0..20 {
        journal.started(StepId(step), &running("a step with a name of usual length", None), &Secrets::default()).unwrap();
    }
    journal.closed(Closed { log_bytes: 7, log_is_cut: true }).unwrap();
    let reading = journal::read(directory).unwrap();
    assert_eq!((reading.steps.len(), reading.closed.map(|closed| closed.log_bytes)), (20, Some(7)));
}

/// `./test` counts the lines that say so.
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
