//! The command line of `try` as it is meant: jobs that were read, and a program for the agents.

use super::TryArguments;
use super::jobs::{self, GivenJob};
use super::laptop::Laptop;
use super::result_files::ResultFiles;
use crate::agent_program;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::words;
use step_payload::Here;

/// The command line as it is meant.
pub struct Meant {
    pub jobs: Vec<GivenJob>,
    /// Where they run. `None`: in the current directory.
    pub build_dir: Option<Arc<str>>,
    pub agent: PathBuf,
    pub instances: u32,
    pub capacity: u32,
    pub results: Option<ResultFiles>,
    pub is_verbose: bool,
}

impl Meant {
    /// # Errors
    /// It makes no sense, or a job cannot be read.
    pub fn of(arguments: &TryArguments) -> Result<Self, Stop> {
        let zero = [(arguments.instances, "--instances"), (arguments.capacity, "--capacity")].into_iter().find(|(number, _)| *number == 0);
        if let Some((_, flag)) = zero {
            return Err(Stop::usage(format!("`{flag} 0`: no job would ever run")));
        }
        let environment: BTreeMap<String, String> =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        let given = variables(&arguments.variables, &environment)?;
        let directory =
            std::env::current_dir().map_err(|fault| Stop::bad_input(format!("could not find the current directory: {}", words(&fault))))?;
        let no_containers = no_containers(&environment);
        let laptop = Laptop::of(arguments, &directory)?;
        let containers = ["docker", "service"].into_iter().filter(|_| no_containers.is_none()).map(str::to_owned);
        let build_dir = laptop.checkout.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        let here = Here {
            builtins: containers.chain(laptop.steps()).collect(),
            references: laptop.references.clone(),
            caches: laptop.caches(),
            artifacts: laptop.artifacts_place(),
            no_containers: no_containers.unwrap_or_default(),
            ignore_image: arguments.ignore_image,
            predefined: [("CI_PROJECT_DIR".to_owned(), build_dir.clone().unwrap_or_else(|| directory.to_string_lossy().into_owned()))]
                .into(),
            given,
            ..Here::default()
        };
        let jobs = jobs::read(&arguments.jobs, &here, &environment)?;
        let results = arguments.result.as_deref().map(|path| ResultFiles::of(path, jobs.len())).transpose()?;
        let agent = agent_program::find(arguments.agent.as_deref())?;
        if laptop.checkout.is_some()
            && let Some(job) = jobs.iter().find(|job| job.translation.commit.is_none())
        {
            return Err(Stop::usage(format!("`--checkout` needs a commit, and `{}` names none", job.title))
                .with_hint("a GitLab job payload names one; without the flag the job runs in the work tree that is here"));
        }
        laptop.prepare(&agent)?;
        Ok(Self {
            jobs,
            build_dir: build_dir.map(Into::into),
            agent,
            instances: arguments.instances,
            capacity: arguments.capacity,
            results,
            is_verbose: arguments.verbose,
        })
    }
}

/// `NAME=VALUE`, or `NAME` for the value in the environment.
fn variables(texts: &[String], environment: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Stop> {
    let mut problems = Vec::new();
    let mut variables = BTreeMap::new();
    for text in texts {
        match text.split_once('=') {
            Some(("", _)) => problems.push(Complaint::new(format!("`--job {text}` has no name before the `=`"))),
            Some((name, value)) => _ = variables.insert(name.to_owned(), value.to_owned()),
            None => match environment.get(text) {
                Some(value) => _ = variables.insert(text.clone(), value.clone()),
                None => problems.push(
                    Complaint::new(format!("`--job {text}`: there is no such variable in the environment")).with_hint("write NAME=VALUE"),
                ),
            },
        }
    }
    if problems.is_empty() { Ok(variables) } else { Err(Stop::all(Exit::Usage, problems)) }
}

/// Why there are no containers here, if so: nobody listens where the engine should be.
fn no_containers(environment: &BTreeMap<String, String>) -> Option<String> {
    let host = environment.get("DOCKER_HOST").filter(|host| !host.is_empty()).map_or("unix:///var/run/docker.sock", String::as_str);
    let socket = host.strip_prefix("unix://")?;
    #[cfg(unix)]
    let fault = std::os::unix::net::UnixStream::connect(socket).err()?;
    #[cfg(not(unix))]
    let fault = std::io::Error::from(std::io::ErrorKind::Unsupported);
    Some(format!("no container engine answers at {socket}: {}", words(&fault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_given_or_taken_from_the_environment() {
        let environment = [("FROM".to_owned(), "there".to_owned())].into();
        let read = |texts: &[&str]| variables(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), &environment);
        let expected = [("A", "1=2"), ("B", ""), ("FROM", "there")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(&["A=1=2", "B=", "FROM"]), Ok(expected.into()));
        let refused = read(&["=x", "NOWHERE"]).expect_err("two problems");
        insta::assert_snapshot!(refused, @"`--job =x` has no name before the `=`; `--job NOWHERE`: there is no such variable in the environment");
    }
}
