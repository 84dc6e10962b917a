//! Runs the steps that a job of GitLab carries in its variable STEPS, as GitLab's runner calls `step-runner ci` in a script (original.md S 2.1).

use crate::run::place::Place;
use crate::run::settings::{Settings, What};
use crate::run::typed::{GitLabArguments, RunArguments, TypedLevel};
use std::path::Path;
use step_console::exit::{Exit, Stop};
use step_model::environment::EntryPoint;

/// Environment variables that are job variables.
const JOB_VARIABLES: [&str; 3] = ["CI_", "GITLAB_", "DOCKER_"];

#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    after_help = "The steps are the list (YAML or JSON) in the environment variable STEPS. They run in $CI_PROJECT_DIR, else in the current directory. Variables that\n\
begin with CI_, GITLAB_ or DOCKER_ are job variables; of the others the steps inherit only PATH and a few more."
)]
pub struct CiArguments {
    /// Write the result tree to `step-results.json`. [default: whether CI_STEPS_DEBUG is true]
    #[arg(long)]
    pub write_steps_results: bool,
    /// The release of GitLab's step-runner whose texts are used. [default: 0.44]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub level: Option<TypedLevel>,
}

/// Runs the steps.
/// # Errors
/// There are none, or they cannot run.
pub fn run(arguments: &CiArguments) -> anyhow::Result<Exit> {
    let place = Place::read()?;
    let (settings, place) = prepared(arguments, place, |dir| dir.is_dir())?;
    crate::run::run_in(&settings, Ok(place))
}

/// The same as a run of the steps in their surroundings.
fn prepared(arguments: &CiArguments, place: Place, is_dir: impl Fn(&Path) -> bool) -> Result<(Settings, Place), Stop> {
    let steps = place.env.get("STEPS").cloned().unwrap_or_default();
    if steps.trim().is_empty() {
        // The missing backquote is theirs.
        return Err(Stop::bad_input("compiling STEPS: at least one of `script, `action`, `run` or `exec` must be provided")
            .with_hint("`step-runner ci` runs the list of steps in the environment variable STEPS"));
    }
    let is_debug = place.env.get("CI_STEPS_DEBUG").is_some_and(|text| is_true(text));
    let typed = RunArguments {
        level: arguments.level,
        theirs: GitLabArguments { write_steps_results: arguments.write_steps_results || is_debug, ..GitLabArguments::default() },
        ..RunArguments::default()
    };
    let mut settings = Settings::of(&typed, What::CiSteps(steps))?;
    let is_variable = |name: &str| JOB_VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    settings.variables =
        place.env.iter().filter(|(name, _)| is_variable(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    let dir = match place.env.get("CI_PROJECT_DIR").filter(|dir| !dir.is_empty()) {
        None => place.dir.clone(),
        Some(dir) if is_dir(Path::new(dir)) => Path::new(&*place.dir).join(dir).to_string_lossy().into(),
        Some(dir) => return Err(Stop::bad_input(format!("CI_PROJECT_DIR names `{dir}`, which is not a directory"))),
    };
    let mut env = place.env;
    env.retain(|name, _| EntryPoint::Ci.passes_on(name));
    Ok((settings, Place { dir, env, strange: Vec::new(), ..place }))
}

/// As Go reads a truth value.
fn is_true(text: &str) -> bool {
    ["1", "t", "T", "true", "TRUE", "True"].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(env: &[(&str, &str)]) -> Place {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Place { dir: "/here".into(), env, ..Place::default() }
    }

    fn ready(env: &[(&str, &str)]) -> (Settings, Place) {
        prepared(&CiArguments::default(), place(env), |dir| dir == Path::new("/builds/x")).expect("it can run")
    }

    #[test]
    fn steps_inherit_a_fixed_list_and_job_variables_go_by_prefix() {
        let env = [
            ("STEPS", "[]"),
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("FOO", "f"),
            ("CI_FOO", "1"),
            ("GITLAB_X", "2"),
            ("DOCKER_X", "3"),
            ("TZ", "UTC"),
        ];
        let (settings, place) = ready(&env);
        assert_eq!(place.env.keys().collect::<Vec<_>>(), ["PATH", "TZ"]);
        let names: Vec<&str> = settings.variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["CI_FOO", "DOCKER_X", "GITLAB_X"]);
    }

    #[test]
    fn steps_run_in_the_directory_of_the_project() {
        assert_eq!(&*ready(&[("STEPS", "[]"), ("CI_PROJECT_DIR", "/builds/x")]).1.dir, "/builds/x");
        assert_eq!(&*ready(&[("STEPS", "[]")]).1.dir, "/here");
        let gone = prepared(&CiArguments::default(), place(&[("STEPS", "[]"), ("CI_PROJECT_DIR", "/gone")]), |_| false);
        assert_eq!(gone.expect_err("no directory").to_string(), "CI_PROJECT_DIR names `/gone`, which is not a directory");
    }

    #[test]
    fn a_result_is_written_when_it_is_asked_for_or_when_debugging() {
        let files = |arguments: CiArguments, debug: &str| {
            let (settings, _) = prepared(&arguments, place(&[("STEPS", "[]"), ("CI_STEPS_DEBUG", debug)]), |_| true).expect("it can run");
            settings.result_files.len()
        };
        let asked = CiArguments { write_steps_results: true, ..CiArguments::default() };
        assert_eq!((files(asked, ""), files(CiArguments::default(), "true"), files(CiArguments::default(), "no")), (1, 1, 0));
    }

    #[test]
    fn without_steps_the_original_words_are_said() {
        let stop = prepared(&CiArguments::default(), place(&[("STEPS", " ")]), |_| true).expect_err("no steps");
        assert_eq!(stop.to_string(), "compiling STEPS: at least one of `script, `action`, `run` or `exec` must be provided");
        assert_eq!(stop.exit, Exit::BadInput);
    }
}
