//! The program that is put into containers: it brings all that it needs, and runs where there is nothing.

#![cfg(target_os = "linux")]

use ci_tests::program::{self, Invocation};
use ci_tests::workshop::{Ends as _, Workshop, run_request};
use ci_tests::{repository, skipped};
use std::path::Path;
use std::process::Command;

#[test]
fn the_agent_needs_no_loader_and_no_library() {
    let bytes = std::fs::read(program::path("STEP_AGENT")).expect("a program can be read");
    let segments = Segment::all_of(&bytes);
    assert!(!segments.is_empty(), "it is no ELF file of 64 bits");
    assert!(segments.iter().all(|segment| segment.kind != INTERPRETER), "it names a loader: link it with crt-static");
    let dynamic = segments.iter().filter(|segment| segment.kind == DYNAMIC);
    let needed = dynamic.flat_map(|segment| segment.content.as_chunks::<16>().0).filter(|entry| entry[..8] == NEEDED.to_le_bytes()).count();
    assert_eq!(needed, 0, "it needs libraries");
}

const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const NEEDED: u64 = 1;

/// A part of an ELF file that is loaded or read before a program begins (System V ABI, chapter 5).
struct Segment<'a> {
    kind: u32,
    content: &'a [u8],
}

impl<'a> Segment<'a> {
    fn all_of(file: &'a [u8]) -> Vec<Self> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return Vec::new();
        }
        let number = |at: usize, size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&file[at..at + size]);
            usize::try_from(u64::from_le_bytes(bytes)).expect("the file fits into memory")
        };
        let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        (0..count)
            .map(|index| {
                let header = table + index * size;
                let (offset, length) = (number(header + 8, 8), number(header + 32, 8));
                let kind = u32::try_from(number(header, 4)).expect("four bytes");
                Self { kind, content: &file[offset..offset + length] }
            })
            .collect()
    }
}

#[test]
fn the_agent_runs_where_there_is_nothing_else() {
    let workshop = Workshop::new();
    let Some(root) = EmptyRoot::with(&workshop, &program::path("STEP_AGENT")) else { return };
    root.run(&["--version"]).ends(0).prints("step-agent ");
    root.run(&["--help"]).ends(0).prints("Usage");
    root.run(&["srve"]).ends(2).says("there is no command `srve`");
}

#[test]
fn the_agent_runs_jobs_where_there_is_nothing_else() {
    let workshop = Workshop::new();
    let Some(root) = EmptyRoot::with(&workshop, &program::path("STEP_AGENT")) else { return };
    workshop.file("job.json", run_request("run:\n  - {name: a, step: /step}\n", serde_json::json!({})));
    workshop.file("root/step/step.yml", "{}\n---\nexec: {command: [/program, --version]}\n");
    let agent = format!("exec:sh '{}' serve --stdio /tmp", root.enter.display());
    let finished = workshop.step_runner(&["remote", "run", "job.json", "--work-dir", "/", "--connect", &agent]).ends(0);
    assert!(finished.stdout().contains("step-agent "), "{finished}");
}

/// A program with glibc inside loads what `nsswitch.conf` names, unless it is told otherwise first. Here that names a library that is not
/// there and says to stop at it, so a program that obeys does not find the name.
#[test]
fn a_static_program_finds_names_without_the_libraries_of_its_container() {
    let workshop = Workshop::new();
    let Some(program) = probe(&workshop) else { return };
    let Some(root) = EmptyRoot::with(&workshop, &program) else { return };
    workshop.file("root/etc/nsswitch.conf", "hosts: strange [!SUCCESS=return] files\n");
    workshop.file("root/etc/hosts", "192.0.2.7 registry.example\n");
    root.run(&["find", "registry.example"]).ends(0).prints("192.0.2.7");
    root.run(&["find", "nowhere.invalid"]).ends(1);
}

/// With fork the page tables of a large parent are copied for each program that it starts.
#[test]
fn a_static_program_starts_others_without_fork() {
    let workshop = Workshop::new();
    let Some(program) = probe(&workshop) else { return };
    Invocation::of(&program, ["start", "/bin/true"]).ends(0).prints("spawned");
}

/// The functions of the agent that make a static program sound, in a small program of their own. It is compiled here, since a whole program
/// that is linked statically takes minutes.
fn probe(workshop: &Workshop) -> Option<std::path::PathBuf> {
    let source = repository::root().join("tests/fixtures/static_probe.rs");
    let program = workshop.path("probe");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "-C", "target-feature=+crt-static", "-o"])
        .arg(&program)
        .arg(source)
        .output()
        .expect("rustc is there where cargo is");
    if compiled.status.success() {
        return Some(program);
    }
    let why = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(!why.contains("error[E"), "{why}");
    skipped::because("glibc cannot be linked statically here: libc6-dev brings libc.a");
    None
}

/// A directory with one program as the root of the file system, and what every container has: `/proc` and `/dev/null`.
struct EmptyRoot {
    /// A script that enters it and runs the program there.
    enter: std::path::PathBuf,
}

impl EmptyRoot {
    /// `None`, and skipped: this machine lets us change the root neither as root nor in a user namespace.
    fn with(workshop: &Workshop, program: &Path) -> Option<Self> {
        for directory in ["etc", "proc", "dev", "tmp"] {
            std::fs::create_dir_all(workshop.path("root").join(directory)).expect("directories can be made");
        }
        workshop.file("root/dev/null", "");
        std::fs::copy(program, workshop.path("root/program")).expect("a program can be copied");
        let user = if rustix::process::geteuid().is_root() { "" } else { "--map-root-user" };
        let inside = r#"mount --rbind /proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" /program "$@""#;
        let root = workshop.path("root");
        let script = format!("PATH=$PATH:/usr/sbin:/sbin exec unshare --mount {user} sh -c '{inside}' '{}' \"$@\"\n", root.display());
        let root = Self { enter: workshop.file("enter", script) };
        let entered = root.run(&["--version"]).finish();
        let refused = ["unshare:", "mount:", "chroot:"].iter().any(|tool| entered.stderr().contains(tool));
        if refused {
            skipped::because("the root of a process cannot be changed here: it takes root, or user namespaces");
        }
        (!refused).then_some(root)
    }

    fn run(&self, arguments: &[&str]) -> Invocation {
        Invocation::of(Path::new("/bin/sh"), [self.enter.as_os_str()].into_iter().chain(arguments.iter().map(AsRef::as_ref)))
    }
}

#[test]
fn both_programs_say_first_where_names_are_looked_up() {
    for path in ["step-runner/cli/src/main.rs", "step-runner/cli/src/step_agent/main.rs"] {
        let text = repository::read(path);
        let begin = text.find("fn main() -> ExitCode {\n").unwrap_or_else(|| panic!("{path} has no main"));
        let first = text[begin..].lines().nth(1).unwrap_or_default().trim();
        assert_eq!(first, "step_agent::static_program::pin_name_services();", "the first statement of {path}");
    }
}

#[test]
fn the_guide_names_every_system_that_a_bundle_is_made_for() {
    let script = repository::root().join("bundle");
    let listed = Invocation::of(&script, ["--list"]).ends(0).stdout();
    let guide = repository::read("docs/guide/bundle.md");
    let systems: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(systems.contains(&"linux-amd64"), "{listed}");
    let missing: Vec<&&str> = systems.iter().filter(|system| !guide.contains(&format!("| `{system}` |"))).collect();
    assert!(missing.is_empty(), "docs/guide/bundle.md does not name {missing:?}");
    Invocation::of(&script, ["plan9-mips"]).ends(1).says("there is no system plan9-mips");
}
