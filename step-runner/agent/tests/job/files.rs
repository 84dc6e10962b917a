//! Step files and the journal.

use crate::world::Job;
use std::sync::{Arc, Mutex};
use step_agent::job_process::journal;
use step_model::result::{Status, StepId};

/// A job of one step `a` whose definition runs this script and declares an output `o` with a default.
fn with_output(script: &str) -> Job {
    let spec = "spec: {outputs: {o: {type: string, default: d}}}";
    let exec = format!("exec: {{command: [sh, -c, {}]}}", serde_json::to_string(script).unwrap());
    Job::new("run: [{name: a, step: ./a}]").with_file("a/step.yml", &format!("{spec}\n---\n{exec}"))
}

const OUT: &str = "${{ output_file }}";

#[test]
fn outputs_are_read_and_the_files_are_gone() {
    let job = with_output(&format!("echo '{{\"name\": \"o\", \"value\": \"v\"}}' >> {OUT}; ls -l {OUT}"));
    let outcome = job.run().succeeded();
    let a = step_model::result::ResultTree::node(&outcome.ended.run.result(), StepId(1));
    assert_eq!(a.outputs[0].1.as_str(), Some("v"));
    assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 0);
}

#[test]
fn files_stay_when_somebody_wants_to_look() {
    let job = with_output(&format!("echo >> {OUT}")).changed(|job| job.settings.keep_files = true);
    job.run().succeeded();
    assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 2);
}

#[test]
fn whatever_a_step_puts_in_the_place_of_its_file_is_named() {
    let fault = |script: &str| {
        let job = with_output(&format!("f={OUT}; rm $f; {script}"));
        let outcome = job.run();
        assert_eq!(outcome.status, Status::Failure);
        assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 0);
        outcome.message.rsplit(": ").next().unwrap().to_owned()
    };
    assert_eq!(fault("true"), "the step has removed it");
    assert_eq!(fault("mkfifo $f"), "it is a FIFO, not a regular file");
    assert_eq!(fault("mkdir $f"), "it is a directory, not a regular file");
    assert_eq!(fault("ln -s /etc/passwd $f"), "it is a symbolic link, not a regular file");
    assert_eq!(fault("truncate -s 1G $f"), "it has 1073741824 bytes, the limit is 67108864 (64 MiB)");
}

#[test]
fn a_process_that_was_killed_leaves_no_files() {
    let job = with_output(&format!("echo >> {OUT}; kill -9 $$"));
    assert_eq!(job.run().message, "step \"a\": exec: signal: killed");
    assert_eq!(std::fs::read_dir(job.files_dir()).unwrap().count(), 0);
}

#[test]
fn the_journal_knows_what_runs_and_what_ran() {
    let directory = tempfile::tempdir().unwrap();
    let job = Job::scripts(&["true", "echo now; exit 3"]).changed(|job| job.settings.journal = Some(directory.path().to_owned()));
    let meanwhile = Arc::new(Mutex::new(None));
    let (path, seen) = (directory.path().to_owned(), Arc::clone(&meanwhile));
    // The step may have ended by then; only what stands in the journal at this moment is looked at.
    let outcome = job.run_with(move |_, _, _| {
        *seen.lock().unwrap() = Some(journal::read(&path).unwrap());
        Ok(())
    });
    let meanwhile = meanwhile.lock().unwrap().take().unwrap();
    assert_eq!(meanwhile.steps.iter().map(|(_, headline)| &*headline.name).collect::<Vec<_>>(), ["", "a", "b"]);
    let reading = journal::read(directory.path()).unwrap();
    assert_eq!((reading.open, reading.outcome.map(|outcome| outcome.status)), (None, Some(Status::Failure)));
    for (step, headline) in reading.steps {
        let told = outcome.ended.run.result().headline(step);
        assert_eq!((headline.status, headline.exit_code, headline.usage), (told.status, told.exit_code, told.usage), "{step:?}");
    }
}

#[test]
fn a_journal_that_cannot_be_written_does_not_end_the_job() {
    let job = Job::script("true").changed(|job| job.settings.journal = Some("/nope".into()));
    let outcome = job.run().succeeded();
    let why = "no such file or directory";
    let line = format!("warning: the journal cannot be written, `show` will not know all of this run: {why}");
    assert_eq!(outcome.log.said[0], line);
}

#[test]
fn a_definition_that_a_step_wrote_is_read_with_its_commit() {
    let git = "git -c user.name=t -c user.email=t@t -c commit.gpgsign=false";
    let write = "mkdir late; printf '{}\\n---\\nexec: {command: [echo, late]}\\n' > late/step.yml";
    let first = serde_json::json!({"name": "a", "script": format!("git init -q . && {write} && git add late && {git} commit -q -m x")});
    let job = Job::new(&format!("run:\n- {first}\n- {{name: b, step: ./late}}")).changed(|job| job.settings.provenance = true);
    let outcome = job.run().succeeded();
    let late = step_model::result::ResultTree::node(&outcome.ended.run.result(), StepId(2));
    let provenance = late.provenance.unwrap();
    assert_eq!((provenance.commit.len(), provenance.dirty), (40, false));
    assert_eq!(outcome.text(), "late\n");
}
