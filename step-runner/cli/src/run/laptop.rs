//! What a laptop does of what a fleet does around a job's own steps: only what it is told to, and only below `.step-runner`.

use super::place::Place;
use super::settings::Settings;
use std::path::{Path, PathBuf};
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_payload::{ArtifactPlace, CachePlace};

/// Where all of it lies, in the directory where the job is run.
const DIRECTORY: &str = ".step-runner";

/// What was asked for, as places. All are absolute: the job may run in another directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Laptop {
    /// The work tree that the job gets in place of the current directory.
    pub checkout: Option<PathBuf>,
    pub cache: Option<PathBuf>,
    pub artifacts: Option<Artifacts>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// Of earlier jobs.
    pub earlier: PathBuf,
    pub own: PathBuf,
}

impl Laptop {
    pub fn of(settings: &Settings, place: &Place) -> Self {
        let dir = Path::new(&*place.dir);
        let here = dir.join(DIRECTORY);
        let named = |given: &str, usual: &str| if given.is_empty() { here.join(usual) } else { dir.join(given) };
        Self {
            checkout: settings.checkout.then(|| here.join("checkout")),
            cache: settings.cache.as_deref().map(|given| named(given, "cache")),
            artifacts: settings
                .artifacts
                .as_deref()
                .map(|given| Artifacts { earlier: named(given, "artifacts"), own: here.join("artifacts") }),
        }
    }

    /// The names of the steps that are carried out.
    pub fn steps(&self) -> Vec<&'static str> {
        let wanted = [(self.artifacts.is_some(), "artifact"), (self.cache.is_some(), "cache"), (self.checkout.is_some(), "checkout")];
        wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, name)| name).collect()
    }

    pub fn caches(&self) -> CachePlace {
        self.cache.as_deref().map_or(CachePlace::Nowhere, |dir| CachePlace::Directory(text(dir)))
    }

    pub fn artifacts_place(&self) -> ArtifactPlace {
        let of = |artifacts: &Artifacts| ArtifactPlace::Directory { earlier: text(&artifacts.earlier), own: text(&artifacts.own) };
        self.artifacts.as_ref().map(of).unwrap_or_default()
    }

    /// The directory of the job.
    pub fn project_dir(&self, place: &Place) -> String {
        self.checkout.as_deref().map_or_else(|| place.dir.to_string(), text)
    }

    /// Makes the directories, and has git overlook them.
    /// # Errors
    /// They cannot be made, or the program of the steps is not there.
    pub fn prepare(&self, program: &Path) -> Result<(), Stop> {
        if *self == Self::default() {
            return Ok(());
        }
        if !program.is_file() {
            let message = format!("could not find the program of the steps {}: no `{}`", self.steps().join(", "), program.display());
            return Err(Stop::bad_input(message)
                .with_hint("take `step-runner` from its bundle, which brings it, or name it with `STEP_RUNNER_STEPS`"));
        }
        let own = self.artifacts.as_ref().map(|artifacts| &artifacts.own);
        self.checkout.iter().chain(&self.cache).chain(own).try_for_each(|dir| make(dir))
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn make(dir: &Path) -> Result<(), Stop> {
    let fault = |error: std::io::Error| Stop::new(Exit::BadInput, format!("could not make `{}`: {}", dir.display(), words(&error)));
    std::fs::create_dir_all(dir).map_err(fault)?;
    let Some(above) = dir.ancestors().find(|above| above.ends_with(DIRECTORY)) else { return Ok(()) };
    let ignore = above.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(ignore, "*\n").map_err(fault) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::settings::What;
    use crate::run::typed::RunArguments;

    fn laptop(arguments: &RunArguments) -> Laptop {
        let place = Place { dir: "/srv/app".into(), ..Place::default() };
        Laptop::of(&Settings::of(arguments, What::StandardInput).expect("settings"), &place)
    }

    #[test]
    fn nothing_is_done_unless_it_is_asked_for() {
        let nothing = laptop(&RunArguments::default());
        assert_eq!(
            (nothing.steps(), nothing.project_dir(&Place { dir: "/srv/app".into(), ..Place::default() })),
            (vec![], "/srv/app".into())
        );
        assert_eq!(nothing.prepare(Path::new("/nowhere")), Ok(()));
    }

    #[test]
    fn everything_lies_in_a_directory_of_its_own() {
        let laptop = laptop(&RunArguments { checkout: true, ..RunArguments::default() });
        assert_eq!(laptop.checkout.as_deref(), Some(Path::new("/srv/app/.step-runner/checkout")));
        assert_eq!(laptop.steps(), ["checkout"]);
        let refused = laptop.prepare(Path::new("/nowhere/step-runner-steps")).expect_err("no program");
        insta::assert_snapshot!(refused, @"could not find the program of the steps checkout: no `/nowhere/step-runner-steps`");
    }

    #[test]
    fn a_directory_that_was_named_takes_the_place_of_the_usual_one() {
        let usual = laptop(&RunArguments { cache: Some(String::new()), artifacts: Some(String::new()), ..RunArguments::default() });
        assert_eq!(usual.caches(), CachePlace::Directory("/srv/app/.step-runner/cache".into()));
        let own = "/srv/app/.step-runner/artifacts".to_owned();
        assert_eq!(usual.artifacts_place(), ArtifactPlace::Directory { earlier: own.clone(), own: own.clone() });
        let named = laptop(&RunArguments { cache: Some("/c".into()), artifacts: Some("from".into()), ..RunArguments::default() });
        assert_eq!(named.caches(), CachePlace::Directory("/c".into()));
        assert_eq!(named.artifacts_place(), ArtifactPlace::Directory { earlier: "/srv/app/from".into(), own });
        assert_eq!(named.steps(), ["artifact", "cache"]);
    }

    #[test]
    fn git_overlooks_what_was_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let checkout = dir.path().join(DIRECTORY).join("checkout");
        Laptop { checkout: Some(checkout.clone()), ..Laptop::default() }
            .prepare(&std::env::current_exe().expect("a program"))
            .expect("directories");
        assert!(checkout.is_dir());
        assert_eq!(std::fs::read_to_string(dir.path().join(DIRECTORY).join(".gitignore")).expect("a file"), "*\n");
    }
}
