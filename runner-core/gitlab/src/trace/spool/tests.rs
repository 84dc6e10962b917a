//! A trace is begun, left and gone on with.

use super::*;

const TIME: &str = "2021-01-01T01:00:00.020010Z";

fn settings() -> TraceSettings {
    TraceSettings { limit: 1 << 20, headers: Headers::Full, prefixes: Prefixes::new(&[]), secrets: Secrets::default() }
}

fn log(lines: usize) -> String {
    (0..lines).map(|number| format!("{TIME} 01O line {number} glpat-secret{number} ü\n")).collect()
}

fn text(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("trace")).expect("text")
}

#[test]
fn a_trace_has_the_length_and_the_checksum_of_what_stands_in_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = Trace::open(directory.path(), settings()).expect("begun");
    trace.push(log(3).as_bytes()).expect("written");
    trace.finish().expect("written");
    let text = text(directory.path());
    assert_eq!(trace.digest(), TraceDigest { bytes: text.len() as u64, crc: crc32fast::hash(text.as_bytes()) });
    assert_eq!(trace.agent_offset(), log(3).len() as u64);
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn whoever_goes_on_at_any_byte_writes_what_one_would_have_written_alone() {
    let log = log(5);
    let alone = {
        let directory = tempfile::tempdir().expect("a directory");
        let mut trace = Trace::open(directory.path(), settings()).expect("begun");
        trace.push(log.as_bytes()).expect("written");
        trace.finish().expect("written");
        text(directory.path())
    };
    let directory = tempfile::tempdir().expect("a directory");
    for read in (0..log.len()).step_by(13).chain([log.len()]) {
        let mut trace = Trace::open(directory.path(), settings()).expect("gone on");
        let offset = usize::try_from(trace.agent_offset()).expect("small");
        trace.push(&log.as_bytes()[offset..read.max(offset)]).expect("written");
        if read == log.len() {
            trace.finish().expect("written");
            assert_eq!(trace.digest().crc, crc32fast::hash(alone.as_bytes()));
        }
        // Killed here: what came after the last mark does not count.
        std::fs::OpenOptions::new()
            .append(true)
            .open(directory.path().join("trace"))
            .and_then(|mut file| file.write_all(b"torn"))
            .expect("written");
    }
    assert_eq!(text(directory.path()).strip_suffix("torn"), Some(alone.as_str()));
}

#[test]
fn a_mark_that_is_torn_is_not_believed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = Trace::open(directory.path(), settings()).expect("begun");
    trace.push(log(1).as_bytes()).expect("written");
    trace.push(log(1).as_bytes()).expect("written");
    let marks = directory.path().join("trace.mark");
    let mut bytes = std::fs::read(&marks).expect("marks");
    let newest = (1 << 15) + 20;
    bytes[newest] ^= 1;
    std::fs::write(&marks, bytes).expect("written");
    let trace = Trace::open(directory.path(), settings()).expect("gone on");
    assert_eq!(trace.agent_offset(), log(1).len() as u64, "the one before it is");
}

#[test]
fn the_limit_is_kept_over_a_restart_and_its_message_is_written_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = || TraceSettings { limit: 100, ..settings() };
    for _ in 0..3 {
        let mut trace = Trace::open(directory.path(), settings()).expect("opened");
        trace.push(log(3).as_bytes()).expect("written");
    }
    let text = text(directory.path());
    assert_eq!(text.matches("Job's log exceeded limit of 100 bytes.").count(), 1);
    assert_eq!(text.find("\n\x1b[33;1mJob's log"), Some(100));
}

#[test]
fn what_the_runner_says_is_stamped_and_masked() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut secrets = Secrets::default();
    secrets.add("hunter2-long").expect("long enough");
    let mut trace = Trace::open(directory.path(), TraceSettings { secrets, ..settings() }).expect("begun");
    trace.say("Running with hunter2-long and glrt-abc", Timestamp::from_nanoseconds(1_609_462_800_020_010_000)).expect("said");
    assert_eq!(text(directory.path()), format!("{TIME} 00O Running with [MASKED] and glrt-[MASKED]\n"));
    assert_eq!(trace.agent_offset(), 0);
}

#[test]
fn what_the_runner_says_between_the_lines_of_an_agent_is_a_line_also_without_headers() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = Trace::open(directory.path(), TraceSettings { headers: Headers::None, ..settings() }).expect("begun");
    trace.push(format!("{TIME} 01O one\n").as_bytes()).expect("written");
    trace.say("between", Timestamp::default()).expect("said");
    trace.push(format!("{TIME} 01O two\n").as_bytes()).expect("written");
    trace.finish().expect("written");
    assert_eq!(text(directory.path()), "one\nbetween\ntwo\n");
}

#[test]
fn runner_108_nothing_can_be_read_behind_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("trace"), "four").expect("written");
    let mut reader = TraceReader::open(&directory.path().join("trace")).expect("there");
    assert!(matches!(reader.read(8, 1), Err(NotRead::InvalidOffset { offset: 8, written: 4 })));
    assert_eq!(reader.read(1, 2).expect("there"), "ou");
    assert_eq!(reader.read(4, 2).expect("the end"), "");
}

#[cfg(unix)]
#[test]
fn runner_109_a_disk_that_takes_nothing_is_told_and_what_was_written_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = Trace::open(directory.path(), settings()).expect("begun");
    trace.push(log(1).as_bytes()).expect("written");
    let before = trace.digest();
    trace.file = OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    assert!(trace.push(log(2).as_bytes()).is_err());
    drop(trace);
    let trace = Trace::open(directory.path(), settings()).expect("gone on");
    assert_eq!((trace.digest(), trace.agent_offset()), (before, log(1).len() as u64));
}

#[cfg(unix)]
#[test]
fn a_trace_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    Trace::open(directory.path(), settings()).expect("begun");
    for name in ["trace", "trace.mark"] {
        let mode = std::fs::metadata(directory.path().join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
