//! Jobs that are there: followed, asked about, ended.

use super::r#where::Where;
use crate::run::typed::Output;
use crate::show::Form;
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::pin::pin;
use std::time::Duration;
use step_client::logs::{LogReader, Merged, Take};
use step_client::wire::request::message_to_json;
use step_client::{AgentClient, CallFailed, JobStatus, NotRunToEnd};
use step_console::exit::{Exit, Stop};
use step_console::tree::in_words;
use step_model::result::Status;
use step_model::time::Timestamp;

/// Prints the log of a job. Ends well when it did, and so whatever became of the job: who wants to know asks for the status.
pub async fn follow(agent: &AgentClient, place: &Where, id: &str, offset: u64, raw: bool) -> Result<Exit, Stop> {
    let reader = match if raw { Ok(LogReader::new()) } else { reader_from(agent, id, offset).await } {
        Ok(reader) => reader,
        Err(failed) => return Err(stop(agent, place, &failed).await),
    };
    let shown = RefCell::new(Shown { reader, merged: Merged::default(), raw, is_quiet: true });
    let ended = agent.follow_to_end(id, offset, |bytes| shown.borrow_mut().log(&bytes));
    let mut ended = pin!(ended);
    let mut ticks = tokio::time::interval(QUIET);
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut ended => break outcome,
            _ = ticks.tick() => shown.borrow_mut().tick().map_err(|fault| not_printed(&fault))?,
        }
    };
    let printed = shown.borrow_mut().tell(LogReader::finish);
    match outcome {
        Ok(_) => printed.map_err(|fault| not_printed(&fault)).map(|()| Exit::Done),
        // Whoever reads has seen enough.
        Err(NotRunToEnd::LogNotTaken { cause, .. }) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(NotRunToEnd::LogNotTaken { cause, .. }) => Err(not_printed(&cause)),
        Err(NotRunToEnd::Call(failed)) => Err(stop(agent, place, &failed).await),
    }
}

/// A line whose end is not certain is ended after so long without another one.
pub const QUIET: Duration = Duration::from_millis(200);

/// A log on its way to standard output.
struct Shown {
    reader: LogReader,
    merged: Merged,
    raw: bool,
    is_quiet: bool,
}

impl Shown {
    fn log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_quiet = false;
        if self.raw { print(bytes) } else { self.tell(|reader, take| reader.push(bytes, take)) }
    }

    fn tick(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_quiet, true) { self.tell(LogReader::quiet) } else { Ok(()) }
    }

    fn tell(&mut self, read: impl FnOnce(&mut LogReader, &mut Take<'_>)) -> io::Result<()> {
        let mut lines = Vec::new();
        read(&mut self.reader, &mut |piece| self.merged.add(&piece, &mut lines));
        if lines.is_empty() { Ok(()) } else { print(&lines) }
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// A reader for a log from `offset` on. How a log is framed stands at its beginning only.
async fn reader_from(agent: &AgentClient, id: &str, offset: u64) -> Result<LogReader, CallFailed> {
    let mut reader = LogReader::new();
    if offset == 0 {
        return Ok(reader);
    }
    let mut beginning = agent.follow(id, 0);
    while reader.is_stamped().is_none() {
        let Some(bytes) = beginning.next().await? else { break };
        reader.push(&bytes, &mut |_| {});
    }
    Ok(if reader.is_stamped() == Some(true) { LogReader::stamped_from_the_middle() } else { LogReader::new() })
}

fn not_printed(fault: &io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("could not write to standard output: {}", step_console::given::words(fault)))
}

/// The failure of a call; for an id that is not known, with those that are.
pub async fn stop(agent: &AgentClient, place: &Where, failed: &CallFailed) -> Stop {
    let known = match failed.is_unknown_job() {
        true => agent.jobs().await.ok().map(|jobs| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()),
        false => None,
    };
    place.stop(failed, known.as_deref())
}

/// A job for programs; absent members are not written.
#[derive(Debug, Serialize)]
struct JobLine<'a> {
    id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    log_bytes: u64,
}

/// Prints jobs: those that were named, or all.
pub async fn status(agent: &AgentClient, place: &Where, ids: &[String], output: Output) -> Result<Exit, Stop> {
    let mut jobs = Vec::new();
    if ids.is_empty() {
        match agent.jobs().await {
            Ok(all) => jobs = all,
            Err(failed) => return Err(stop(agent, place, &failed).await),
        }
    }
    for id in ids {
        match agent.status(id).await {
            Ok(job) => jobs.push(job),
            Err(failed) => return Err(stop(agent, place, &failed).await),
        }
    }
    let text = match output {
        Output::Text => table(&jobs, now()),
        Output::Json => {
            jobs.iter().filter_map(|job| serde_json::to_string(&line(job)).ok()).fold(String::new(), |all, line| all + &line + "\n")
        }
    };
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|fault| not_printed(&fault))?;
    Ok(Exit::Done)
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp::from_nanoseconds(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn line(job: &JobStatus) -> JobLine<'_> {
    JobLine {
        id: &job.id,
        status: crate::report::json::status_name(job.status),
        message: &job.message,
        failure: job.kind.map(crate::report::json::failure_name),
        exit_code: job.exit_code,
        start: job.start.map(|time| time.to_string()),
        end: job.end.map(|time| time.to_string()),
        log_bytes: job.log_bytes,
    }
}

/// One line for each job, in fixed columns, so that a pipe can grep it.
fn table(jobs: &[JobStatus], now: Timestamp) -> String {
    if jobs.is_empty() {
        return "no jobs\n".into();
    }
    let width = jobs.iter().map(|job| job.id.chars().count()).max().unwrap_or(0).max(2);
    let mut text = format!("{:<width$}  {:<11} {:>7}  WHY\n", "ID", "STATUS", "TIME");
    for job in jobs {
        let state = match job.status {
            Status::Unspecified => "not begun",
            Status::Running => "running",
            Status::Success => "succeeded",
            Status::Failure => "failed",
            Status::Cancelled => "cancelled",
        };
        let time = job.start.map(|start| in_words(job.end.unwrap_or(now).since(start))).unwrap_or_default();
        let line = format!("{:<width$}  {state:<11} {time:>7}  {}", job.id, step_console::complaint::plain(&job.message));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Prints a result as `show` does.
pub async fn result(agent: &AgentClient, place: &Where, id: &str, verbose: bool, form: Form) -> Result<Exit, Stop> {
    let result = match agent.result(id).await {
        Ok(result) => result,
        Err(failed) => return Err(stop(agent, place, &failed).await),
    };
    let tree =
        result.tree().map_err(|fault| Stop::new(Exit::Fault, format!("the agent at `{}` sent no result: {fault}", place.shown())))?;
    crate::show::print(&tree, None, verbose, form)?;
    Ok(Exit::Done)
}

/// Asks jobs to end.
pub async fn cancel(agent: &AgentClient, place: &Where, ids: &[String]) -> Result<Exit, Stop> {
    for id in ids {
        if let Err(failed) = agent.cancel(id).await {
            return Err(stop(agent, place, &failed).await);
        }
    }
    Ok(Exit::Done)
}

/// Ends jobs and forgets them.
pub async fn close(agent: &AgentClient, place: &Where, ids: &[String]) -> Result<Exit, Stop> {
    for id in ids {
        if let Err(failed) = agent.close(id).await {
            return Err(stop(agent, place, &failed).await);
        }
    }
    Ok(Exit::Done)
}

/// Prints a job as it was received.
pub async fn payload(agent: &AgentClient, place: &Where, id: &str) -> Result<Exit, Stop> {
    let payload = match agent.payload(id).await {
        Ok(payload) => payload,
        Err(failed) => return Err(stop(agent, place, &failed).await),
    };
    let mut text = message_to_json(&payload.request);
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|fault| not_printed(&fault))?;
    if !payload.withheld.is_empty() {
        let names = payload.withheld.join("`, `");
        let _ = writeln!(
            anstream::stderr(),
            "not in it: the values of `{names}`; `step-runner run` asks for them, or takes them from `--secrets FILE`"
        );
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use step_model::result::FailureKind;

    fn job(id: &str, status: Status, seconds: Option<(i64, i64)>, message: &str) -> JobStatus {
        let time = |seconds: i64| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
        JobStatus {
            id: id.into(),
            status,
            message: message.into(),
            start: seconds.map(|(start, _)| time(start)),
            end: seconds.and_then(|(_, end)| (end > 0).then(|| time(end))),
            kind: (status == Status::Failure).then_some(FailureKind::StepFailure),
            exit_code: step_client::exit_code_at_the_end(message),
            log_bytes: 5,
            owner_record: Vec::new(),
        }
    }

    fn jobs() -> [JobStatus; 4] {
        [
            job("1042", Status::Success, Some((10, 12)), ""),
            job("build-7", Status::Failure, Some((10, 75)), "step \"t\": exec: exit status 7"),
            job("8", Status::Running, Some((10, 0)), ""),
            job("9", Status::Unspecified, None, ""),
        ]
    }

    #[test]
    fn jobs_stand_in_columns() {
        insta::assert_snapshot!(table(&jobs(), Timestamp::from_nanoseconds(13_500_000_000)), @r#"
        ID       STATUS         TIME  WHY
        1042     succeeded     2.00s
        build-7  failed        1m05s  step "t": exec: exit status 7
        8        running       3.50s
        9        not begun
        "#);
        assert_eq!(table(&[], Timestamp::default()), "no jobs\n");
    }

    #[test]
    fn programs_get_a_line_for_each_job() {
        let text = serde_json::to_string(&line(&jobs()[1])).expect("json");
        insta::assert_snapshot!(text, @r#"{"id":"build-7","status":"failure","message":"step \"t\": exec: exit status 7","failure":"step_failure","exit_code":7,"start":"1970-01-01T00:00:10Z","end":"1970-01-01T00:01:15Z","log_bytes":5}"#);
    }
}
