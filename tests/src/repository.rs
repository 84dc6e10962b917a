//! The repository as a thing to read: its source files, its manifests, and what cargo says about them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory that holds the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies inside the workspace")
}

/// A file of the repository and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

/// Every text file below the root whose name ends in one of `endings`, build products and hidden directories aside, in order of path.
pub fn files_ending_in(endings: &[&str]) -> Vec<SourceFile> {
    let mut found = Vec::new();
    collect(root(), endings, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every Rust file of the workspace.
pub fn rust_files() -> Vec<SourceFile> {
    files_ending_in(&[".rs"])
}

fn collect(directory: &Path, endings: &[&str], found: &mut Vec<SourceFile>) {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("could not list {}: {error}", directory.display()));
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let is_hidden = name.starts_with('.') && name != ".ci";
            // CARGO_TARGET_DIR may lie inside the repository under any name; cargo marks it.
            if !is_hidden && !path.join("CACHEDIR.TAG").exists() {
                collect(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending))
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            found.push(SourceFile { path: relative(&path), text });
        }
    }
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("found below the root").to_string_lossy().replace('\\', "/")
}

/// The text of one file of the repository.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("could not read {path}: {error}"))
}

/// The crates of the workspace and everything that they could depend on.
pub fn metadata() -> cargo_metadata::Metadata {
    cargo_metadata::MetadataCommand::new()
        .cargo_path(cargo())
        .manifest_path(root().join("Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .unwrap_or_else(|error| panic!("could not read the workspace: {error}"))
}

/// The lines that `cargo tree` prints. Always with `--no-dedupe`: the default output hides edges.
pub fn cargo_tree(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(cargo())
        .current_dir(root())
        .args(["tree", "--locked", "--no-dedupe", "--prefix", "none"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("could not run cargo tree: {error}"));
    assert!(output.status.success(), "cargo tree {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}
