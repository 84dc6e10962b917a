//! What the journal of a job holds, as a result: less than a result has, and there while the job runs and after it was killed.

use crate::exit::Stop;
use std::collections::BTreeMap;
use std::path::Path;
use step_agent::job_process::journal;
use step_client::wire::result::OwnedTree;
use step_engine::run::Headline;
use step_model::result::{ExecResult, Status, StepId, StepResult};
use step_model::value::Value;

/// A tree, and what it does not show: which step ran last.
/// # Errors
/// There is no journal, or nothing in it.
pub fn read(directory: &Path) -> Result<(OwnedTree, Option<String>), Stop> {
    let reading = journal::read(directory).map_err(|fault| {
        Stop::bad_input(fault.to_string()).with_hint("`show` takes a result, or the directory of a job: `run --verbose` names it")
    })?;
    let tree = tree(&reading.steps);
    let tree = tree.ok_or_else(|| Stop::bad_input(format!("the journal in `{}` holds no step", directory.display())))?;
    Ok((tree, reading.open.and_then(|open| last_step(open, &reading.steps))))
}

/// Where the job is, or was when its process died.
fn last_step(open: StepId, steps: &[(StepId, Headline)]) -> Option<String> {
    let find = |id| steps.iter().find(|(step, _)| *step == id).map(|(_, headline)| headline);
    let is_alive = find(open)?.status == Status::Running;
    let mut path = Vec::new();
    let mut next = Some(open);
    while let Some((id, headline)) = next.and_then(|id| Some((id, find(id)?))) {
        if !headline.name.is_empty() {
            path.push(format!("`{}`", headline.name));
        }
        // Parents have smaller numbers: a journal that says otherwise must not lead in circles.
        next = headline.parent.filter(|parent| *parent < id);
    }
    path.reverse();
    Some(match (path.join(" > "), is_alive) {
        (path, true) if path.is_empty() => "the job is running".into(),
        (path, true) => format!("running now: {path}"),
        (path, false) if path.is_empty() => "interrupted: the process that ran the job died between two steps".into(),
        (path, false) => format!("interrupted: {path} was running when the process that ran the job died"),
    })
}

/// The numbers of a tree have no gaps, those of a journal may.
fn tree(steps: &[(StepId, Headline)]) -> Option<OwnedTree> {
    let ((root, headline), below) = steps.split_first()?;
    let mut tree = OwnedTree::of(node(headline));
    let mut ids = BTreeMap::from([(*root, StepId::ROOT)]);
    for (step, headline) in below {
        let parent = headline.parent.and_then(|parent| ids.get(&parent)).copied().unwrap_or(StepId::ROOT);
        if let Some(id) = tree.add(parent, node(headline)) {
            ids.insert(*step, id);
        }
    }
    Some(tree)
}

fn node(headline: &Headline) -> StepResult {
    let exec = (!headline.command.is_empty()).then(|| ExecResult {
        command: headline.command.clone(),
        work_dir: headline.work_dir.clone().unwrap_or(Value::NULL),
        exit_code: headline.exit_code.unwrap_or(-1),
        signal: headline.signal,
    });
    StepResult {
        filtered: None,
        name: headline.name.clone(),
        step: None,
        document: None,
        inputs: Vec::new(),
        given_env: BTreeMap::new(),
        env: BTreeMap::new(),
        status: headline.status,
        outputs: Vec::new(),
        exports: Vec::new(),
        exec,
        start: headline.start,
        end: headline.end,
        usage: headline.usage,
        digest: None,
        provenance: None,
        failure: headline.failure.clone(),
        allowed_to_fail: headline.allowed_to_fail,
        sensitive_outputs: Vec::new(),
        trace: headline.trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_engine::run::Kind;
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
