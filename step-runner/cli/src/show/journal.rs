//! What the journal of a job holds, as a result: there while the job runs and after it was killed.

use std::path::Path;
use step_agent::job_process::journal::{self, Reading};
use step_client::wire::result::{OwnedTree, read_message};
use step_console::exit::Stop;
use step_model::result::{Status, StepId};

/// A tree, and what it does not show: which step ran last.
/// # Errors
/// There is no journal, or nothing in it.
pub fn read(directory: &Path) -> Result<(OwnedTree, Option<String>), Stop> {
    let reading = journal::read(directory).map_err(|fault| {
        Stop::bad_input(fault.to_string()).with_hint("`show` takes a result, or the directory of a job: `run --verbose` names it")
    })?;
    if reading.steps.is_empty() {
        return Err(Stop::bad_input(format!("the journal in `{}` holds no step", directory.display())));
    }
    let mut message = Vec::new();
    let tree = reading.write_result(&mut message).map_err(|fault| fault.to_string());
    let tree = tree.and_then(|_| read_message(&message).map_err(|fault| fault.to_string()));
    let tree = tree.map_err(|fault| Stop::bad_input(format!("the journal in `{}` holds no result: {fault}", directory.display())))?;
    Ok((tree, reading.open.and_then(|open| last_step(open, &reading))))
}

/// Where the job is, or was when its process died.
fn last_step(open: StepId, reading: &Reading) -> Option<String> {
    let (_, headline) = reading.steps.iter().find(|(step, _)| *step == open)?;
    let path = reading.running().into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" > ");
    Some(match (path, headline.status == Status::Running) {
        (path, true) if path.is_empty() => "the job is running".into(),
        (path, true) => format!("running now: {path}"),
        (path, false) if path.is_empty() => "interrupted: the process that ran the job died between two steps".into(),
        (path, false) => format!("interrupted: {path} was running when the process that ran the job died"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_engine::run::{Headline, Kind};
    use step_model::masking::Secrets;
    use step_model::result::ResultTree as _;

    fn headline(name: &str, parent: Option<u32>) -> Headline {
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

    #[test]
    fn a_journal_becomes_a_tree_of_what_ran_last() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut written = journal::Journal::create(dir.path()).expect("a journal");
        let secrets = Secrets::default();
        let exec = Headline {
            what: Kind::Exec,
            command: vec!["sleep".into(), "9".into()],
            work_dir: Some("/w".into()),
            ..headline("wait", Some(1))
        };
        for (id, headline) in [(0, headline("", None)), (1, headline("build", Some(0))), (5, exec)] {
            written.started(StepId(id), &headline, &secrets).expect("written");
        }
        let (tree, last) = read(dir.path()).expect("a tree");
        assert_eq!(last.as_deref(), Some("interrupted: `build` > `wait` was running when the process that ran the job died"));
        let names = |id| tree.children(id).into_iter().map(|child| tree.node(child).name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(StepId::ROOT), ["build"]);
        assert_eq!(names(StepId(1)), ["wait"]);
        let exec = tree.node(StepId(2)).exec.expect("a command");
        assert_eq!((exec.command.len(), exec.work_dir.as_str()), (2, Some("/w")));
    }

    #[test]
    fn a_directory_without_a_journal_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let stop = read(dir.path()).expect_err("no journal");
        assert!(stop.to_string().starts_with("there is no journal in `"), "{stop}");
    }
}
