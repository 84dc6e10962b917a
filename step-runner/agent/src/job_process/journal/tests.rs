use super::*;
use step_engine::run::Kind;
use step_model::value::Value;

fn headline(name: &str, parent: Option<u32>, status: Status) -> Headline {
    Headline {
        name: name.into(),
        parent: parent.map(StepId),
        depth: usize::from(parent.is_some()),
        what: Kind::Exec,
        status,
        failure: None,
        exit_code: (status == Status::Failure).then_some(7),
        signal: None,
        command: vec![Value::from("echo"), Value::from("hunter22").sensitive(), Value::from("a swordfish")],
        work_dir: Some(Value::from("/w")),
        start: Some(step_model::time::Timestamp::from_nanoseconds(5)),
        end: None,
        usage: None,
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    }
}

fn written(directory: &Path) -> Journal {
    let mut secrets = Secrets::default();
    secrets.add("swordfish").unwrap();
    let mut journal = Journal::create(directory).unwrap();
    journal.started(StepId(0), &headline("", None, Status::Unspecified), &secrets).unwrap();
    journal.started(StepId(1), &headline("a", Some(0), Status::Running), &secrets).unwrap();
    journal.ended(StepId(1), &headline("a", Some(0), Status::Success), &secrets).unwrap();
    journal.started(StepId(2), &headline("b", Some(0), Status::Running), &secrets).unwrap();
    journal
}

fn summary(reading: &Reading) -> Vec<(u32, Status, Option<FailureKind>)> {
    reading.steps.iter().map(|(step, headline)| (step.0, headline.status, headline.failure.as_ref().map(|f| f.kind))).collect()
}

#[test]
fn a_step_without_an_end_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let reading = read(directory.path()).unwrap();
    let interrupted = Some(FailureKind::Interrupted);
    let expected = [(0, Status::Failure, interrupted), (1, Status::Success, None), (2, Status::Failure, interrupted)];
    assert_eq!(summary(&reading), expected);
    assert_eq!((reading.open, reading.outcome), (Some(StepId(2)), None));
}

#[test]
fn a_step_without_an_end_runs_while_the_job_does() {
    let parent = tempfile::tempdir().unwrap();
    let directory = job_directory::JobDirectory::create(parent.path()).unwrap();
    written(directory.path());
    let reading = read(directory.path()).unwrap();
    assert_eq!(summary(&reading)[2], (2, Status::Running, None));
}

#[test]
fn what_was_written_is_what_is_read_and_nothing_secret_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = written(directory.path());
    journal.ended(StepId(2), &headline("b", Some(0), Status::Failure), &Secrets::default()).unwrap();
    let failure = Failure { kind: FailureKind::StepFailure, message: "step \"b\": exec: exit status 7".to_owned() };
    let outcome = Outcome {
        status: Status::Failure,
        failure: Some(failure),
        failed_step: Some(StepId(2)),
        exit_code: Some(7),
        end: Some(step_model::time::Timestamp::from_nanoseconds(9)),
    };
    journal.finished(&outcome, &Secrets::default()).unwrap();
    let reading = read(directory.path()).unwrap();
    let expected = Headline {
        command: vec![Value::from("echo"), Value::from("[MASKED]"), Value::from("a [MASKED]")],
        ..headline("a", Some(0), Status::Success)
    };
    assert_eq!(reading.steps[1], (StepId(1), expected));
    assert_eq!(reading.steps[2].1.exit_code, Some(7));
    assert_eq!((reading.open, reading.outcome), (None, Some(outcome)));
}

#[test]
fn a_torn_record_and_what_follows_it_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let file = directory.path().join(FILE);
    let whole = std::fs::read(&file).unwrap();
    let steps = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        read(directory.path()).unwrap().steps.len()
    };
    assert_eq!(steps(&whole), 3);
    assert_eq!(steps(&whole[..whole.len() - 1]), 2);
    for length in 4..whole.len() {
        steps(&whole[..length]);
    }
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert_eq!(steps(&flipped), 2);
}

#[test]
fn what_is_no_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let fault = |bytes: Option<&[u8]>| {
        if let Some(bytes) = bytes {
            std::fs::write(directory.path().join(FILE), bytes).unwrap();
        }
        read(directory.path()).unwrap_err().to_string().replace(&*directory.path().to_string_lossy(), "DIR")
    };
    assert_eq!(fault(None), "there is no journal in `DIR`");
    assert_eq!(fault(Some(b"{}")), "the file is no journal: it does not begin with a format number");
    assert_eq!(fault(Some(b"{\"a\":1}")), "the file is no journal: it does not begin with a format number");
    assert_eq!(fault(Some(&[2, 0, 0, 0])), "the journal has format 2, this program reads format 1");
}
