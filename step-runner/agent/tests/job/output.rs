//! What steps write reaches the audience: all of it, in order.

use crate::world::{Job, runs};
use std::io;
use std::time::Duration;
use step_agent::job_process::{Ask, Streams};
use step_model::result::{FailureKind, Status, StepId};

#[test]
fn both_streams_come_in_the_order_in_which_they_were_written() {
    let script = "for i in $(seq 500); do echo o$i; echo e$i >&2; done";
    let expected: String = (1..=500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(Job::script(script).run().succeeded().text(), expected);
}

#[test]
fn separate_streams_are_told_apart() {
    let job = Job::script("echo o; echo e >&2; echo p").changed(|job| job.settings.streams = Streams::Separate);
    let outcome = job.run().succeeded();
    let of = |stream| outcome.log.output[&(StepId(1), stream)].clone();
    assert_eq!((of("output"), of("error")), (b"o\np\n".to_vec(), b"e\n".to_vec()));
}

#[test]
fn bytes_are_not_changed_and_a_missing_newline_is_not_added() {
    let all: String = (0..=255).map(|byte| format!("\\{byte:03o}")).collect();
    let outcome = Job::script(&format!("printf '\\r\\n\\n%b' '{}'", all.replace('\\', "\\0"))).run().succeeded();
    let expected: Vec<u8> = b"\r\n\n".iter().copied().chain(0..=255).collect();
    assert_eq!(outcome.log.output[&(StepId(1), "both")], expected);
}

#[test]
fn an_endless_line_is_complete() {
    let outcome = Job::script("head -c 20000000 /dev/zero | tr '\\0' x; echo end").run().succeeded();
    let bytes = &outcome.log.output[&(StepId(1), "both")];
    assert_eq!(bytes.len(), 20_000_004);
    assert!(bytes.ends_with(b"xend\n") && bytes[..20_000_000].iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_step_is_told_from_its_start_to_its_end_before_the_next() {
    let outcome = Job::scripts(&["echo 1", "true", "echo 3"]).run().succeeded();
    let expected = ["start ", "start a", "output a", "end a", "start b", "end b", "start c", "output c", "end c", "end "];
    assert_eq!(outcome.log.order, expected);
    assert_eq!(outcome.log.said, ["Running step name=a", "Running step name=b", "Running step name=c"]);
    let tails: Vec<_> = outcome.log.ended.iter().map(|(_, tail)| &**tail).collect();
    assert_eq!(tails, [&b"1\n"[..], b"", b"3\n", b""]);
}

#[test]
fn the_end_of_long_output_is_kept_in_whole_lines() {
    let outcome = Job::script("seq 100000; exit 1").run();
    let tail = String::from_utf8(outcome.log.ended[0].1.clone()).unwrap();
    let first: u32 = tail.lines().next().unwrap().parse().unwrap();
    assert_eq!(tail, (first..=100_000).map(|i| format!("{i}\n")).collect::<String>());
    assert!(tail.len() > 7_000 && tail.len() <= 8_192);
}

#[test]
fn closed_streams_do_not_end_a_step() {
    let outcome = Job::script("echo before; exec >&- 2>&-; sleep 0.1; exit 4").run();
    assert_eq!((&*outcome.text(), &*outcome.message), ("before\n", "step \"a\": exec: exit status 4"));
}

#[test]
fn a_process_in_the_background_does_not_hold_its_step_up_and_is_still_heard() {
    let first = "(while [ ! -e go ]; do sleep 0.01; done; echo late; touch done) & echo now";
    let outcome = Job::scripts(&[first, "touch go; while [ ! -e done ]; do sleep 0.01; done"]).run().succeeded();
    assert_eq!(outcome.log.output[&(StepId(1), "both")], b"now\nlate\n");
    assert_eq!(&outcome.log.order[3..], ["end a", "start b", "output a", "end b", "end "]);
}

#[test]
fn a_process_in_the_background_that_writes_for_ever_does_not_hold_its_step_up() {
    let outcome = Job::script("yes & echo $! > pid; sleep 0.1").run().succeeded();
    assert!(outcome.text().starts_with("y\n"));
}

#[test]
fn secrets_are_masked_also_when_they_are_split() {
    let script = "printf 'a swor'; sleep 0.05; printf 'dfish b\\n'; echo $SECRET >&2; exit 1";
    let job = Job::script(script).changed(|job| job.settings.secrets.add("swordfish").unwrap());
    let outcome = job.run();
    assert_eq!(outcome.text(), "a [MASKED] b\n\n");
    assert_eq!(outcome.log.ended[0].1, b"a [MASKED] b\n\n");
}

#[test]
fn a_short_beginning_of_a_secret_is_released_when_the_step_waits() {
    let script = "printf 'go on? s'; while [ ! -e go ]; do sleep 0.01; done; echo";
    let job = Job::script(script).changed(|job| job.settings.secrets.add("swordfish").unwrap());
    let go = job.work_dir.join("go");
    let outcome = job.run_with(move |_, bytes, _| if bytes.ends_with(b"s") { std::fs::write(&go, "") } else { Ok(()) }).succeeded();
    assert_eq!(outcome.text(), "go on? s\n");
}

#[test]
fn run_22_a_log_that_cannot_be_written_ends_the_job() {
    let job = Job::scripts(&["echo $$ > pid; yes", "touch second"]).changed(|job| job.grace_period = Duration::from_millis(10));
    let outcome = job.run_with(|_, _, _| Err(io::ErrorKind::BrokenPipe.into()));
    assert_eq!((outcome.status, &*outcome.message), (Status::Failure, "step \"a\": exec: writing to stdout: broken pipe"));
    assert!(!job.work_dir.join("second").exists() && !runs(&job.work_dir.join("pid")));
}

#[test]
fn a_log_that_fails_when_the_machine_is_done_is_reported_all_the_same() {
    let outcome = Job::script("echo").run_with(|_, _, _| {
        // By then the step has ended, and most likely the job.
        std::thread::sleep(Duration::from_millis(200));
        Err(io::ErrorKind::StorageFull.into())
    });
    let fault = outcome.ended.log_failure.clone().unwrap_or(outcome.message);
    assert!(fault.ends_with("no space left on device"), "{fault}");
}

#[test]
fn an_audience_that_is_stuck_does_not_keep_a_job_from_its_end() {
    let job = Job::script("echo $$ > pid; yes").changed(|job| job.grace_period = Duration::from_millis(10));
    let (forever, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let outcome = job.run_with(move |_, _, asks| {
        asks.send(Ask::End).unwrap();
        let _ = waits.lock().unwrap().recv();
        Ok(())
    });
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(outcome.ended.run.failure().unwrap().kind, FailureKind::Cancelled);
    assert!(outcome.ended.audience.is_none() && !runs(&job.work_dir.join("pid")));
    drop(forever);
}

#[test]
fn an_audience_that_panics_ends_the_job() {
    let job = Job::script("echo $$ > pid; yes").changed(|job| job.grace_period = Duration::from_millis(10));
    let outcome = job.run_with(|_, _, _| panic!("this panic is a part of the test"));
    assert_eq!(outcome.message, "step \"a\": exec: writing to stdout: the part that shows the log has panicked");
    assert!(outcome.ended.audience.is_none() && !runs(&job.work_dir.join("pid")));
}

#[test]
fn a_job_waits_for_an_audience_that_is_slow() {
    let outcome = Job::script("seq 300000").run_with(|_, _, _| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    assert_eq!(outcome.succeeded().text().lines().count(), 300_000);
}

#[cfg(target_os = "linux")]
#[test]
fn a_step_tells_the_bytes_that_went_to_a_disk() {
    // What the system counts depends on where the directory lies: in memory nothing goes to a disk. The shell says what it sees itself.
    let script = "head -c 3000000 /dev/zero > big; sync big; rm big; sed -n 's/^write_bytes: //p' /proc/$$/io";
    let outcome = Job::exec(&["/bin/sh", "-c", script]).run().succeeded();
    let told: u64 = outcome.text().trim().parse().unwrap();
    let disk = outcome.ended.run.result().headline(step_model::result::StepId::ROOT).usage.unwrap().disk.unwrap();
    assert!(disk.outgoing >= told / 512 * 512, "{disk:?}, and the shell saw {told}");
}
