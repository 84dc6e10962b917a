//! What `try` does around the own steps of jobs: only what it is told to, and only below `.step-runner`, as `step-runner run` does it.

use super::TryArguments;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use step_console::exit::{Complaint, Exit, Stop};
use step_console::given::words;
use step_model::document::Dialect;
use step_model::reference::StepReference;
use step_payload::{ArtifactPlace, CachePlace};

const DIRECTORY: &str = ".step-runner";
const PROGRAM: &str = if cfg!(windows) { "step-runner-steps.exe" } else { "step-runner-steps" };

/// Those that may be replaced: what changes the files of a job.
const REPLACED: [&str; 3] = ["checkout", "cache", "artifact"];

/// What was asked for, as places. All are absolute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Laptop {
    /// The work tree that jobs get in place of the current directory.
    pub checkout: Option<PathBuf>,
    cache: Option<PathBuf>,
    /// Those of earlier jobs, and those of these.
    artifacts: Option<(PathBuf, PathBuf)>,
    pub references: BTreeMap<String, StepReference>,
}

impl Laptop {
    /// `directory`: the current one.
    /// # Errors
    /// A step in place of ours is none.
    pub fn of(arguments: &TryArguments, directory: &Path) -> Result<Self, Stop> {
        let here = directory.join(DIRECTORY);
        let named = |given: &String, usual: &str| if given.is_empty() { here.join(usual) } else { directory.join(given) };
        Ok(Self {
            checkout: arguments.checkout.then(|| here.join("checkout")),
            cache: arguments.cache.as_ref().map(|given| named(given, "cache")),
            artifacts: arguments.artifacts.as_ref().map(|given| (named(given, "artifacts"), here.join("artifacts"))),
            references: references(&arguments.step)?,
        })
    }

    /// The steps of ours that are carried out.
    pub fn steps(&self) -> Vec<String> {
        let wanted = [(self.artifacts.is_some(), "artifact"), (self.cache.is_some(), "cache"), (self.checkout.is_some(), "checkout")];
        wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, name)| name.to_owned()).collect()
    }

    pub fn caches(&self) -> CachePlace {
        self.cache.as_deref().map_or(CachePlace::Nowhere, |dir| CachePlace::Directory(text(dir)))
    }

    pub fn artifacts_place(&self) -> ArtifactPlace {
        let place = |(earlier, own): &(PathBuf, PathBuf)| ArtifactPlace::Directory { earlier: text(earlier), own: text(own) };
        self.artifacts.as_ref().map(place).unwrap_or_default()
    }

    /// Makes the directories, and has git overlook them. `agent`: the program of the steps lies beside it.
    /// # Errors
    /// They cannot be made, or the program is not there.
    pub fn prepare(&self, agent: &Path) -> Result<(), Stop> {
        let missing: Vec<String> = self.steps().into_iter().filter(|step| !self.references.contains_key(step)).collect();
        let program = agent.with_file_name(PROGRAM);
        if !missing.is_empty() && !program.is_file() {
            let message = format!("could not find the program of the steps {}: no `{}`", missing.join(", "), program.display());
            return Err(Stop::bad_input(message).with_hint("take `step-runner` from its bundle, which brings it"));
        }
        let own = self.artifacts.as_ref().map(|(_, own)| own);
        self.checkout.iter().chain(&self.cache).chain(own).try_for_each(|dir| make(dir))
    }
}

fn references(texts: &[String]) -> Result<BTreeMap<String, StepReference>, Stop> {
    let (mut references, mut problems) = (BTreeMap::new(), Vec::new());
    for text in texts {
        let Some((name, reference)) = text.split_once('=').filter(|(name, _)| REPLACED.contains(name)) else {
            let known = REPLACED.join("`, `");
            problems.push(Complaint::new(format!("`--step {text}` is not `NAME=REFERENCE` with one of the names `{known}`")));
            continue;
        };
        match StepReference::parse(reference, Dialect::Functions) {
            Ok(reference) => _ = references.insert(name.to_owned(), reference),
            Err(fault) => problems.push(Complaint::new(format!("`--step`: `{reference}` is no reference: {fault}"))),
        }
    }
    if problems.is_empty() { Ok(references) } else { Err(Stop::all(Exit::Usage, problems)) }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn make(dir: &Path) -> Result<(), Stop> {
    let fault = |error: std::io::Error| Stop::bad_input(format!("could not make `{}`: {}", dir.display(), words(&error)));
    std::fs::create_dir_all(dir).map_err(fault)?;
    let Some(above) = dir.ancestors().find(|above| above.ends_with(DIRECTORY)) else { return Ok(()) };
    let ignore = above.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(ignore, "*\n").map_err(fault) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laptop(arguments: TryArguments) -> Result<Laptop, String> {
        Laptop::of(&arguments, Path::new("/srv/app")).map_err(|stop| stop.to_string())
    }

    #[test]
    fn nothing_is_done_unless_it_is_asked_for() {
        let nothing = laptop(TryArguments::default()).expect("flags");
        assert_eq!((nothing.steps(), nothing.caches()), (Vec::new(), CachePlace::Nowhere));
        assert_eq!(nothing.prepare(Path::new("/nowhere/step-runner")), Ok(()));
    }

    #[test]
    fn what_is_asked_for_lies_in_one_directory_unless_another_is_named() {
        let asked =
            TryArguments { checkout: true, cache: Some(String::new()), artifacts: Some("from".to_owned()), ..TryArguments::default() };
        let laptop = laptop(asked).expect("flags");
        assert_eq!(laptop.steps(), ["artifact", "cache", "checkout"]);
        assert_eq!(laptop.caches(), CachePlace::Directory("/srv/app/.step-runner/cache".to_owned()));
        let (earlier, own) = ("/srv/app/from".to_owned(), "/srv/app/.step-runner/artifacts".to_owned());
        assert_eq!(laptop.artifacts_place(), ArtifactPlace::Directory { earlier, own });
        let refused = laptop.prepare(Path::new("/nowhere/step-runner")).expect_err("no program");
        insta::assert_snapshot!(refused, @"could not find the program of the steps artifact, cache, checkout: no `/nowhere/step-runner-steps`");
    }

    #[test]
    fn only_steps_of_ours_can_be_replaced() {
        let step = |text: &str| laptop(TryArguments { step: vec![text.to_owned()], ..TryArguments::default() });
        assert_eq!(step("cache=./mine").expect("a reference").references.keys().collect::<Vec<_>>(), ["cache"]);
        insta::assert_snapshot!(step("docker=./mine").expect_err("refused"), @"`--step docker=./mine` is not `NAME=REFERENCE` with one of the names `checkout`, `cache`, `artifact`");
    }
}
