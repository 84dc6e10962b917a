//! A directory of its own for each test, and the program called in it.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A local exec step with inputs of four types, an output, and an export (the one of the case tables).
pub const GREET: &str = r#"spec:
  inputs:
    name: {type: string, default: ann}
    age: {type: number, default: 1}
    hungry: {type: boolean, default: false}
    likes: {type: struct, default: {color: red}}
  outputs:
    name: {type: string}
---
exec:
  command:
    - sh
    - -c
    - |
      printf '%s\n' "$1 is $2 (hungry: $3) and likes $4"
      printf '{"name":"name","value":"%s"}\n' "$1" >"${{ output_file }}"
      printf '{"name":"NAME","value":"%s"}\n' "$1" >"${{ export_file }}"
    - greet
    - ${{ inputs.name }}
    - ${{ inputs.age }}
    - ${{ inputs.hungry }}
    - ${{ inputs.likes }}
"#;

/// Where a test works.
#[derive(Debug)]
pub struct Bench(tempfile::TempDir);

impl Bench {
    pub fn new() -> Self {
        let bench = Self(tempfile::tempdir().expect("a directory can be made"));
        std::fs::create_dir(bench.path("tmp")).expect("a directory can be made");
        bench
    }

    /// With [`GREET`] as `steps/greet`.
    pub fn with_greet() -> Self {
        let bench = Self::new();
        bench.file("steps/greet/step.yml", GREET);
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("directories can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    /// A sequence as `job/step.yml`.
    pub fn job(&self, definition: &str) {
        self.file("job/step.yml", format!("{{}}\n---\n{definition}"));
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{name}: {fault}\n{text}"))
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.0.path()).env_clear().env("TMPDIR", self.path("tmp"));
        for kept in ["PATH", "HOME", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.stdin(std::process::Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        Finished::of(&mut self.command(arguments))
    }
}

/// Where cargo put the program. It says so at run time too, whatever stood between it and the compiler.
pub fn program() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_step-runner").map(PathBuf::from).expect("cargo names the programs of this package")
}

/// What a call has left.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let finished = Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) };
        assert!(!finished.stderr.contains("panicked at"), "{finished:#?}");
        finished
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text:?} is not said\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "{text:?} is not printed\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }
}
