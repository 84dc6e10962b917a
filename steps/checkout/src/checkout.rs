//! Looks at the tree, carries out what was planned, and asks what follows when something fails.

use crate::credentials::{self, SshFiles};
use crate::git::Git;
use crate::inputs::Inputs;
use crate::planning::{self, Met, Next, NotOurs, Phase, Task};
use crate::settings::{Settings, Source, Strategy, Wanted};
use crate::tree::{self, Tree};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use step_sdk::{Failure, Step, say};

/// # Errors
/// The inputs make no sense, or the commit could not be had.
pub fn run(step: &Step) -> Result<(), Failure> {
    let settings = Settings::of(step.inputs::<Inputs>()?)?;
    let work_dir = std::env::current_dir().map_err(|error| Failure::internal(format!("could not find the work directory: {error}")))?;
    run_in(step, &settings, &work_dir)
}

fn run_in(step: &Step, settings: &Settings, work_dir: &Path) -> Result<(), Failure> {
    let directory = work_dir.join(&settings.directory);
    fs::create_dir_all(&directory).map_err(|error| Failure::step(format!("could not make `{}`: {error}", directory.display())))?;
    let private = Private::of(settings.source.as_ref(), step)?;
    let checkout = Checkout { settings, git: git_for(settings, &directory, &private.files), directory };
    checkout.to_the_end()?;
    checkout.tell(step)
}

fn git_for(settings: &Settings, directory: &Path, ssh: &SshFiles) -> Git {
    let Some(source) = &settings.source else { return Git::new(directory, Vec::new(), Vec::new()) };
    let ssh = Some(ssh).filter(|ssh| **ssh != SshFiles::default());
    Git::new(directory, credentials::configuration(source), credentials::environment(source, ssh))
}

struct Checkout<'a> {
    settings: &'a Settings,
    directory: PathBuf,
    git: Git,
}

impl Checkout<'_> {
    fn to_the_end(&self) -> Result<(), Failure> {
        let (mut attempt, mut start_over) = (1, false);
        loop {
            let tree = self.look()?;
            let reused = !start_over && planning::is_reused(self.settings, &tree);
            let tasks = planning::plan(self.settings, &tree, start_over).map_err(|refused| self.not_ours(refused))?;
            let Some(failed) = self.carry_out(tasks)? else { return Ok(()) };
            let phase = failed.phase;
            let remote_answers = planning::wants_to_know(phase, reused) && self.remote_answers()?;
            let had_modules = tree.repository.is_some_and(|repository| repository.has_modules);
            match planning::next(Met { phase, attempt, reused, had_modules, remote_answers }, self.settings.attempts) {
                Next::StartOver => say("The work tree is damaged: starting again with an empty one"),
                Next::Retry(pause) => {
                    attempt += 1;
                    say(&format!("Trying again in {:.1} s (attempt {attempt} of {})", pause.as_secs_f64(), self.settings.attempts));
                    std::thread::sleep(pause);
                }
                Next::GiveUp => return Err(self.failure(&failed)),
            }
            start_over = true;
        }
    }

    fn look(&self) -> Result<Tree, Failure> {
        tree::look(&self.directory).map_err(|error| Failure::step(format!("could not read `{}`: {error}", self.directory.display())))
    }

    /// `Some`: this command has failed, and has said why.
    fn carry_out(&self, tasks: Vec<Task>) -> Result<Option<Failed>, Failure> {
        for task in tasks {
            let failed = match task {
                Task::Say(text) => {
                    say(&text);
                    None
                }
                Task::Empty => {
                    tree::empty(&self.directory).map_err(|(path, error)| not_removed(&path, &error))?;
                    None
                }
                Task::Remove(paths) => {
                    self.remove(&paths)?;
                    None
                }
                Task::Mark => {
                    let mark = self.directory.join(".git").join(tree::MARK);
                    fs::write(&mark, "1\n").map_err(|error| Failure::step(format!("could not write `{}`: {error}", mark.display())))?;
                    None
                }
                Task::Git { phase, words } => self.git(phase, words)?,
                Task::GitUnlessThere { commit, words } => match self.has(&commit)? {
                    true => None,
                    false => self.git(Phase::Fetch, words)?,
                },
                Task::FetchLargeFiles { recursive } => self.fetch_large_files(recursive)?,
            };
            if failed.is_some() {
                return Ok(failed);
            }
        }
        Ok(None)
    }

    fn git(&self, phase: Phase, words: Vec<String>) -> Result<Option<Failed>, Failure> {
        let has_succeeded = self.git.run(&words)?;
        Ok((!has_succeeded).then_some(Failed { phase, words }))
    }

    fn remove(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        for path in paths {
            let path = self.directory.join(path);
            tree::remove(&path).map_err(|error| not_removed(&path, &error))?;
        }
        Ok(())
    }

    fn has(&self, commit: &str) -> Result<bool, Failure> {
        Ok(self.git.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.is_some())
    }

    fn fetch_large_files(&self, recursive: bool) -> Result<Option<Failed>, Failure> {
        if self.git.ask(&["lfs", "version"])?.is_none() {
            let attributes = fs::read_to_string(self.directory.join(".gitattributes")).unwrap_or_default();
            if !recursive && attributes.lines().any(|line| line.contains("filter=lfs")) {
                say("warning: this repository keeps files in Git LFS, and `git lfs` is not installed: they stay pointers");
            }
            return Ok(None);
        }
        let words = match recursive {
            true => vec!["submodule", "--quiet", "foreach", "--recursive", "git", "lfs", "pull"],
            false => vec!["lfs", "pull"],
        };
        self.git(Phase::LargeFiles, words.into_iter().map(str::to_owned).collect())
    }

    fn remote_answers(&self) -> Result<bool, Failure> {
        let Some(source) = &self.settings.source else { return Ok(false) };
        Ok(self.git.ask(&["ls-remote", "--quiet", &source.remote.url, "HEAD"])?.is_some())
    }

    fn failure(&self, failed: &Failed) -> Failure {
        let what = failed.words.iter().take(2).filter(|word| !word.starts_with('-')).cloned().collect::<Vec<_>>().join(" ");
        let failure = Failure::step(format!("`git {what}` has failed"));
        let Some(source) = &self.settings.source else { return failure };
        match failed.phase {
            Phase::Fetch => match (&source.login, &source.wanted) {
                (Some(_), _) => failure
                    .with_hint("its message above says why; a refused token is that of a job that has ended, or may not read the project"),
                (None, Wanted::Commit { .. } | Wanted::Reference(_)) => failure
                    .with_hint("its message above says why; a repository that is not public wants `token`, or what git has of its own"),
            },
            Phase::Submodules => failure.with_hint("the job's token must be allowed to read the submodules' projects"),
            Phase::LargeFiles => failure.with_hint("`lfs: false` leaves large files as pointers"),
            Phase::Local => failure.with_hint("its message above says why"),
        }
    }

    fn not_ours(&self, refused: NotOurs) -> Failure {
        Failure::bad_input(format!("could not check out into `{}`: {refused}", self.directory.display()))
            .with_hint("use an empty directory, or set `take_over: true` if everything in it may be removed")
    }

    fn tell(&self, step: &Step) -> Result<(), Failure> {
        let is_empty = self.settings.strategy == Strategy::Empty;
        let commit = if is_empty { None } else { self.git.ask(&["rev-parse", "--verify", "--quiet", "HEAD"])? };
        let reference = self.settings.source.as_ref().map(|source| match &source.wanted {
            Wanted::Commit { reference, .. } | Wanted::Reference(reference) => reference.clone(),
        });
        step.output("commit", commit.unwrap_or_default())?;
        step.output("ref", reference.unwrap_or_default())
    }
}

/// A command that was carried out and failed.
struct Failed {
    phase: Phase,
    words: Vec<String>,
}

fn not_removed(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::step(format!("could not remove `{}`: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            failure.with_hint("another user owns it, as files that a container wrote; remove it as that user, or have the job remove it")
        }
        _ => failure,
    }
}

/// The files that ssh needs, in a directory that goes with the step, or with the job if the step is killed.
struct Private {
    files: SshFiles,
    /// Removed when this is dropped.
    _directory: Option<tempfile::TempDir>,
}

impl Private {
    fn of(source: Option<&Source>, step: &Step) -> Result<Self, Failure> {
        let (key, known_hosts) = source.map_or((None, None), |source| (source.ssh_key.as_ref(), source.ssh_known_hosts.as_ref()));
        if key.is_none() && known_hosts.is_none() {
            return Ok(Self { files: SshFiles::default(), _directory: None });
        }
        let fault = |error: io::Error| Failure::step(format!("could not keep the key for SSH in a private file: {error}"));
        let mut builder = tempfile::Builder::new();
        builder.prefix(PRIVATE);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let directory = builder.tempdir().map_err(fault)?;
        let program = std::env::current_exe().map_or_else(|_| "step-runner-steps".into(), PathBuf::into_os_string);
        let path = directory.path().display().to_string();
        step.clean_up_later([program.to_string_lossy().into_owned(), "checkout".into(), "clean-up".into(), path])?;
        let write = |name: &str, text: &str| -> Result<PathBuf, Failure> {
            let path = directory.path().join(name);
            // Ssh wants a line end behind the last line of a key, which a variable often has lost.
            write_private(&path, &format!("{}\n", text.trim_end().replace("\r\n", "\n"))).map_err(fault)?;
            Ok(path)
        };
        let files = SshFiles {
            key: key.map(|key| write("key", &key.0)).transpose()?,
            known_hosts: known_hosts.map(|hosts| write("known_hosts", hosts)).transpose()?,
        };
        Ok(Self { files, _directory: Some(directory) })
    }
}

/// How the directories of keys begin.
const PRIVATE: &str = "step-checkout-";

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

/// Removes the directory of a key that a killed step has left.
/// # Errors
/// It is no such directory, or cannot be removed.
pub fn clean_up(path: &str) -> Result<(), Failure> {
    let path = Path::new(path);
    let is_private = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PRIVATE));
    if !is_private {
        return Err(Failure::bad_input(format!("`{}` was not made by a checkout", path.display())));
    }
    tree::remove(path).map_err(|error| not_removed(path, &error))
}

#[cfg(test)]
mod tests;
