//! The step: has the image, makes the container, hands the steps over, and leaves nothing.

use crate::address::Address;
use crate::agent_digest;
use crate::credentials::Given;
use crate::ending::{self, Circumstances};
use crate::engine::{Engine, Sent, WorkspaceFault};
use crate::held;
use crate::inputs::ContainerInputs;
use crate::owner::{self, Owner};
use crate::permissions::{self, Permissions};
use crate::program::CleanUp;
use crate::pulling::{self, Keyring};
use crate::settings::Settings;
use crate::specification::{self, ImageFacts, JOBS_DIRECTORY, Specification, Surroundings};
use crate::sweep;
use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use step_sdk::{Cancellation, DelegatedResult, Environment, Failure, HandoverFailure, Step, say};

/// How a job's network is told to later steps, by the first service.
pub const NETWORK_VARIABLE: &str = "STEP_RUNNER_NETWORK";

/// How long the agent inside may take to end its steps once the job is cancelled: a little less than the host waits for us.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(25);
/// A container whose stream is closed ends within this time, or is killed.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// For things that only tidy up.
const TIDY_TIMEOUT: Duration = Duration::from_secs(10);

/// What every container of a step is made with, whether it is a job's or a service's.
#[derive(Debug)]
pub struct Prepared {
    pub engine: Engine,
    pub settings: Settings,
    pub keyring: Keyring,
    /// Names everything that this step makes.
    pub id: String,
    pub labels: BTreeMap<String, String>,
}

/// Reads and checks the inputs, and has what will be made removed in the end. `owner`: the process whose death makes it nobody's.
/// # Errors
/// The inputs, the permissions or the address of the engine are not as they should be.
pub fn prepare(step: &Step, subcommand: &str, owner: u32) -> Result<Prepared, Failure> {
    let inputs: ContainerInputs = step.inputs()?;
    let variable = |name: &str| std::env::var(name).ok();
    let keyring = keyring(&inputs.auth_config, inputs.credentials.clone(), variable)?;
    let mut settings = Settings::check(inputs, &Permissions::read(Path::new(permissions::FILE))?)?;
    settings.hold(&variable(held::VARIABLE).unwrap_or_default());
    let address = Address::of(variable).map_err(|error| Failure::bad_input(error.to_string()))?;
    let engine = Engine::at(address.clone(), settings.engine_timeout)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let labels = owner::labels(&id, step.job(), Owner::of_process(owner).as_ref());
    // Before there is anything: whoever dies in between leaves nothing that nobody removes.
    step.clean_up_later(CleanUp { address, step: id.clone() }.command(subcommand))?;
    Ok(Prepared { engine, settings, keyring, id, labels })
}

fn keyring(of_input: &str, given: Vec<Given>, variable: impl Fn(&str) -> Option<String>) -> Result<Keyring, Failure> {
    let of_job = if of_input.is_empty() { variable("DOCKER_AUTH_CONFIG").unwrap_or_default() } else { of_input.to_owned() };
    let directory =
        variable("DOCKER_CONFIG").map(PathBuf::from).or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".docker")));
    let of_machine = directory.and_then(|directory| std::fs::read_to_string(directory.join("config.json")).ok());
    Keyring::new(&of_job, of_machine, given)
}

/// Runs the steps of this step in a container.
/// # Errors
/// Nothing ran, or what ran was lost; how the inner steps ended is in the result.
pub async fn run(step: &Step, cancellation: &Cancellation) -> Result<DelegatedResult, Failure> {
    let prepared = prepare(step, "docker", std::process::id())?;
    let engine = prepared.engine.clone();
    let sweeping = tokio::spawn({
        let engine = engine.clone();
        async move { sweep::sweep(&engine).await }
    });
    let mut made = None;
    let outcome = tokio::select! {
        outcome = in_container(step, &prepared, &mut made, cancellation) => outcome,
        trouble = engine.until_silent() => Err(trouble.while_doing("go on with the container", engine.address())),
        () = too_late(cancellation) => Err(Failure::cancelled()),
    };
    if let Some(container) = made {
        remove(&engine, &container).await;
    }
    // Done long ago, as a rule. What it could not remove is found again.
    let _swept = tokio::time::timeout(TIDY_TIMEOUT, sweeping).await;
    outcome
}

/// The steps inside are asked to end when the job is cancelled. If they do not, the container ends.
async fn too_late(cancellation: &Cancellation) {
    cancellation.asked().await;
    tokio::time::sleep(CANCEL_TIMEOUT).await;
}

/// `made`: the container, as soon as there is one. Whatever happens, the caller removes it.
async fn in_container(
    step: &Step,
    prepared: &Prepared,
    made: &mut Option<String>,
    cancellation: &Cancellation,
) -> Result<DelegatedResult, Failure> {
    let Prepared { engine, settings, .. } = prepared;
    let failed = |doing: &'static str| move |trouble: Trouble| trouble.while_doing(doing, engine.address());
    let (image, specification) = tokio::select! {
        decided = decide(prepared) => decided?,
        () = cancellation.asked() => return Err(Failure::cancelled()),
    };
    let (container, warnings) = engine.create(&specification).await.map_err(failed("make the container"))?;
    *made = Some(container.clone());
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));

    let work_dir = PathBuf::from(&specification.work_dir);
    let sent = if specification.copies_workspace {
        say(&format!("Copying `{}` into the container ...", work_dir.display()));
        engine.send_directory(&container, &work_dir).await.map_err(|fault| not_copied(fault, engine, "into"))?
    } else {
        Sent::default()
    };
    let stream = engine.attach(&container).await.map_err(failed("attach to the container"))?;
    let circumstances = Circumstances { settings, image: &image, specification: &specification, engine: engine.address() };
    if let Err(trouble) = engine.start(&container).await {
        return Err(ending::not_started(trouble, &circumstances));
    }
    let environment =
        Environment { name: format!("the container of `{}`", settings.image), work_dir: specification.work_dir.clone(), timeout: None };
    let mut outcome = step.hand_over(stream, &environment, cancellation).await;
    let needs_reason = outcome.as_ref().map_or(true, |result| !result.has_succeeded()) && !cancellation.is_asked();
    if needs_reason && !matches!(outcome, Err(HandoverFailure::Failed(_))) {
        explain(&mut outcome, engine, &container, &circumstances).await;
    }
    if specification.copies_workspace && outcome.is_ok() {
        engine.fetch_directory(&container, &work_dir, &sent).await.map_err(|fault| not_copied(fault, engine, "out of"))?;
    }
    outcome.map_err(Failure::from)
}

/// Image, agent and container: everything that can be said before there is one.
async fn decide(prepared: &Prepared) -> Result<(ImageFacts, Specification), Failure> {
    let Prepared { engine, settings, keyring, id, labels } = prepared;
    let image = pulling::have_image(engine, settings, keyring).await?;
    say(&format!("Using image {} ({})", settings.image, image.id));
    let agent = step_sdk::agent_binary(&image.os, &image.architecture)?;
    let work_dir = std::env::current_dir().map_err(|error| Failure::step(format!("could not find the work directory: {error}")))?;
    let around = Surroundings {
        name: format!("step-runner-{}", &id[..12]),
        labels: labels.clone(),
        work_dir: work_dir.to_string_lossy().into_owned(),
        engine_is_local: engine.address().is_local(),
        job_network: std::env::var(NETWORK_VARIABLE).ok().filter(|network| !network.is_empty()),
        agent_volume: agent_volume(engine, &agent, &image, id).await?,
        agent_arguments: ["serve", "--stdio", JOBS_DIRECTORY].map(str::to_owned).to_vec(),
    };
    let specification = specification::job_container(settings, &image, &around)?;
    Ok((image, specification))
}

async fn agent_volume(engine: &Engine, agent: &Path, image: &ImageFacts, unique: &str) -> Result<String, Failure> {
    let failed = |trouble: Trouble| trouble.while_doing("put the agent where containers find it", engine.address());
    let unreadable = |error| Failure::step(format!("could not read the agent `{}`: {error}", agent.display()));
    let cache = agent_digest::cache(|name| std::env::var(name).ok());
    let mut known = agent_digest::of(agent, cache.as_deref()).map_err(unreadable)?;
    if let Some(volume) = engine.agent_volume(&known.digest).await.map_err(failed)? {
        return Ok(volume);
    }
    let bytes = known.read().map_err(unreadable)?;
    engine.fill_agent_volume(&known.digest, bytes, &image.id, &unique[..12]).await.map_err(failed)
}

/// What only the engine knows of an end: that memory ran out, that the entrypoint never started the agent.
async fn explain(
    outcome: &mut Result<DelegatedResult, HandoverFailure>,
    engine: &Engine,
    container: &str,
    circumstances: &Circumstances<'_>,
) {
    // The stream is closed, so the agent ends, and with it the container. Only of a container that has ended the engine says why.
    if tokio::time::timeout(END_TIMEOUT, engine.wait(container)).await.is_err() {
        let _gone = engine.kill(container).await;
        let _gone = tokio::time::timeout(TIDY_TIMEOUT, engine.wait(container)).await;
        if let Err(HandoverFailure::Lost { .. }) = outcome {
            return;
        }
    }
    match (engine.ended(container).await, outcome) {
        (Ok(Some(ended)), Ok(result)) => {
            if let Some(more) = ending::more_about(&ended, circumstances) {
                say(&format!("error: {more}"));
                result.explain_failure(&more);
            }
        }
        (Ok(Some(ended)), lost) => {
            let architecture = engine.architecture().await.unwrap_or_default();
            *lost = Err(HandoverFailure::Failed(ending::lost(&ended, &architecture, circumstances)));
        }
        (Ok(None), Err(HandoverFailure::Lost { .. }) | Ok(_)) => {}
        (Err(trouble), lost @ Err(_)) => {
            let failure = if trouble.is_absent() {
                ending::removed(circumstances)
            } else {
                trouble.while_doing("go on with the container", engine.address())
            };
            *lost = Err(HandoverFailure::Failed(failure));
        }
        _ => {}
    }
}

fn not_copied(fault: WorkspaceFault, engine: &Engine, direction: &str) -> Failure {
    match fault {
        WorkspaceFault::Engine(trouble) => {
            trouble.while_doing(&format!("copy the work directory {direction} the container"), engine.address())
        }
        WorkspaceFault::Disk(error) => Failure::step(format!("could not copy the work directory {direction} the container: {error}")),
    }
}

/// What cannot be removed now is removed when the job ends, or by a later job.
pub async fn remove(engine: &Engine, container: &str) {
    match tokio::time::timeout(TIDY_TIMEOUT, engine.remove(container)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => say(&format!(
            "warning: the container {} could not be removed now; it is removed when the job ends, or by a later job",
            container.get(..12).unwrap_or(container)
        )),
    }
}
