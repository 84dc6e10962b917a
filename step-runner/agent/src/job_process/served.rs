//! The job process of a front: is born over its standard input, runs one job, and is gone.
//!
//! ```text
//! zygote --forks--> birth, request --> refused: answers, ends
//!                                 '--> accepted: written down, answered --> runs --> tells of the end, and is gone
//! ```
//!
//! The zygote is this program, started once by its front and asleep. What it does before it forks is done for all jobs: nothing random, no thread,
//! and nothing that belongs to one of them.

use super::fronts::{self, Told};
use super::journal::{Closed, Journal, Outcome};
use super::preparation::{self, Prepared};
use super::random;
use super::spool::{Extent, Framing, Spool, SpoolSettings};
use super::watched::Watched;
use super::{Ask, Audience as _, Ended, Settings, Streams};
use crate::frame::{Birth, Frames, FromJob, Refused, ToJob};
use crate::job_directory;
use crate::served_directory::ServedDirectory;
use crate::summary::Summary;
use crate::system::detached;
use crate::system_error;
use bytes::Bytes;
use ci_proto::step_runner::RunRequest as RunRequestMessage;
use prost::Message as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use step_client::wire::kept_request;
use step_client::wire::result::tree_message;
use step_engine::run::{Headline, Kind, Run, Seed};
pub use step_model::builtin::Builtins;
use step_model::masking::Secrets;
use step_model::plan::Plan;
use step_model::result::{Failure, FailureKind, Status, StepId};
use step_model::time::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How long a front that does not listen may keep an ended job process waiting. It reads the end from the journal then.
const FAREWELL: Duration = Duration::from_secs(1);
/// The name of the socket for later fronts.
pub(crate) const SOCKET: &str = "socket";
/// Of memory.
const PAGE: usize = 4096;
/// More than a socket holds, and little to be zeroed before each reading of a large request.
const LARGEST_READ: usize = 256 << 10;
/// How often a job looks whether its directory is still there.
const LOOK: Duration = Duration::from_secs(5);

/// A job as it arrives.
struct Arrival {
    birth: Birth,
    request: Bytes,
    lock: File,
}

/// Runs one job for whoever started this process by [`crate::front`], and returns when it is over. `builtins`: the steps that are compiled
/// into this program.
/// # Errors
/// This process was started by somebody else, or cannot work at all. Nobody is told of it in another way.
pub fn main(builtins: &Builtins) -> io::Result<()> {
    let asks = detached::detach()?;
    let Some(link) = detached::fork_for_each(asks, not_forked)? else { return Ok(()) };
    let Some(arrival) = arrival(&link)? else { return Ok(()) };
    let directory = ServedDirectory::at(arrival.birth.directory.clone());
    detached::redirect_output(&directory.output())?;
    let accepted = accept(&arrival, &directory, builtins);
    let pid = std::process::id();
    let answer = accepted.as_ref().map_or_else(|refused| FromJob::Refused(refused.clone()), |_| FromJob::Accepted { pid });
    // A front that has died meanwhile does not hear it, but the next one finds what was accepted.
    let _ = (&link).write_all(&answer.encode());
    let Ok((prepared, log)) = accepted else { return Ok(()) };
    link.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(live(link, arrival, prepared, log, &directory));
    // To take the runtime down bit by bit takes time, and somebody waits for the lock.
    std::mem::forget(runtime);
    Ok(())
}

/// The zygote answers for a process that there is not.
fn not_forked(link: UnixStream, error: io::Error) {
    let message = format!("could not start a process for the job: {}", system_error::text(&error));
    let refused = Refused { reason: "MACHINE".into(), message, is_ours: true };
    let _ = (&link).write_all(&FromJob::Refused(refused).encode());
}

/// `None`: the front has left without a job for us.
fn arrival(link: &UnixStream) -> io::Result<Option<Arrival>> {
    let mut frames = Frames::default();
    let mut lock: Option<OwnedFd> = None;
    let mut birth = None;
    loop {
        let next = frames.next_to_job().map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        match (next, birth.take()) {
            (Some(ToJob::Birth(now)), None) => birth = Some(now),
            (Some(ToJob::Request(request)), Some(birth)) => {
                let lock = lock.take().map(File::from).ok_or(io::ErrorKind::InvalidData)?;
                return Ok(Some(Arrival { birth, request, lock }));
            }
            (_, known) => birth = known,
        }
        if lock.is_none() {
            let mut buffer = [0; PAGE];
            let (read, descriptor) = detached::receive_with(link, &mut buffer)?;
            if read == 0 {
                return Ok(None);
            }
            lock = descriptor;
            frames.bytes.extend_from_slice(&buffer[..read]);
            continue;
        }
        // Once the head of a frame is there, so is the room for all of it: a request may be large, and is read where it is kept. Before, a page is
        // enough: most requests fit, and each page that is touched costs as much as to read what is in it.
        let start = frames.bytes.len();
        let room = (frames.bytes.capacity() - start).clamp(PAGE, LARGEST_READ);
        frames.bytes.resize(start + room, 0);
        let read = (&mut &*link).read(&mut frames.bytes[start..])?;
        frames.bytes.truncate(start + read);
        if read == 0 {
            return Ok(None);
        }
    }
}

type Accepted = (Prepared, Spool);

/// Everything that may still be refused. What was accepted is written down.
fn accept(arrival: &Arrival, directory: &ServedDirectory, builtins: &Builtins) -> Result<Accepted, Refused> {
    let machine = |what: &str, error: &io::Error| Refused {
        reason: "MACHINE".into(),
        message: format!("could not {what}: {}", system_error::text(error)),
        is_ours: true,
    };
    let message = RunRequestMessage::decode(arrival.request.clone()).map_err(|fault| Refused {
        reason: "BAD_REQUEST".into(),
        message: format!("initializing request: {fault}"),
        is_ours: false,
    })?;
    let prepared = preparation::prepare(&message, &arrival.birth, directory, builtins)?;
    if !message.owner_record.is_empty() {
        std::fs::write(directory.owner_record(), &message.owner_record).map_err(|error| machine("keep the owner record", &error))?;
    }
    let kept = kept_request::kept(message).request.encode_to_vec();
    // Not cut off first: ext4 writes such a file to the disk when it is closed.
    let written = job_directory::empty_file(&directory.request()).and_then(|mut file| file.write_all(&kept));
    written.map_err(|error| machine("keep the request", &error))?;
    let framing = if arrival.birth.stamped { Framing::Stamped } else { Framing::Raw };
    let mut settings = SpoolSettings { framing, ..SpoolSettings::default() };
    settings.limit = arrival.birth.log_limit.unwrap_or(settings.limit);
    let log = Spool::create(directory.path(), &directory.inner(), settings);
    let log = log.map_err(|error| machine("make the log", &error))?;
    let journal = Journal::create(&directory.inner()).and_then(|mut journal| journal.accepted());
    journal.map_err(|error| machine("make the journal", &error))?;
    Ok((prepared, log))
}

/// From the answer to the end.
async fn live(link: UnixStream, arrival: Arrival, prepared: Prepared, log: Spool, directory: &ServedDirectory) {
    let told = watch::Sender::new(Told::default());
    let extent = log.extent();
    let log = Watched::new(log, told.clone());
    let (asks, asked) = mpsc::unbounded_channel();
    let mut talks = JoinSet::new();
    if let Ok(link) = tokio::net::UnixStream::from_std(link) {
        talks.spawn(fronts::talk(link, told.subscribe(), extent.clone(), asks.clone()));
    }
    // For later fronts: there is none while the first one is there.
    let mut listener = None;
    let variable_files = prepared.variable_files.clone();
    let mut job = std::pin::pin!(run(&arrival.birth, prepared, log, asked, directory));
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let summary = loop {
        tokio::select! {
            biased;
            summary = &mut job => break summary,
            Some(front) = next_front(listener.as_ref()) => drop(talks.spawn(fronts::talk(front, told.subscribe(), extent.clone(), asks.clone()))),
            Some(_front_has_left) = talks.join_next(), if !talks.is_empty() => {}
            _ = look.tick() => {
                if arrival.lock.metadata().is_ok_and(|lock| lock.nlink() == 0) {
                    let _ = asks.send(Ask::End);
                }
            }
        }
        // Where it cannot be made it is tried again, with the next look.
        if talks.is_empty() && listener.is_none() {
            let made = detached::listen_in(&directory.inner(), SOCKET).and_then(tokio::net::UnixListener::from_std);
            listener = made.inspect_err(|error| eprintln!("no later front finds this job yet: {error}")).ok();
        }
    };
    remove_files(&variable_files, directory);
    if listener.is_some() {
        let _ = std::fs::remove_file(directory.inner().join(SOCKET));
    }
    told.send_modify(|told| told.ended = Some(summary));
    let _ = tokio::time::timeout(FAREWELL, async { while talks.join_next().await.is_some() {} }).await;
}

async fn next_front(listener: Option<&tokio::net::UnixListener>) -> Option<tokio::net::UnixStream> {
    match listener {
        Some(listener) => Some(listener.accept().await.ok()?.0),
        None => None,
    }
}

/// File variables are files by contract, and gone when the run ends.
fn remove_files(variables: &[PathBuf], directory: &ServedDirectory) {
    for file in variables {
        let _ = std::fs::remove_file(file);
    }
    let _ = std::fs::remove_dir_all(directory.files());
}

async fn run(
    birth: &Birth,
    prepared: Prepared,
    mut log: Watched,
    asked: mpsc::UnboundedReceiver<Ask>,
    directory: &ServedDirectory,
) -> Summary {
    let secrets = prepared.secrets.clone();
    let extent = log.spool.extent();
    let mut say = |line: &str, warning| log.said(StepId::ROOT, &secrets.mask(line), warning);
    prepared.notes.iter().for_each(|note| say(note, true));
    match prepared.resolve() {
        Ok((plan, warnings)) => {
            warnings.iter().for_each(|line| say(&line.text, line.warning));
            carry_out(birth, plan, &secrets, log, asked, directory).await
        }
        Err((message, lines)) => {
            lines.iter().for_each(|line| say(&line.text, line.warning));
            log.spool.finish();
            let failure = Failure { kind: FailureKind::BadInput, message: secrets.mask(&message).into_owned() };
            ended_before_its_first_step(birth, failure, &secrets, directory, closed(&extent))
        }
    }
}

async fn carry_out(
    birth: &Birth,
    plan: Plan,
    secrets: &Secrets,
    log: Watched,
    asked: mpsc::UnboundedReceiver<Ask>,
    directory: &ServedDirectory,
) -> Summary {
    let settings = Settings {
        seed: Seed(random::number()),
        secrets: secrets.clone(),
        streams: if birth.stamped { Streams::Separate } else { Streams::Shared },
        journal: Some(directory.inner()),
        provenance: false,
        keep_files: false,
    };
    let extent = log.spool.extent();
    let was_handed_over = plan.handover.is_some();
    match super::run(plan, settings, log, asked).await {
        Ok(Ended { run, secrets, audience, journal, .. }) => {
            if was_handed_over && let Err(error) = keep_result(&run, directory) {
                eprintln!("the result cannot be kept: {}", system_error::text(&error));
            }
            if let Some(mut log) = audience {
                log.spool.finish();
            }
            let closed = closed(&extent);
            if let Some(Err(error)) = journal.map(|mut journal| journal.closed(closed)) {
                eprintln!("the journal cannot be closed: {error}");
            }
            let summary = summary(birth, &run, &secrets);
            // The process ends: to give its memory back piece by piece would only take time.
            std::mem::forget(run);
            summary
        }
        Err(error) => {
            let message = format!("could not run the job: {}", system_error::text(&error));
            ended_before_its_first_step(birth, Failure { kind: FailureKind::Internal, message }, secrets, directory, closed(&extent))
        }
    }
}

/// The result of what was handed over goes back in clear to whoever handed it over, and masks it again: its outputs are of use there.
fn keep_result(run: &Run, directory: &ServedDirectory) -> std::io::Result<()> {
    let bytes = tree_message(&run.result(), StepId::ROOT).encode_to_vec();
    let aside = directory.inner().join(".result-new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(aside, directory.result())
}

fn summary(birth: &Birth, run: &Run, secrets: &Secrets) -> Summary {
    let root = run.result().headline(StepId::ROOT);
    let exit_code = run.failed_step().and_then(|step| run.result().headline(step).exit_code);
    let failure = run.failure().map(|failure| Failure { message: secrets.mask(&failure.message).into_owned(), ..failure.clone() });
    Summary::of(&birth.id, run.status(), failure.as_ref(), exit_code, root.start, root.end)
}

/// How the log has ended.
fn closed(extent: &watch::Receiver<Extent>) -> Closed {
    let Extent { bytes, is_cut } = *extent.borrow();
    Closed { log_bytes: bytes, log_is_cut: is_cut }
}

fn ended_before_its_first_step(birth: &Birth, failure: Failure, secrets: &Secrets, directory: &ServedDirectory, closed: Closed) -> Summary {
    let now = Timestamp::from_nanoseconds(
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
    );
    let headline = Headline {
        name: "".into(),
        parent: None,
        depth: 0,
        what: Kind::Sequence,
        status: Status::Failure,
        failure: Some(failure.clone()),
        exit_code: None,
        signal: None,
        command: Vec::new(),
        work_dir: None,
        start: Some(now),
        end: Some(now),
        usage: None,
        allowed_to_fail: false,
        limits: Vec::new(),
        filtered: None,
        trace: None,
    };
    let written = Journal::open(&directory.inner()).and_then(|mut journal| {
        journal.started(StepId::ROOT, &headline, secrets)?;
        journal.ended(StepId::ROOT, &headline, secrets)?;
        let outcome =
            Outcome { status: Status::Failure, failure: Some(failure.clone()), failed_step: None, exit_code: None, end: Some(now) };
        journal.finished(&outcome, secrets)?;
        journal.closed(closed)
    });
    if let Err(error) = written {
        eprintln!("the journal cannot be written: {error}");
    }
    Summary::of(&birth.id, Status::Failure, Some(&failure), None, Some(now), Some(now))
}
