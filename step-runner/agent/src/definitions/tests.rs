use super::*;
use std::process::Command;

fn reference(path: &[&str], file: Option<&str>) -> LocalReference {
    LocalReference { path: path.iter().map(|part| (*part).into()).collect(), file: file.map(Into::into) }
}

/// A repository `repo` with a step in `repo/a`, and one beside it in `out`.
struct World {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for path in ["repo/.git", "repo/a", "repo/b", "out"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::fs::write(root.join("repo/a/step.yml"), "a").unwrap();
        std::fs::write(root.join("out/step.yml"), "out").unwrap();
        Self { directory, root }
    }

    fn load(&self, from: &str, reference: &LocalReference) -> Result<LoadedDefinition, LoadFault> {
        let path = |part: &str| self.root.join(part).to_str().unwrap().to_owned();
        Loader::new(&path("repo"), false).load(&path(from), reference)
    }

    /// The text of the fault, with the directory of the test as `/T`.
    fn fault(&self, from: &str, reference: &LocalReference) -> (LoadFaultKind, String) {
        let fault = self.load(from, reference).unwrap_err();
        (fault.kind, fault.message.replace(self.directory.path().canonicalize().unwrap().to_str().unwrap(), "/T"))
    }
}

#[test]
fn a_directory_is_read_by_the_name_of_its_file() {
    let world = World::new();
    let found = world.load("repo", &reference(&[".", "a"], None)).unwrap();
    assert_eq!((&*found.text, &*found.file), ("a", "step.yml"));
    assert_eq!(Path::new(&*found.dir), world.root.join("repo/a"));
    assert_eq!(found.digest, Digest::of(b"a"));
    std::fs::write(world.root.join("repo/a/func.yml"), "f").unwrap();
    assert_eq!(&*world.load("repo", &reference(&[".", "a"], None)).unwrap().file, "func.yml");
    assert_eq!(&*world.load("repo/b", &reference(&["..", "a"], Some("step.yml"))).unwrap().text, "a");
}

#[test]
fn what_is_missing_is_said_in_the_words_of_the_original() {
    let world = World::new();
    let fault = world.fault("repo", &reference(&[".", "nope"], None));
    let text = "loading file \"/T/repo/nope/step.yml\": reading file: open /T/repo/nope/step.yml: no such file or directory";
    assert_eq!(fault, (LoadFaultKind::NotFound, text.to_owned()));
    let fault = world.fault("repo", &reference(&[".", "a"], Some("other.yml")));
    assert_eq!(fault.1, text.replace("nope/step.yml", "a/other.yml"));
}

#[test]
fn a_reference_that_leaves_the_repository_is_refused_unless_it_is_absolute() {
    let world = World::new();
    let fault = world.fault("repo/a", &reference(&["..", "..", "out"], None));
    let text = "loading file \"/T/out/step.yml\": it is outside of the repository \"/T/repo\"; write an absolute path if that is meant";
    assert_eq!(fault, (LoadFaultKind::Refused, text.to_owned()));
    let parts: Vec<_> = ["/"].into_iter().chain(world.root.to_str().unwrap().split('/').filter(|part| !part.is_empty())).collect();
    let absolute = reference(&[&parts[..], &["out"]].concat(), None);
    assert_eq!(&*world.load("repo", &absolute).unwrap().text, "out");
    std::fs::create_dir(world.root.join("out/sub")).unwrap();
    std::fs::write(world.root.join("out/sub/step.yml"), "sub").unwrap();
    assert_eq!(&*world.load("out", &reference(&[".", "sub"], None)).unwrap().text, "sub", "its own directory is a document's too");
}

#[cfg(unix)]
#[test]
fn a_link_that_leaves_the_repository_is_refused() {
    let world = World::new();
    std::os::unix::fs::symlink(world.root.join("out"), world.root.join("repo/link")).unwrap();
    let fault = world.fault("repo", &reference(&[".", "link"], None));
    let text = "loading file \"/T/repo/link/step.yml\": it leads to \"/T/out/step.yml\", outside of the repository \"/T/repo\"; \
        write an absolute path if that is meant";
    assert_eq!(fault, (LoadFaultKind::Refused, text.to_owned()));
    std::os::unix::fs::symlink(world.root.join("out/step.yml"), world.root.join("repo/b/step.yml")).unwrap();
    assert_eq!(world.fault("repo", &reference(&[".", "b"], None)).0, LoadFaultKind::Refused);
    std::os::unix::fs::symlink("a", world.root.join("repo/inside")).unwrap();
    let found = world.load("repo", &reference(&[".", "inside"], None)).unwrap();
    assert_eq!(Path::new(&*found.dir), world.root.join("repo/a"), "without symbolic links");
}

#[cfg(unix)]
#[test]
fn what_is_no_text_file_is_refused() {
    let world = World::new();
    let refused = |name: &str| world.fault("repo", &reference(&["."], Some(name))).1.replace("loading file \"/T/repo/", "");
    std::fs::create_dir(world.root.join("repo/d.yml")).unwrap();
    assert_eq!(refused("d.yml"), "d.yml\": it is a directory, not a file");
    assert!(Command::new("mkfifo").arg(world.root.join("repo/f.yml")).status().unwrap().success());
    assert_eq!(refused("f.yml"), "f.yml\": it is not a regular file");
    std::fs::write(world.root.join("repo/b.yml"), b"ab\n\xff").unwrap();
    assert_eq!(refused("b.yml"), "b.yml\": it is not UTF-8: byte 3, in line 2");
    std::fs::File::create(world.root.join("repo/l.yml")).unwrap().set_len(100_000_000).unwrap();
    assert_eq!(refused("l.yml"), "l.yml\": it has 100000000 bytes, the limit for a definition is 4194304 (4 MiB)");
}

#[test]
fn the_commit_of_a_definition_is_looked_up_when_it_is_asked_for() {
    let world = World::new();
    let repository = world.root.join("repo");
    std::fs::remove_dir(repository.join(".git")).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&repository).args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]);
        git.args(arguments).output().unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    let commit = String::from_utf8(git(&["rev-parse", "HEAD"]).stdout).unwrap();
    let load = || {
        let mut loader = Loader::new(repository.to_str().unwrap(), true);
        loader.load(repository.to_str().unwrap(), &reference(&[".", "a"], None)).unwrap().provenance.unwrap()
    };
    assert_eq!((&*load().commit, load().dirty), (commit.trim(), false));
    std::fs::write(repository.join("b/other"), "").unwrap();
    assert!(!load().dirty, "another directory is none of its business");
    std::fs::write(repository.join("a/new"), "").unwrap();
    assert!(load().dirty);
}
