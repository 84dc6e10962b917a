//! Definitions on this machine: reads what references name, within the repository.
//!
//! A relative reference stays in the repository of the job or of the document that holds it; `..` or a symbolic link that leads out is
//! refused. A path that was written as absolute may lead anywhere, as in the original.

mod boundary;
mod file;
mod provenance;

use crate::system_error;
use boundary::Boundary;
use provenance::Provenances;
use std::collections::VecDeque;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use step_engine::effect::{Effect, LoadedDefinition};
use step_engine::event::{LoadFault, LoadFaultKind};
use step_engine::resolve::{DocumentProblems, Resolver};
use step_model::builtin::Builtins;
use step_model::document::StepDocument;
use step_model::plan::PlannedDocument;
use step_model::reference::{Digest, LocalReference};

/// Looked for in a directory, in this order, when no file is named.
const FILES: [&str; 2] = ["func.yml", "step.yml"];

/// Resolves a job, or a definition file, as far as that is possible before the first step. `dir`: what its relative references are
/// relative to; absolute. `provenance`: look up the commit of each definition, which costs one `git` per directory. `builtins`: the steps that
/// are compiled into this program.
/// # Errors
/// Every problem of every document that was reached, when one of them is an error.
pub fn resolve(
    root: Arc<StepDocument>,
    dir: &str,
    provenance: bool,
    builtins: &Builtins,
) -> Result<(Arc<PlannedDocument>, Vec<DocumentProblems>), Vec<DocumentProblems>> {
    let mut loader = Loader::new(dir, provenance);
    let (mut resolver, effects) = Resolver::start(root, dir.into(), builtins.clone());
    let mut open = VecDeque::from(effects);
    while let Some(effect) = open.pop_front() {
        if let Effect::Load { load, from, reference } = effect {
            open.extend(resolver.on_loaded(load, loader.load(&from, &reference)));
        }
    }
    resolver.finish()
}

/// Reads definitions for one job.
#[derive(Debug)]
pub struct Loader {
    boundary: Boundary,
    /// `None`: nobody asked.
    provenances: Option<Provenances>,
}

impl Loader {
    /// `build_dir`: what references of the job itself are relative to.
    pub fn new(build_dir: &str, provenance: bool) -> Self {
        Self { boundary: Boundary::of(Path::new(build_dir)), provenances: provenance.then(Provenances::default) }
    }

    /// Reads the definition that `reference` names in a document of the directory `from`.
    /// # Errors
    /// There is none, or it may not or cannot be read.
    pub fn load(&mut self, from: &str, reference: &LocalReference) -> Result<LoadedDefinition, LoadFault> {
        let named = directory_of(Path::new(from), reference);
        let is_absolute = reference.path.first().is_some_and(|first| &**first == "/");
        let candidates: &[&str] = match &reference.file {
            Some(file) => &[file],
            None => &FILES,
        };
        // Without links, once for all candidates: this is done anew for each step, since a step before it may have changed anything.
        let dir = named.canonicalize().map_err(|error| fault_of(&named.join(candidates.last().unwrap_or(&FILES[1])), error))?;
        let mut last = Err(fault_of(&named.join(FILES[1]), io::ErrorKind::NotFound.into()));
        for file in candidates {
            last = self.load_file(Path::new(from), &named, &dir, file, is_absolute);
            if !matches!(&last, Err(fault) if fault.kind == LoadFaultKind::NotFound) {
                break;
            }
        }
        last
    }

    fn load_file(&mut self, from: &Path, named: &Path, dir: &Path, file: &str, is_absolute: bool) -> Result<LoadedDefinition, LoadFault> {
        let path = named.join(file);
        let real = without_links(dir, file).map_err(|error| fault_of(&path, error))?;
        if !is_absolute && let Some(repository) = self.boundary.is_left(from, &real) {
            return Err(left(&path, &real, &repository));
        }
        let content = file::read(&real).map_err(|fault| match fault {
            file::Fault::System(error) => fault_of(&path, error),
            file::Fault::Refused(why) => refused(&path, &why),
        })?;
        let dir_text = dir.to_str().ok_or_else(|| refused(&path, "its path is not UTF-8"))?;
        Ok(LoadedDefinition {
            digest: Digest::of(content.as_bytes()),
            text: content,
            dir: dir_text.into(),
            file: file.into(),
            provenance: self.provenances.as_mut().and_then(|known| known.of(dir)),
        })
    }
}

/// A file in a directory that is without links. Most are no link themselves, which one look tells.
fn without_links(dir: &Path, file: &str) -> io::Result<PathBuf> {
    let path = dir.join(file);
    let is_one_name = Path::new(file).file_name().is_some_and(|name| name == file);
    if is_one_name && !path.symlink_metadata()?.is_symlink() { Ok(path) } else { path.canonicalize() }
}

/// The directory as it was written: `..` takes the name before it away, whatever a link says, as in the original.
fn directory_of(from: &Path, reference: &LocalReference) -> PathBuf {
    let mut directory = PathBuf::new();
    let parts = reference.path.iter().map(|part| Path::new(&**part));
    for component in parts.fold(from.to_path_buf(), |directory, part| directory.join(part)).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(directory.pop()),
            other => directory.push(other),
        }
    }
    directory
}

fn fault_of(path: &Path, error: io::Error) -> LoadFault {
    let path = path.display();
    let kind = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => LoadFaultKind::NotFound,
        _ => LoadFaultKind::Refused,
    };
    let why = system_error::text(&error);
    LoadFault { kind, message: format!("loading file \"{path}\": reading file: open {path}: {why}") }
}

fn refused(path: &Path, why: &str) -> LoadFault {
    LoadFault { kind: LoadFaultKind::Refused, message: format!("loading file \"{}\": {why}", path.display()) }
}

fn left(path: &Path, real: &Path, repository: &Path) -> LoadFault {
    let repository = repository.display();
    let why = if path == real {
        format!("it is outside of the repository \"{repository}\"; write an absolute path if that is meant")
    } else {
        let real = real.display();
        format!("it leads to \"{real}\", outside of the repository \"{repository}\"; write an absolute path if that is meant")
    };
    refused(path, &why)
}

#[cfg(test)]
mod tests;
