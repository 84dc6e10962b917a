//! What steps leave to be removed that is no process: commands, run by whoever ends the job.
//!
//! The file `cleanup` in a job's directory has one JSON object per line, `{"argv": ["docker", "rm", "-f", "..."]}`. They are run in the reverse of
//! their order, one at a time. How many were run stands in `cleaned`, a byte for each: whoever goes on after a kill runs the rest, and only the
//! one that was interrupted again.

use serde::Deserialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The file that a step adds a line to.
pub const FILE: &str = "cleanup";
const DONE: &str = "cleaned";
/// For one command: a container engine that is busy may need half of it.
pub const LIMIT: Duration = Duration::from_secs(60);
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LAST_LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize)]
struct Line {
    argv: Vec<String>,
}

/// Runs what was left to run in `directory`. Blocks for as long as they take, each at most `limit`. What they print goes to `output`. Returns
/// a sentence for each that failed; none is tried twice.
/// # Errors
/// The files cannot be read or written.
pub fn run(directory: &Path, output: Option<&File>, limit: Duration) -> io::Result<Vec<String>> {
    let text = match std::fs::read(directory.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    // A line that was torn is of a step that made nothing yet: it leaves its command first.
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let lines: Vec<Line> = lines.filter(|line| !line.argv.is_empty()).collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut done = File::options().append(true).create(true).open(directory.join(DONE))?;
    let known = usize::try_from(done.metadata()?.len()).unwrap_or(usize::MAX);
    let mut failed = Vec::new();
    for line in lines.iter().rev().skip(known) {
        if let Err(why) = run_one(&line.argv, output, limit) {
            failed.push(format!("the clean-up `{}` failed: {why}", line.argv.join(" ")));
        }
        done.write_all(b".")?;
    }
    Ok(failed)
}

fn run_one(argv: &[String], output: Option<&File>, limit: Duration) -> Result<(), String> {
    let sink = || output.and_then(|file| file.try_clone().ok()).map_or_else(Stdio::null, Stdio::from);
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(sink()).stderr(sink());
    let mut child = command.spawn().map_err(|error| crate::system_error::text(&error))?;
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_LOOK;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(pause),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took longer than {} s", limit.as_secs()));
            }
            Err(error) => return Err(crate::system_error::text(&error)),
        }
        pause = (pause * 2).min(LAST_LOOK);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn directory(commands: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        let lines = commands.iter().map(|command| {
            let text = command.replace("TRACE", &trace.to_string_lossy());
            serde_json::json!({"argv": ["sh", "-c", text]}).to_string() + "\n"
        });
        std::fs::write(directory.path().join(FILE), lines.collect::<String>() + "{\"argv\": [\"tor").unwrap();
        directory
    }

    fn trace(directory: &tempfile::TempDir) -> String {
        std::fs::read_to_string(directory.path().join("trace")).unwrap_or_default()
    }

    #[test]
    fn what_came_last_is_run_first_and_nothing_twice() {
        let directory = directory(&["echo a >>TRACE", "echo b >>TRACE; exit 3", "echo c >>TRACE"]);
        let failed = run(directory.path(), None, LIMIT).unwrap();
        assert_eq!(trace(&directory), "c\nb\na\n");
        assert!(failed.len() == 1 && failed[0].ends_with("failed: exit status: 3"), "{failed:?}");
        assert_eq!(run(directory.path(), None, LIMIT).unwrap(), Vec::<String>::new());
        assert_eq!(trace(&directory), "c\nb\na\n");
    }

    #[test]
    fn whoever_comes_after_a_kill_runs_the_rest() {
        let directory = directory(&["echo a >>TRACE", "echo b >>TRACE"]);
        std::fs::write(directory.path().join(DONE), ".").unwrap();
        run(directory.path(), None, LIMIT).unwrap();
        assert_eq!(trace(&directory), "a\n");
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let directory = directory(&["echo a >>TRACE", "exec sleep 600"]);
        let failed = run(directory.path(), None, Duration::from_millis(20)).unwrap();
        assert!(failed[0].contains("it took longer than"), "{failed:?}");
        assert_eq!(trace(&directory), "a\n");
        assert_eq!(run(&directory.path().join("nowhere"), None, LIMIT).unwrap(), Vec::<String>::new());
    }
}
