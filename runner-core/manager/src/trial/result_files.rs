//! Result trees as files: written aside, flushed to the disk and renamed, so that a file of that name is a whole result or none.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use step_client::wire::result::{Format, OwnedTree, Redaction, Writing, write};
use step_console::exit::{Exit, Stop};
use step_console::given::words;
use step_model::masking::Secrets;
use step_model::result::StepId;

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultFiles {
    /// Of the only job.
    File(PathBuf),
    /// One for each job: `build.json`.
    Directory(PathBuf),
}

impl ResultFiles {
    /// # Errors
    /// Several jobs cannot have one file.
    pub fn of(path: &Path, jobs: usize) -> Result<Self, Stop> {
        match (path.is_dir(), jobs) {
            (true, _) => Ok(Self::Directory(path.to_path_buf())),
            (false, 1) => Ok(Self::File(path.to_path_buf())),
            (false, _) => Err(Stop::usage(format!("`--result {}`: several jobs have no single result", path.display()))
                .with_hint("name a directory that is there: it gets one file for each job")),
        }
    }

    /// `title`: of the job.
    /// # Errors
    /// The disk is full, for example; there is no new file then.
    pub fn write(&self, title: &str, number: u64, tree: &OwnedTree) -> Result<(), Stop> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Directory(directory) => directory.join(format!("{number}-{}.json", file_name(title))),
        };
        write_aside(&path, tree)
            .map_err(|fault| Stop::new(Exit::Fault, format!("could not write the result to `{}`: {}", path.display(), words(&fault))))
    }
}

fn write_aside(path: &Path, tree: &OwnedTree) -> io::Result<()> {
    // What was secret was masked where the job ran.
    let redaction = Redaction::new(Secrets::default(), RandomState::new().hash_one(1).to_le_bytes());
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::Builder::new().prefix(".runner-core-result-").tempfile_in(directory)?;
    let mut out = BufWriter::new(aside.as_file());
    write(&mut out, tree, StepId::ROOT, Writing { format: Format::Json, our_fields: true, redaction: &redaction })?;
    out.flush()?;
    drop(out);
    aside.as_file().sync_all()?;
    aside.persist(path).map(drop).map_err(|fault| fault.error)
}

/// The title without what a file name cannot hold.
fn file_name(title: &str) -> String {
    let name = Path::new(title).file_stem().map_or_else(|| title.to_owned(), |stem| stem.to_string_lossy().into_owned());
    name.chars().map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_jobs_need_a_directory() {
        assert_eq!(ResultFiles::of(Path::new("r.json"), 1), Ok(ResultFiles::File("r.json".into())));
        let refused = ResultFiles::of(Path::new("r.json"), 2).expect_err("two jobs");
        insta::assert_snapshot!(refused, @"`--result r.json`: several jobs have no single result");
        let directory = tempfile::tempdir().expect("a directory");
        assert!(matches!(ResultFiles::of(directory.path(), 2), Ok(ResultFiles::Directory(_))));
    }

    #[test]
    fn a_title_becomes_a_name_of_a_file() {
        assert_eq!(["job.json", "build: [a, b]", "ci/x.json"].map(file_name), ["job", "build___a__b_", "x"]);
    }
}
