//! A container, decided: from what the job asked for, what the image says and where the engine is. Nothing is asked of anybody here.

use crate::settings::{Entrypoint, Limits, Mount, MountSource, Settings, Workspace};
use std::collections::BTreeMap;
use step_sdk::Failure;

/// Where the agent lies in a container: a volume that all containers of an engine share, which nobody there can write to.
pub const AGENT_DIRECTORY: &str = "/opt/step-runner/bin";
/// Where the agent keeps its jobs: in memory, and gone with the container.
pub const JOBS_DIRECTORY: &str = "/opt/step-runner/jobs";
/// Everything of ours in a container.
const OURS: &str = "/opt/step-runner";

/// What an image says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// Names exactly this one, whatever a tag names later.
    pub id: String,
    pub os: String,
    pub architecture: String,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// Ports that it says it listens on, TCP only.
    pub ports: Vec<u16>,
    pub has_health_check: bool,
}

/// Where the container goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Its own name.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// The directory of the job, absolute.
    pub work_dir: String,
    /// The engine sees the files that we see.
    pub engine_is_local: bool,
    /// That of the job's services.
    pub job_network: Option<String>,
    /// The volume with the agent.
    pub agent_volume: String,
    /// The arguments of the agent.
    pub agent_arguments: Vec<String>,
}

/// A container with nothing left to decide.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Specification {
    pub name: String,
    pub image: String,
    /// Empty: the image's own.
    pub entrypoint: Vec<String>,
    /// Empty: the image's own, when the entrypoint is too.
    pub command: Vec<String>,
    pub environment: Vec<String>,
    pub user: String,
    pub work_dir: String,
    pub labels: BTreeMap<String, String>,
    pub mounts: Vec<Mount>,
    pub tmpfs: BTreeMap<String, String>,
    /// Empty: the engine's own.
    pub network: String,
    pub aliases: Vec<String>,
    pub hostname: String,
    pub extra_hosts: Vec<String>,
    pub dns: Vec<String>,
    pub dns_search: Vec<String>,
    pub limits: Limits,
    pub privileged: bool,
    pub cap_add: Vec<String>,
    pub cap_drop: Vec<String>,
    pub read_only: bool,
    /// Its standard input is a stream that ends when whoever is attached leaves; nothing that it prints is kept.
    pub is_attached: bool,
    /// TCP ports of the container that become ports of the engine's machine.
    pub published: Vec<u16>,
    /// The work directory is copied in and out.
    pub copies_workspace: bool,
}

/// The container of a handover: its first process is the agent, which is reached by the container's standard streams.
/// # Errors
/// The work directory cannot be had in a container.
pub fn job_container(settings: &Settings, image: &ImageFacts, around: &Surroundings) -> Result<Specification, Failure> {
    let workspace = settings.workspace.unwrap_or(if around.engine_is_local { Workspace::Mount } else { Workspace::Copy });
    if workspace != Workspace::None {
        check_work_dir(&around.work_dir)?;
    }
    let mut specification = container(settings, image, around);
    let agent = format!("{AGENT_DIRECTORY}/step-agent");
    let first = match &settings.entrypoint {
        Entrypoint::OfImage => image.entrypoint.clone(),
        Entrypoint::Replaced(items) => items.clone(),
    };
    // An entrypoint gets the agent as its command and runs it with `exec "$@"`, as GitLab's runner has it run a shell.
    if first.is_empty() {
        specification.entrypoint = vec![agent];
        specification.command.clone_from(&around.agent_arguments);
    } else {
        specification.entrypoint = first;
        specification.command = std::iter::once(agent).chain(around.agent_arguments.iter().cloned()).collect();
    }
    specification.mounts.push(Mount {
        source: MountSource::Volume(around.agent_volume.clone()),
        target: AGENT_DIRECTORY.to_owned(),
        read_only: true,
    });
    if workspace == Workspace::Mount {
        let source = MountSource::Path(around.work_dir.clone());
        specification.mounts.push(Mount { source, target: around.work_dir.clone(), read_only: false });
    }
    specification.copies_workspace = workspace == Workspace::Copy;
    specification.work_dir = if workspace == Workspace::None { "/".to_owned() } else { around.work_dir.clone() };
    // Steps of a job run what lies there, whoever they run as.
    specification.tmpfs.insert(JOBS_DIRECTORY.to_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned());
    specification.is_attached = true;
    // For the agent, which keeps them to itself (docs/reference/limits.md).
    let network = specification.network.as_str();
    if !matches!(network, "host" | "none") && !network.starts_with("container:") {
        specification.environment.push("STEP_RUNNER_OWN_NETWORK=1".to_owned());
    }
    if !settings.held.is_empty() {
        specification.environment.push(format!("STEP_RUNNER_HELD={}", settings.held.join(",")));
    }
    Ok(specification)
}

/// A container that runs its image's own program beside the job.
pub fn service_container(settings: &Settings, image: &ImageFacts, around: &Surroundings) -> Specification {
    let mut specification = container(settings, image, around);
    match &settings.entrypoint {
        Entrypoint::OfImage => specification.command.clone_from(&settings.command),
        Entrypoint::Replaced(items) => {
            // A replaced entrypoint also takes the image's command away, so that has to be said again.
            let command = if settings.command.is_empty() { &image.command } else { &settings.command };
            let mut whole = items.iter().chain(command).cloned();
            specification.entrypoint = whole.next().into_iter().collect();
            specification.command = whole.collect();
        }
    }
    if !around.engine_is_local {
        specification.published.clone_from(&image.ports);
    }
    specification
}

fn container(settings: &Settings, image: &ImageFacts, around: &Surroundings) -> Specification {
    let network = settings.network.clone().or_else(|| around.job_network.clone()).unwrap_or_default();
    // Only networks that somebody made know names.
    let knows_names = !matches!(network.as_str(), "" | "default" | "bridge" | "host" | "none") && !network.starts_with("container:");
    let mut labels = settings.labels.clone();
    labels.extend(around.labels.clone());
    Specification {
        name: around.name.clone(),
        image: image.id.clone(),
        environment: settings.variables.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        user: settings.user.clone(),
        labels,
        mounts: settings.mounts.clone(),
        tmpfs: settings.tmpfs.clone(),
        network,
        aliases: if knows_names { settings.aliases.clone() } else { Vec::new() },
        hostname: settings.hostname.clone(),
        extra_hosts: settings.extra_hosts.clone(),
        dns: settings.dns.clone(),
        dns_search: settings.dns_search.clone(),
        limits: settings.limits.clone(),
        privileged: settings.privileged,
        cap_add: settings.cap_add.clone(),
        cap_drop: settings.cap_drop.clone(),
        read_only: settings.read_only,
        ..Specification::default()
    }
}

fn check_work_dir(work_dir: &str) -> Result<(), Failure> {
    let path = std::path::Path::new(work_dir);
    if !path.is_absolute() {
        return Err(Failure::bad_input(format!("the work directory `{work_dir}` is not an absolute path")));
    }
    // Mounted at the same path it would hide everything that the image has, or our own.
    if path.parent().is_none() || std::path::Path::new(OURS).starts_with(path) {
        return Err(Failure::bad_input(format!("the work directory `{work_dir}` cannot be mounted at the same path of a container"))
            .with_hint("run the job in a directory of its own, or give the step `workspace: none`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::Permissions;
    use serde_json::{Value as Json, json};

    fn settings(inputs: Json) -> Settings {
        let mut inputs = inputs;
        inputs["image"] = "app:1".into();
        Settings::check(serde_json::from_value(inputs).unwrap(), &Permissions::default()).unwrap()
    }

    fn around() -> Surroundings {
        Surroundings {
            name: "step-runner-1".into(),
            work_dir: "/builds/app".into(),
            engine_is_local: true,
            agent_volume: "step-runner-agent-1".into(),
            agent_arguments: vec!["serve".into(), "--stdio".into(), JOBS_DIRECTORY.into()],
            ..Surroundings::default()
        }
    }

    fn image() -> ImageFacts {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ImageFacts {
            id: "sha256:1".into(),
            entrypoint: texts(&["/entry", "--now"]),
            command: texts(&["run"]),
            ports: vec![5432],
            ..ImageFacts::default()
        }
    }

    fn job(inputs: Json) -> Specification {
        job_container(&settings(inputs), &image(), &around()).unwrap()
    }

    #[test]
    fn the_entrypoint_of_the_image_runs_the_agent() {
        let container = job(json!({}));
        assert_eq!(container.entrypoint, ["/entry", "--now"]);
        assert_eq!(container.command, ["/opt/step-runner/bin/step-agent", "serve", "--stdio", JOBS_DIRECTORY]);
    }

    #[test]
    fn without_an_entrypoint_the_agent_is_the_first_process() {
        let container = job(json!({"entrypoint": [""]}));
        assert_eq!(container.entrypoint, ["/opt/step-runner/bin/step-agent"]);
        assert_eq!(container.command, ["serve", "--stdio", JOBS_DIRECTORY]);
        assert_eq!(job(json!({"entrypoint": ["/bin/other"]})).entrypoint, ["/bin/other"]);
    }

    #[test]
    fn the_work_directory_has_the_same_path_inside() {
        let container = job(json!({}));
        let mount = Mount { source: MountSource::Path("/builds/app".into()), target: "/builds/app".into(), read_only: false };
        assert!(container.mounts.contains(&mount), "{container:?}");
        assert_eq!((container.work_dir.as_str(), container.copies_workspace), ("/builds/app", false));
    }

    #[test]
    fn to_an_engine_elsewhere_the_work_directory_is_copied() {
        let container = job_container(&settings(json!({})), &image(), &Surroundings { engine_is_local: false, ..around() }).unwrap();
        assert!(container.copies_workspace);
        assert!(container.mounts.iter().all(|mount| mount.target == AGENT_DIRECTORY), "{container:?}");
        let asked = job_container(&settings(json!({"workspace": "none"})), &image(), &around()).unwrap();
        assert_eq!((asked.work_dir.as_str(), asked.copies_workspace), ("/", false));
    }

    #[test]
    fn a_work_directory_that_would_hide_the_image_is_refused() {
        for work_dir in ["/", "/opt", "/opt/step-runner", "builds"] {
            let failure =
                job_container(&settings(json!({})), &image(), &Surroundings { work_dir: work_dir.into(), ..around() }).unwrap_err();
            assert!(failure.message.contains(work_dir), "{failure}");
        }
    }

    #[test]
    fn a_job_joins_the_network_of_its_services_unless_it_names_another() {
        let around = Surroundings { job_network: Some("job-net".into()), ..around() };
        let network = |inputs| job_container(&settings(inputs), &image(), &around).unwrap().network;
        assert_eq!(network(json!({})), "job-net");
        assert_eq!(network(json!({"network": "none"})), "none");
        assert_eq!(job(json!({})).network, "");
    }

    #[test]
    fn only_networks_that_somebody_made_know_names() {
        assert_eq!(job(json!({"network": "mine", "aliases": ["a"]})).aliases, ["a"]);
        assert_eq!(job(json!({"aliases": ["a"]})).aliases, [] as [&str; 0]);
    }

    #[test]
    fn what_is_ours_wins_over_labels_of_the_job() {
        let around = Surroundings { labels: BTreeMap::from([("step-runner.step".into(), "1".into())]), ..around() };
        let container = job_container(&settings(json!({"labels": {"step-runner.step": "x", "team": "a"}})), &image(), &around).unwrap();
        assert_eq!(container.labels, BTreeMap::from([("step-runner.step".into(), "1".into()), ("team".into(), "a".into())]));
    }

    #[test]
    fn a_service_runs_what_its_image_says_unless_the_job_says_otherwise() {
        let service = |inputs| service_container(&settings(inputs), &image(), &around());
        let (own, other) = (service(json!({})), service(json!({"entrypoint": ["sh", "-c"], "command": ["x"]})));
        assert_eq!((own.entrypoint.len(), own.command.len(), own.is_attached), (0, 0, false));
        assert_eq!((other.entrypoint, other.command), (vec!["sh".to_owned()], vec!["-c".to_owned(), "x".to_owned()]));
        assert_eq!(service(json!({"command": ["x"]})).command, ["x"]);
        assert_eq!(service(json!({"entrypoint": [""]})).entrypoint, ["run"]);
        assert_eq!(own.published, [] as [u16; 0]);
        let remote = service_container(&settings(json!({})), &image(), &Surroundings { engine_is_local: false, ..around() });
        assert_eq!(remote.published, [5432]);
    }
}
