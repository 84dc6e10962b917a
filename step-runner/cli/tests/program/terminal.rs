//! On a terminal: a status line that leaves nothing behind, a question without an echo, a shell where a step failed.

use crate::bench::{Bench, program};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The longest that anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    /// `setsid --ctty` makes the terminal the controlling one, so that `/dev/tty` is it.
    fn start(bench: &Bench, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("a terminal");
        unlockpt(&master).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let open = || Stdio::from(File::options().read(true).write(true).open(&name).expect("the other end"));
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program()).args(arguments).current_dir(bench.path("."));
        command.env_clear().env("TMPDIR", bench.path("tmp")).env("TERM", "xterm").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(env.iter().copied());
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().expect("setsid starts");
        drop(command);
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().expect("a descriptor");
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen, shown: String::new() }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !self.shown.contains(text) {
            match self.screen.recv_timeout(LIMIT.saturating_sub(start.elapsed())) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} was never shown:\n{}", self.shown),
            }
        }
    }

    fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("somebody reads");
    }

    /// The exit code and all that was shown.
    fn finish(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("it ends");
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_millis(200)) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.code(), self.shown)
    }
}

/// What stays on the screen when every carriage return and every erased line is obeyed.
fn on_screen(shown: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = shown;
    while let Some(letter) = rest.chars().next() {
        let line = lines.last_mut().expect("there is a line");
        if let Some(after) = rest.strip_prefix("\r\x1b[K") {
            line.clear();
            rest = after;
            continue;
        }
        match letter {
            '\n' => lines.push(String::new()),
            '\r' => {}
            letter => line.push(letter),
        }
        rest = &rest[letter.len_utf8()..];
    }
    lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
}

#[test]
fn the_status_line_comes_and_goes() {
    let bench = Bench::new();
    bench.job("run:\n  - {name: slow, script: 'echo begins; sleep 2; echo ends'}\n");
    let mut terminal = Terminal::start(&bench, &["run", "./job"], &[]);
    terminal.wait_for("~ slow");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(0), "{shown}");
    let lines = on_screen(&shown);
    assert!(lines.iter().all(|line| !line.contains('~')), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "begins") && lines.iter().any(|line| line == "ends"), "{lines:#?}");
    assert!(shown.contains("\x1b[32mok\x1b[0m"), "colour is missing: {shown:?}");
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let bench = Bench::new();
    bench.job("run:\n  - {name: slow, script: 'sleep 1'}\n");
    let (code, shown) = Terminal::start(&bench, &["run", "./job"], &[("TERM", "dumb")]).finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn a_value_is_asked_for_without_an_echo() {
    let bench = Bench::new();
    let request = serde_json::json!({
        "id": "7", "steps": "{}\n---\nrun:\n  - {name: a, script: \"echo told ${{ vars.KEY }} and $(printf %s '${{ vars.KEY }}' | wc -c)\"}\n",
        "job": {"variables": [{"key": "KEY", "value": "[MASKED KEY]", "masked": true}]},
    });
    bench.file("job.json", request.to_string());
    let mut terminal = Terminal::start(&bench, &["run", "job.json"], &[]);
    terminal.wait_for("value of KEY: ");
    terminal.type_in("open sesame\n");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("told [MASKED] and 11") && !shown.contains("sesame"), "{shown}");
}

#[test]
fn ctrl_c_at_a_question_ends_the_run() {
    let bench = Bench::new();
    let request = serde_json::json!({"id": "7", "steps": "{}\n---\nrun: [{name: a, script: x}]\n", "job": {"variables": [{"key": "KEY", "value": "[MASKED KEY]"}]}});
    bench.file("job.json", request.to_string());
    let mut terminal = Terminal::start(&bench, &["run", "job.json"], &[]);
    terminal.wait_for("value of KEY: ");
    terminal.type_in("\x03");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(130), "{shown}");
}

#[test]
fn a_shell_has_the_environment_and_the_directory_of_the_failed_step() {
    let bench = Bench::new();
    bench.file("inner/step.yml", "{}\n---\nenv: {SPECIAL: value of the step}\nexec: {command: [sh, -c, exit 5], work_dir: /usr}\n");
    bench.job("run: [{name: breaks, step: ../inner}]\n");
    let mut terminal = Terminal::start(&bench, &["run", "./job", "--shell"], &[("SHELL", "/bin/sh"), ("PS1", "prompt> ")]);
    terminal.wait_for("prompt> ");
    terminal.type_in("echo \"[$PWD] [$SPECIAL]\"\n");
    terminal.wait_for("[/usr] [value of the step]");
    terminal.type_in("exit 0\n");
    let (code, shown) = terminal.finish();
    assert_eq!(code, Some(1), "{shown}");
}

#[test]
fn without_a_terminal_a_shell_is_only_spoken_of() {
    let bench = Bench::new();
    bench.job("exec: {command: [sh, -c, exit 5]}\n");
    bench.run(&["run", "./job", "--shell"]).exits(1).says("there is no terminal for a shell");
}
