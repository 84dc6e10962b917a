//! The step: has the image, starts the container in the network of the job, and waits until it is ready.

use crate::readiness::{Seen, Sign, Verdict, pause};
use crate::{alias, listening, variables};
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use step_docker::address::Address;
use step_docker::engine::{Engine, Running};
use step_docker::job::{self, NETWORK_VARIABLE, Prepared};
use step_docker::pulling;
use step_docker::quantity;
use step_docker::specification::{self, Surroundings};
use step_docker::sweep;
use step_docker::trouble::Trouble;
use step_sdk::{Cancellation, Failure, Step, say};

/// As many lines of a service's log say why it did not start.
const LOG_LINES: u32 = 50;

/// What only a service has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceInputs {
    ports: Vec<f64>,
    ready_within: String,
}

/// # Errors
/// The service is not there; nothing of it is left.
pub async fn run(step: &Step, cancellation: &Cancellation) -> Result<(), Failure> {
    let (ports, limit) = read(&step.inputs()?)?;
    // It goes on when this program has ended: whoever started this one answers for it.
    let mut prepared = job::prepare(step, "service", owner())?;
    prepared.settings.aliases = alias::aliases(&prepared.settings.aliases, &prepared.settings.image);
    let engine = prepared.engine.clone();
    let sweeping = tokio::spawn({
        let engine = engine.clone();
        async move { sweep::sweep(&engine).await }
    });
    let outcome = tokio::select! {
        outcome = start(step, &mut prepared, ports, limit) => outcome,
        trouble = engine.until_silent() => Err(trouble.while_doing("start the service", engine.address())),
        () = cancellation.asked() => Err(Failure::cancelled()),
    };
    if outcome.is_err() {
        // What cannot be removed now is removed when the job ends, or by a later job.
        let _as_far_as_possible = tokio::time::timeout(Duration::from_secs(10), sweep::remove_step(&engine, &prepared.id)).await;
    }
    let _swept = tokio::time::timeout(Duration::from_secs(10), sweeping).await;
    outcome
}

fn read(inputs: &ServiceInputs) -> Result<(BTreeSet<u16>, Duration), Failure> {
    let mut ports = BTreeSet::new();
    for port in &inputs.ports {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was looked at")]
        if port.fract() == 0.0 && (1.0..=65535.0).contains(port) {
            ports.insert(*port as u16);
        } else {
            return Err(Failure::bad_input(format!("`ports`: {port} is no port")));
        }
    }
    let text = if inputs.ready_within.is_empty() { "30s" } else { &inputs.ready_within };
    let limit = quantity::duration(text);
    let limit = limit.ok_or_else(|| Failure::bad_input(format!("`ready_within`: `{text}` is no duration: write `30s` or `2m`")))?;
    Ok((ports, limit))
}

#[cfg(unix)]
fn owner() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn owner() -> u32 {
    std::process::id()
}

async fn start(step: &Step, prepared: &mut Prepared, ports: BTreeSet<u16>, limit: Duration) -> Result<(), Failure> {
    let engine = prepared.engine.clone();
    let failed = |doing: &'static str| {
        let address = engine.address().clone();
        move |trouble: Trouble| trouble.while_doing(doing, &address)
    };
    let network = network(prepared).await?;
    prepared.settings.network = Some(network.clone());
    let Prepared { settings, keyring, id, labels, .. } = &*prepared;
    let image = pulling::have_image(&engine, settings, keyring).await?;
    say(&format!("Starting service {} ({})", settings.image, image.id));
    let around = Surroundings {
        name: format!("step-runner-{}", &id[..12]),
        labels: labels.clone(),
        engine_is_local: engine.address().is_local(),
        ..Surroundings::default()
    };
    let mut specification = specification::service_container(settings, &image, &around);
    let sign = Sign::of(ports.clone(), &image.ports, image.has_health_check);
    if !around.engine_is_local {
        specification.published.extend(ports.iter().filter(|port| !image.ports.contains(port)));
    }
    let (container, warnings) = engine.create(&specification).await.map_err(failed("make the container of the service"))?;
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    engine.start(&container).await.map_err(failed("start the service"))?;
    let running = until_ready(&engine, &container, &sign, limit, &settings.image.to_string()).await?;

    let reached = Reached::of(engine.address(), &running, &network, image.ports.iter().copied().chain(ports));
    let aliases = &settings.aliases;
    step.export(NETWORK_VARIABLE, &network)?;
    for (name, value) in variables::exports(aliases, &reached.address, &reached.ports) {
        step.export(&name, &value)?;
    }
    let host = aliases.first().cloned().unwrap_or_default();
    say(&format!("Service {} is ready: `{host}` in containers of this job, {} on this machine", settings.image, reached.address));
    step.output("host", host)?;
    step.output("address", reached.address)?;
    step.output("ports", reached.ports.into_iter().map(|(own, there)| (own.to_string(), there.into())).collect::<Map<String, Json>>())?;
    step.output("network", network)?;
    step.output("container", container)
}

/// The network that the inputs or an earlier service name; else one is made, and told to later steps at the end.
async fn network(prepared: &Prepared) -> Result<String, Failure> {
    let named = prepared.settings.network.clone();
    if let Some(network) = named.or_else(|| std::env::var(NETWORK_VARIABLE).ok()).filter(|network| !network.is_empty()) {
        return Ok(network);
    }
    let name = format!("step-runner-{}", &prepared.id[..12]);
    let mut labels = prepared.settings.labels.clone();
    labels.extend(prepared.labels.clone());
    let made = prepared.engine.create_network(&name, &labels).await;
    made.map_err(|trouble| trouble.while_doing("make the network of the job", prepared.engine.address()))?;
    Ok(name)
}

async fn until_ready(engine: &Engine, container: &str, sign: &Sign, limit: Duration, image: &str) -> Result<Running, Failure> {
    let began = Instant::now();
    loop {
        let running = engine.running(container).await;
        let running = running.map_err(|trouble| trouble.while_doing("look at the service", engine.address()))?;
        let listens_on = listens_on(engine.address(), container, &running, sign.ports()).await;
        let seen = Seen { is_running: running.is_running, healthy: running.healthy, listens_on };
        match sign.verdict(&seen, began.elapsed(), limit) {
            Verdict::Ready => return Ok(running),
            Verdict::NotYet => tokio::time::sleep(pause(began.elapsed())).await,
            Verdict::Failed(why) => {
                let exit = engine.ended(container).await.ok().flatten();
                return Err(not_ready(
                    image,
                    &why,
                    exit.as_ref().map(|ended| ended.exit_code),
                    &running,
                    &engine.last_lines(container, LOG_LINES).await,
                ));
            }
        }
    }
}

fn not_ready(image: &str, why: &str, exit_code: Option<i64>, running: &Running, log: &str) -> Failure {
    let lines = |text: &str| text.lines().map(|line| format!("| {line}")).collect::<Vec<_>>().join("\n");
    if log.trim().is_empty() {
        say(&format!("the service {image} has printed nothing"));
    } else {
        say(&format!("the last lines of the service {image}:\n{}", lines(log)));
    }
    if !running.health_said.trim().is_empty() {
        say(&format!("its health check said:\n{}", lines(&running.health_said)));
    }
    let code = exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
    Failure::step(format!("the service `{image}` {why}{code}"))
        .with_hint("its log stands above; `ready_within` waits longer, `ports` says what to wait for")
}

async fn listens_on(engine: &Address, container: &str, running: &Running, wanted: BTreeSet<u16>) -> BTreeSet<u16> {
    if wanted.is_empty() {
        return wanted;
    }
    if let Some(ports) = listening::ports_of(container, running.pid) {
        return ports;
    }
    let mut found = BTreeSet::new();
    for port in wanted {
        let published = running.published.get(&port).map(|published| (host_of(engine), *published));
        let reached = published.or_else(|| running.addresses.values().next().map(|address| (address.to_string(), port)));
        if let Some((host, at)) = reached
            && listening::takes_connections(&host, at).await
        {
            found.insert(port);
        }
    }
    found
}

/// Where the machine of the job reaches the service.
#[derive(Debug, PartialEq, Eq)]
struct Reached {
    address: String,
    /// The service's own ports, and by which number each is reached.
    ports: BTreeMap<u16, u16>,
}

impl Reached {
    fn of(engine: &Address, running: &Running, network: &str, ports: impl Iterator<Item = u16>) -> Self {
        // On the machine of the engine every container has an address that is reached from there.
        if engine.is_local() {
            let address = running.addresses.get(network).or_else(|| running.addresses.values().next());
            let address = address.map(ToString::to_string).unwrap_or_default();
            return Self { address, ports: ports.map(|port| (port, port)).collect() };
        }
        Self { address: host_of(engine), ports: running.published.clone() }
    }
}

/// The machine of the engine, as it is called from here.
fn host_of(engine: &Address) -> String {
    let host = match engine {
        Address::Tcp { authority, .. } => authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host),
        Address::Ssh { destination, .. } => destination.rsplit_once('@').map_or(destination.as_str(), |(_, host)| host),
        Address::Unix(_) | Address::Pipe(_) => "127.0.0.1",
    };
    host.trim_matches(['[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Running {
        Running {
            addresses: BTreeMap::from([("net".to_owned(), "172.18.0.2".parse().unwrap())]),
            published: BTreeMap::from([(5432, 32768)]),
            ..Running::default()
        }
    }

    #[test]
    fn on_the_engines_machine_a_service_has_an_address_of_its_own() {
        let reached = Reached::of(&Address::default(), &running(), "net", [5432].into_iter());
        assert_eq!(reached, Reached { address: "172.18.0.2".into(), ports: BTreeMap::from([(5432, 5432)]) });
    }

    #[test]
    fn from_elsewhere_it_is_reached_by_ports_of_the_engines_machine() {
        for host in ["tcp://build.example:2375", "ssh://me@build.example"] {
            let engine = Address::parse(host, None).unwrap();
            let reached = Reached::of(&engine, &running(), "net", [5432].into_iter());
            assert_eq!(reached, Reached { address: "build.example".into(), ports: BTreeMap::from([(5432, 32768)]) });
        }
    }

    #[test]
    fn inputs_that_make_no_sense_are_named() {
        let inputs = |ports: Vec<f64>, ready_within: &str| ServiceInputs { ports, ready_within: ready_within.into() };
        assert_eq!(read(&inputs(vec![80.0], "")), Ok(([80].into(), Duration::from_secs(30))));
        assert_eq!(read(&inputs(vec![0.5], "")).unwrap_err().message, "`ports`: 0.5 is no port");
        assert_eq!(read(&inputs(vec![], "soon")).unwrap_err().message, "`ready_within`: `soon` is no duration: write `30s` or `2m`");
    }
}
