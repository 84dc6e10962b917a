//! Runs a job there and tells of it as `run` does here: the log as it comes, then the tree.

use super::RemoteRunArguments;
use super::ended_job::EndedJob;
use super::jobs;
use super::request::{self, ONLY_STEP};
use super::r#where::Where;
use crate::report::outline::Outline as _;
use crate::report::screen::Screen;
use crate::report::teller::{Ending, Teller};
use crate::run::place::Place;
use crate::run::plan::Directories;
use crate::run::result_file::Prepared;
use crate::run::settings::{ResultFormat, Settings, Talk, time};
use crate::run::signals::{Asked, Signal, Signals};
use crate::run::typed::Output;
use crate::run::{ending, job::Job};
use crate::telemetry;
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{self, Write as _};
use std::pin::pin;
use step_agent::job_process::{Ask, Audience as _, Stream};
use step_client::RunRequest;
use step_client::logs::{self, LogReader, Merged};
use step_client::wire::request::message_to_json;
use step_client::wire::result::{Format, Redaction, Writing};
use step_client::{AgentClient, CallFailed, NotRunToEnd};
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_model::masking::Secrets;
use step_model::result::StepId;

/// Runs what the command line says.
/// # Errors
/// Why nothing ran, or why its end was not seen.
pub fn run(arguments: &RemoteRunArguments, place: &Where) -> anyhow::Result<Exit> {
    let settings = settings(arguments)?;
    let asked = Asked::default();
    let mut teller = Teller::new(&settings, Screen::new(settings.talk > Talk::Quiet && settings.output == Output::Text), asked.clone());
    let outcome = Place::read().and_then(|here| RemoteRun { arguments, settings: &settings, place, here, asked }.carry_out(&mut teller));
    if let Err(stop) = &outcome {
        teller.stopped(&stop.problems, stop.exit);
    }
    Ok(outcome?)
}

fn settings(arguments: &RemoteRunArguments) -> Result<Settings, Stop> {
    let mut problems = request::refused(arguments);
    let settings = Settings::read(&arguments.run);
    problems.extend(time("--wait", arguments.wait.as_deref()).err());
    match settings {
        Ok(settings) if problems.is_empty() => Ok(settings),
        Ok(_) => Err(Stop::all(Exit::Usage, problems)),
        Err(stop) => Err(Stop::all(Exit::Usage, stop.problems.into_iter().chain(problems).collect())),
    }
}

/// How the job ended, as far as it was seen.
enum Seen {
    Ended(step_client::Ended),
    /// We ended it at once, and it is forgotten.
    Closed,
}

struct RemoteRun<'a> {
    arguments: &'a RemoteRunArguments,
    settings: &'a Settings,
    place: &'a Where,
    here: Place,
    asked: Asked,
}

impl RemoteRun<'_> {
    fn carry_out(&self, teller: &mut Teller<Screen>) -> Result<Exit, Stop> {
        let (job, _) = crate::run::find(self.settings, &self.here, teller)?;
        let request = self.request(&job, &self.here, teller)?;
        if self.settings.dry_run {
            let mut out = io::stdout().lock();
            let printed = writeln!(out, "{}", message_to_json(&named_only(&request))).and_then(|()| out.flush());
            printed.map_err(|fault| Stop::new(Exit::Fault, format!("could not write to standard output: {}", words(&fault))))?;
            return Ok(Exit::Done);
        }
        let result_files = self.settings.result_files.iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
        let fault = |what: &str, fault: io::Error| Stop::new(Exit::Fault, format!("could not {what}: {}", words(&fault)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| fault("start", error))?;
        runtime.block_on(async {
            let mut signals = Signals::catch().map_err(|error| fault("listen to signals", error))?;
            let wait = time("--wait", self.arguments.wait.as_deref()).ok().flatten().unwrap_or_default();
            let agent = self.place.client(wait);
            self.run(&agent, request, &job, result_files, &mut signals, teller).await
        })
    }

    fn request(&self, job: &Job, here: &Place, teller: &mut Teller<Screen>) -> Result<RunRequest, Stop> {
        let directories = self.place.is_here().then(|| Directories::of(job, here));
        if let Some(note) =
            directories.as_ref().and_then(|directories| directories.note.as_ref()).filter(|_| self.arguments.work_dir.is_none())
        {
            teller.warn(note);
        }
        job.not_done.iter().filter(|part| !part.refused).for_each(|part| teller.not_done(part));
        let directories = directories.map(|found| request::Directories { work_dir: found.work_dir, build_dir: found.build_dir });
        let mut request = request::of_job(job, self.settings, self.arguments, directories)?;
        // It belongs to the span of the caller, which the request names.
        if let (Ok(Some(_)), Some(state)) = (telemetry::caller(&here.env), here.env.get("TRACESTATE")) {
            request.env.entry("TRACESTATE".to_owned()).or_insert_with(|| state.clone());
        }
        Ok(request)
    }

    async fn run(
        &self,
        agent: &AgentClient,
        request: RunRequest,
        job: &Job,
        result_files: Vec<Prepared>,
        signals: &mut Signals,
        teller: &mut Teller<Screen>,
    ) -> Result<Exit, Stop> {
        let id = request.id.clone();
        if let Err(failed) = agent.run(request).await {
            return Err(self.place.stop(&failed, None));
        }
        if self.arguments.detach {
            let mut out = io::stdout().lock();
            // A job whose id nobody was told is lost: that is worth an error.
            writeln!(out, "{id}")
                .and_then(|()| out.flush())
                .map_err(|fault| Stop::new(Exit::Fault, format!("could not print the id `{id}`: {fault}")))?;
            return Ok(Exit::Done);
        }
        teller.note(&format!("job {id} at {}", self.place.shown()), Talk::Verbose);
        let seen = self.follow(agent, &id, signals, teller).await?;
        let exit = self.end(agent, &id, seen, job, result_files, teller).await?;
        if self.settings.keep {
            teller.note(
                &format!("kept there: `step-runner remote result {id}`, `follow`, `payload`, and `close` when it is not needed any more"),
                Talk::Quiet,
            );
        } else {
            // That a job could not be forgotten does not change how it ended.
            let _ = agent.close(&id).await;
        }
        Ok(exit)
    }

    /// Tells the log as it comes; signals ask the job to end, and then end it.
    async fn follow(&self, agent: &AgentClient, id: &str, signals: &mut Signals, teller: &mut Teller<Screen>) -> Result<Seen, Stop> {
        let is_text = self.settings.output == Output::Text;
        let telling = RefCell::new(Telling { reader: LogReader::new(), merged: Merged::default(), is_text, is_quiet: true, teller });
        let outcome = {
            let following = agent.follow_to_end(id, 0, |bytes| telling.borrow_mut().log(&bytes));
            let mut following = pin!(following);
            let mut ticks = tokio::time::interval(jobs::QUIET);
            loop {
                tokio::select! {
                    biased;
                    signal = signals.next() => {
                        let ask = self.asked.note(signal);
                        telling.borrow_mut().teller.tick();
                        if self.ask(agent, id, ask).await? {
                            break Ok(Seen::Closed);
                        }
                    }
                    outcome = &mut following => break outcome.map(Seen::Ended),
                    // That nobody reads any more is told by the next piece.
                    _ = ticks.tick() => drop(telling.borrow_mut().tick()),
                }
            }
        };
        let finished = telling.borrow_mut().finish();
        match outcome {
            Ok(seen) => finished.map(|()| seen).map_err(|fault| lost_output(&fault)),
            Err(NotRunToEnd::LogNotTaken { cause, .. }) => {
                // As for a job here: nobody reads, so nobody wants it.
                let _ = agent.close(id).await;
                Err(lost_output(&cause))
            }
            Err(NotRunToEnd::Call(failed)) => {
                let stop = jobs::stop(agent, self.place, &failed).await;
                Err(if failed.may_pass() {
                    stop.with_hint(format!("the job goes on there: `step-runner remote follow {id}`"))
                } else {
                    stop
                })
            }
        }
    }

    /// True: the job is no more.
    async fn ask(&self, agent: &AgentClient, id: &str, ask: Ask) -> Result<bool, Stop> {
        let ends_now = match ask {
            Ask::End => match agent.cancel(id).await {
                Ok(()) => false,
                // An agent of GitLab before v0.44 can only end it at once.
                Err(CallFailed::Missing { .. }) => true,
                Err(failed) => return Err(self.place.stop(&failed, None)),
            },
            Ask::EndNow => true,
        };
        if ends_now {
            agent.close(id).await.map_err(|failed| self.place.stop(&failed, None))?;
        }
        Ok(ends_now)
    }

    async fn end(
        &self,
        agent: &AgentClient,
        id: &str,
        seen: Seen,
        job: &Job,
        result_files: Vec<Prepared>,
        teller: &mut Teller<Screen>,
    ) -> Result<Exit, Stop> {
        let signal = self.asked.so_far().map(|(signal, _)| signal);
        let ended = match seen {
            Seen::Ended(ended) => ended,
            Seen::Closed => {
                return Err(Stop::new(
                    signal.map_or(Exit::Interrupted, Signal::exit),
                    format!("job `{id}` was ended and is forgotten there"),
                ));
            }
        };
        let mut faults = Vec::new();
        let tree = match agent.result(id).await {
            Ok(result) => result.tree().map_err(|fault| faults.push(format!("the agent sent no result: {fault}"))).ok(),
            Err(CallFailed::Missing { .. }) if result_files.is_empty() => None,
            Err(failed) => {
                faults.push(format!("could not get the result: {failed}"));
                None
            }
        };
        let has_tree = tree.is_some();
        let ended_job = EndedJob::new(&ended.status, tree);
        if has_tree {
            // What was secret there was masked there.
            let redaction = Redaction::new(Secrets::default(), RandomState::new().hash_one(1).to_le_bytes());
            faults.extend(write_results(&ended_job, &redaction, result_files).into_iter().map(|stop| stop.to_string()));
            if let Err(lost) = telemetry::export(&self.here.env, &ended_job.tree, job.request.trace_parent, &redaction) {
                teller.warn(&lost);
            }
        }
        if self.settings.output == Output::Json && has_tree {
            tell_steps(&ended_job, teller);
        }
        let own = self.settings.pass_exit_code.then_some(ended.status.exit_code).flatten().and_then(|code| i32::try_from(code).ok());
        let mut exit = ending::exit(ended_job.status(), ended_job.failure(), signal, own);
        if !faults.is_empty() && exit == Exit::Done {
            exit = Exit::Fault;
        }
        let wrapped = (job.is_wrapped && job.definition.is_none()).then_some(ONLY_STEP);
        teller.end(&Ending { run: &ended_job, exit, wrapped, before: "", way_out: None, faults: &faults });
        Ok(exit)
    }
}

/// The log, on its way to the report.
struct Telling<'a> {
    reader: LogReader,
    merged: Merged,
    is_text: bool,
    is_quiet: bool,
    teller: &'a mut Teller<Screen>,
}

impl Telling<'_> {
    fn log(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_quiet = false;
        self.tell(|reader, take| reader.push(bytes, take))
    }

    /// The status line, and the end of a line that nothing followed.
    fn tick(&mut self) -> io::Result<()> {
        self.teller.tick();
        if std::mem::replace(&mut self.is_quiet, true) { self.tell(LogReader::quiet) } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tell(LogReader::finish)
    }

    /// For people both streams are one, as on a terminal; for programs each piece says its stream.
    fn tell(&mut self, read: impl FnOnce(&mut LogReader, &mut logs::Take<'_>)) -> io::Result<()> {
        let Self { reader, merged, is_text, teller, .. } = self;
        let (mut together, mut outcome) = (Together::default(), Ok(()));
        read(reader, &mut |piece| {
            if *is_text {
                merged.add(&piece, &mut together.bytes);
                return;
            }
            let stream = match piece.stream {
                logs::Stream::Output => Stream::Output,
                logs::Stream::Error => Stream::Error,
                logs::Stream::Unknown => Stream::Both,
            };
            if outcome.is_ok() && together.stream != stream {
                outcome = together.tell(teller);
                together.stream = stream;
            }
            together.bytes.extend_from_slice(piece.bytes);
        });
        outcome.and_then(|()| together.tell(teller))
    }
}

/// Pieces of one stream that came together.
struct Together {
    stream: Stream,
    bytes: Vec<u8>,
}

impl Default for Together {
    fn default() -> Self {
        Self { stream: Stream::Both, bytes: Vec::new() }
    }
}

impl Together {
    fn tell(&mut self, teller: &mut Teller<Screen>) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() { Ok(()) } else { teller.output(StepId::ROOT, self.stream, &bytes) }
    }
}

fn lost_output(fault: &io::Error) -> Stop {
    Stop::new(Exit::Fault, format!("writing to stdout: {}", words(fault)))
}

/// What ran, once it is known: a program that reads the events of `run` finds them here too, after the output.
fn tell_steps(ended: &EndedJob, teller: &mut Teller<Screen>) {
    let mut open: Vec<StepId> = Vec::new();
    let steps = ended.steps();
    for step in &steps {
        let headline = ended.headline(*step);
        while open.last().is_some_and(|last| Some(*last) != headline.parent) {
            close_step(ended, &mut open, teller);
        }
        teller.started(*step, &headline);
        open.push(*step);
    }
    while !open.is_empty() {
        close_step(ended, &mut open, teller);
    }
}

fn close_step(ended: &EndedJob, open: &mut Vec<StepId>, teller: &mut Teller<Screen>) {
    if let Some(step) = open.pop() {
        teller.ended(step, &ended.headline(step), &[]);
    }
}

/// The agent has redacted it; marks stay marks.
fn write_results(ended: &EndedJob, redaction: &Redaction, files: Vec<Prepared>) -> Vec<Stop> {
    let write = |file: Prepared| {
        let our_fields = file.file.our_fields;
        let format = match file.file.format {
            ResultFormat::Json => Format::Json,
            ResultFormat::Text => Format::PrettyText,
        };
        let writing = Writing { format, our_fields, redaction };
        file.write(|out| step_client::wire::result::write(out, &ended.tree, StepId::ROOT, writing)).err()
    };
    files.into_iter().filter_map(write).collect()
}

/// Without the values of masked and file variables: what is printed may be kept.
fn named_only(request: &RunRequest) -> RunRequest {
    let mut request = request.clone();
    for variable in request.job.iter_mut().flat_map(|job| &mut job.variables).filter(|variable| variable.masked || variable.file) {
        variable.value = format!("[MASKED {}]", variable.key);
    }
    request
}
