//! The files that the patterns of a job mean.
//!
//! As GitLab's runner has it (GitLab Runner v19.4, `commands/helpers/file_archiver.go`): a pattern is relative to the directory, `**` stands for any number
//! of directories, a directory means everything in it, and links are taken as links.

use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub paths: Vec<String>,
    /// Files that are left out.
    pub exclude: Vec<String>,
    /// Files that git does not know; see [`crate::untracked`]. `None`: not asked for.
    pub untracked: Option<Vec<PathBuf>>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Relative to the directory, sorted; a directory comes before what is in it.
    pub files: Vec<PathBuf>,
    /// What there is to say, in the order of the patterns.
    pub said: Vec<String>,
}

/// Finds the files below `root`.
/// # Errors
/// `root` cannot be read.
pub fn select(root: &Path, wanted: &Wanted) -> io::Result<Selection> {
    let root = root.canonicalize()?;
    let mut said = Vec::new();
    let exclude: Vec<(&str, Option<GlobMatcher>)> =
        wanted.exclude.iter().map(|pattern| (pattern.as_str(), relative(&root, pattern).and_then(|pattern| glob(&pattern)))).collect();
    let mut search = Search { root: &root, exclude: &exclude, excluded: vec![0; exclude.len()], files: BTreeSet::new() };
    for pattern in wanted.paths.iter().filter(|pattern| !pattern.is_empty()) {
        said.push(search.pattern(pattern));
    }
    if let Some(untracked) = &wanted.untracked {
        let before = search.files.len();
        untracked.iter().for_each(|path| search.add(path));
        let count = search.files.len() - before;
        said.push(if count == 0 { "untracked: no files".to_owned() } else { format!("untracked: found {}", files(count)) });
    }
    let excluded = exclude.iter().zip(&search.excluded).filter(|(_, count)| **count > 0);
    said.extend(excluded.map(|((pattern, _), count)| format!("{pattern}: excluded {}", files(*count))));
    Ok(Selection { files: search.files.into_iter().collect(), said })
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

struct Search<'a> {
    root: &'a Path,
    exclude: &'a [(&'a str, Option<GlobMatcher>)],
    excluded: Vec<usize>,
    files: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// What there is to say about it.
    fn pattern(&mut self, pattern: &str) -> String {
        let Some(cleaned) = relative(self.root, pattern) else {
            return format!("WARNING: {pattern}: not below the working directory ({})", self.root.display());
        };
        let before = self.files.len();
        let is_there = if has_wildcard(&cleaned) { self.wildcard(&cleaned) } else { self.literal(Path::new(&unescaped(&cleaned))) };
        match (is_there, self.files.len() - before) {
            (false, _) => format!(
                "WARNING: {pattern}: no matching files. Ensure that the path is relative to the working directory ({})",
                self.root.display()
            ),
            (true, 1) => format!("{pattern}: found 1 matching file or directory"),
            (true, count) => format!("{pattern}: found {count} matching files and directories"),
        }
    }

    fn literal(&mut self, path: &Path) -> bool {
        let full = self.root.join(path);
        // Links on the way may lead out, and what is there is not the job's.
        let parent = full.parent().and_then(|parent| parent.canonicalize().ok());
        if !parent.is_some_and(|parent| parent.starts_with(self.root)) && path != Path::new("") {
            return false;
        }
        if fs::symlink_metadata(&full).is_err() {
            return false;
        }
        self.add_all(path);
        true
    }

    fn wildcard(&mut self, pattern: &str) -> bool {
        let Some(matcher) = glob(pattern) else { return false };
        // Everything before the first wildcard is a directory that need not be searched for.
        let parts: Vec<&str> = pattern.split('/').collect();
        let fixed = parts.iter().take(parts.len() - 1).take_while(|part| !has_wildcard(part));
        let base: PathBuf = fixed.map(|part| unescaped(part)).collect();
        let mut found = false;
        let mut open = vec![base];
        while let Some(dir) = open.pop() {
            for (path, is_directory) in entries(self.root, &dir) {
                if matcher.is_match(&path) {
                    found = true;
                    self.add_all(&path);
                } else if is_directory {
                    open.push(path);
                }
            }
        }
        found
    }

    /// A path, and everything in it.
    fn add_all(&mut self, path: &Path) {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            if fs::symlink_metadata(self.root.join(&path)).is_ok_and(|found| found.is_dir()) {
                open.extend(entries(self.root, &path).into_iter().map(|(path, _)| path));
            }
            self.add(&path);
        }
    }

    fn add(&mut self, path: &Path) {
        if path.as_os_str().is_empty() {
            return;
        }
        for (index, (_, matcher)) in self.exclude.iter().enumerate() {
            if matcher.as_ref().is_some_and(|matcher| matcher.is_match(path)) {
                self.excluded[index] += 1;
                return;
            }
        }
        self.files.insert(path.to_owned());
    }
}

/// Paths from the root, and whether each is a directory. What cannot be read is empty.
fn entries(root: &Path, dir: &Path) -> Vec<(PathBuf, bool)> {
    let read = fs::read_dir(root.join(dir)).into_iter().flatten().filter_map(Result::ok);
    read.map(|entry| (dir.join(entry.file_name()), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect()
}

/// A pattern from the root, in its shortest form. `None`: it leads out.
fn relative(root: &Path, pattern: &str) -> Option<String> {
    let pattern = if cfg!(windows) { pattern.replace('\\', "/") } else { pattern.to_owned() };
    let path = Path::new(&pattern);
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn has_wildcard(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '*' | '?' | '[' | '{' => return true,
            _ => {}
        }
    }
    false
}

fn unescaped(pattern: &str) -> String {
    let mut letters = pattern.chars();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        text.push(if letter == '\\' { letters.next().unwrap_or('\\') } else { letter });
    }
    text
}

fn glob(pattern: &str) -> Option<GlobMatcher> {
    let built = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    built.ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    fn selected(dir: &Path, wanted: &Wanted) -> String {
        let Selection { files, said } = select(dir, wanted).unwrap();
        let files = files.iter().map(|file| file.display().to_string());
        let root = dir.canonicalize().unwrap().display().to_string();
        files.chain(said.into_iter().map(|line| format!("# {}", line.replace(&root, "ROOT")))).collect::<Vec<_>>().join("\n")
    }

    fn paths(patterns: &[&str]) -> Wanted {
        Wanted { paths: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(), ..Wanted::default() }
    }

    #[test]
    fn a_directory_means_everything_in_it_and_a_pattern_what_it_matches() {
        let dir = tree(&["target/a/b.o", "target/c.bin", "src/main.rs", "src/deep/lib.rs", "readme"]);
        insta::assert_snapshot!(selected(dir.path(), &paths(&["target/", "src/**/*.rs", "./readme"])), @"
        readme
        src/deep/lib.rs
        src/main.rs
        target
        target/a
        target/a/b.o
        target/c.bin
        # target/: found 4 matching files and directories
        # src/**/*.rs: found 2 matching files and directories
        # ./readme: found 1 matching file or directory
        ");
    }

    #[test]
    fn a_wildcard_that_meets_a_directory_takes_what_is_in_it() {
        let dir = tree(&["build-1/x", "build-2/y/z", "other/x"]);
        insta::assert_snapshot!(selected(dir.path(), &paths(&["build-*", "{other,none}/[x-z]"])), @"
        build-1
        build-1/x
        build-2
        build-2/y
        build-2/y/z
        other/x
        # build-*: found 5 matching files and directories
        # {other,none}/[x-z]: found 1 matching file or directory
        ");
    }

    #[test]
    fn what_is_not_there_and_what_lies_outside_is_said() {
        let dir = tree(&["a"]);
        insta::assert_snapshot!(selected(dir.path(), &paths(&["none", "../secret", "/etc/passwd", "x/../a"])), @"
        a
        # WARNING: none: no matching files. Ensure that the path is relative to the working directory (ROOT)
        # WARNING: ../secret: not below the working directory (ROOT)
        # WARNING: /etc/passwd: not below the working directory (ROOT)
        # x/../a: found 1 matching file or directory
        ");
    }

    #[test]
    fn an_absolute_path_below_the_directory_is_taken() {
        let dir = tree(&["a/b"]);
        let absolute = dir.path().canonicalize().unwrap().join("a/b");
        assert_eq!(select(dir.path(), &paths(&[absolute.to_str().unwrap()])).unwrap().files, [PathBuf::from("a/b")]);
    }

    #[test]
    fn excluded_files_are_left_out_and_counted() {
        let dir = tree(&["bin/a.o", "bin/sub/b.o", "bin/tool"]);
        let wanted = Wanted { exclude: vec!["bin/**/*.o".into(), "nothing".into()], ..paths(&["bin"]) };
        insta::assert_snapshot!(selected(dir.path(), &wanted), @"
        bin
        bin/sub
        bin/tool
        # bin: found 3 matching files and directories
        # bin/**/*.o: excluded 2 files
        ");
    }

    #[test]
    fn untracked_files_are_added() {
        let dir = tree(&["a", "b"]);
        let wanted = Wanted { untracked: Some(vec!["b".into()]), ..paths(&["a"]) };
        assert!(selected(dir.path(), &wanted).ends_with("# untracked: found 1 file"));
        let none = Wanted { untracked: Some(Vec::new()), ..Wanted::default() };
        assert_eq!(selected(dir.path(), &none), "# untracked: no files");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_taken_as_links_and_not_followed_out() {
        let outside = tree(&["secret"]);
        let dir = tree(&["a/file"]);
        std::os::unix::fs::symlink(outside.path(), dir.path().join("a/out")).unwrap();
        assert_eq!(select(dir.path(), &paths(&["a", "a/**/secret"])).unwrap().files.len(), 3);
        assert!(selected(dir.path(), &paths(&["a/out/secret"])).starts_with("# WARNING: a/out/secret: no matching files"));
    }

    #[test]
    fn a_wildcard_that_was_escaped_is_a_letter() {
        let dir = tree(&["a[1]", "a1"]);
        assert_eq!(select(dir.path(), &paths(&["a\\[1\\]"])).unwrap().files, [PathBuf::from("a[1]")]);
    }
}
