//! Where an agent is, as it is typed, and what to do when it is not there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use step_client::connect::{CommandStream, UnixSocket};
use step_client::{AgentClient, CallFailed, Code};
use step_console::exit::{Complaint, Exit, Stop};

/// The socket in a directory that is served.
const SOCKET: &str = "step-runner.sock";

/// The place of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    Socket(PathBuf),
    /// Its standard input and output are the connection.
    Command {
        program: String,
        arguments: Vec<String>,
        shown: String,
    },
}

impl Where {
    /// # Errors
    /// It names no place.
    pub fn read(typed: Option<&str>) -> Result<Self, Complaint> {
        match typed {
            Some(text) => Self::of(text, |path| Path::new(path).exists(), |path| path.is_dir()),
            None => Ok(Self::Socket(default_socket(std::env::var_os("STEP_RUNNER_SOCKET").map(PathBuf::from), &std::env::temp_dir()))),
        }
    }

    fn of(text: &str, exists: impl Fn(&str) -> bool, is_dir: impl Fn(&Path) -> bool) -> Result<Self, Complaint> {
        let hint = "`unix:PATH`, `ssh:user@host`, `docker:CONTAINER` or `exec:COMMAND ...`";
        let wrong = |why: String| Complaint::new(format!("`--connect {text}`: {why}")).with_hint(hint);
        let socket = |path: &str| match Path::new(path) {
            path if is_dir(path) => Self::Socket(path.join(SOCKET)),
            path => Self::Socket(path.to_path_buf()),
        };
        let (scheme, rest) = match text.split_once(':') {
            _ if text.contains('/') && !text.split('/').next().is_some_and(|first| first.contains(':')) => return Ok(socket(text)),
            Some(parts) => parts,
            None if exists(text) => return Ok(socket(text)),
            None => return Err(wrong("it is neither a socket nor a way to one".into())),
        };
        let command = |program: &str, arguments: &[&str]| Self::Command {
            program: program.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            shown: text.to_owned(),
        };
        match (scheme, rest) {
            (_, "") => Err(wrong(format!("nothing stands behind `{scheme}:`"))),
            ("unix", path) => Ok(socket(path.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(path))),
            // What begins with a hyphen would be an option of theirs.
            ("ssh" | "docker", name) if name.starts_with('-') => Err(wrong(format!("`{name}` is no name"))),
            ("ssh", host) => Ok(command("ssh", &["-T", host, "step-runner", "proxy"])),
            ("docker", container) => Ok(command("docker", &["exec", "-i", container, "step-runner", "proxy"])),
            ("exec", line) => match words(line) {
                Ok(words) => match &words[..] {
                    [program, arguments @ ..] => Ok(command(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>())),
                    [] => Err(wrong("there is no command".into())),
                },
                Err(why) => Err(wrong(why.into())),
            },
            _ => Err(wrong(format!("`{scheme}` is no way to an agent"))),
        }
    }

    pub fn shown(&self) -> String {
        match self {
            Self::Socket(path) => path.display().to_string(),
            Self::Command { shown, .. } => shown.clone(),
        }
    }

    /// The same machine, as far as can be known.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// `wait`: for an agent that is not there yet. Needs a runtime.
    pub fn client(&self, wait: Duration) -> AgentClient {
        let client = match self {
            Self::Socket(path) => AgentClient::new(UnixSocket::new(path)),
            Self::Command { program, arguments, .. } => AgentClient::new(CommandStream::new(program, arguments)),
        };
        client.waiting(wait)
    }

    /// A call that failed, for the person: why, and the way out. `jobs`: the ids that are known there, if anybody asked.
    pub fn stop(&self, failed: &CallFailed, jobs: Option<&[String]>) -> Stop {
        let place = self.shown();
        match failed {
            CallFailed::NotConnected { kind, why } => {
                let stop = Stop::new(Exit::Fault, format!("could not reach an agent at `{place}`: {why}"));
                match kind {
                    ErrorKind::NotFound => {
                        stop.with_hint("start one there with `step-runner serve`, or say with `--connect` where there is one")
                    }
                    ErrorKind::ConnectionRefused => {
                        stop.with_hint("the agent that listened there has ended: start `step-runner serve` again, and it finds its jobs")
                    }
                    ErrorKind::PermissionDenied => stop.with_hint(
                        "only the user who started `step-runner serve` may connect: become that user, or serve a socket of your own",
                    ),
                    ErrorKind::InvalidInput => stop.with_hint("the program must be in the PATH"),
                    _ => stop,
                }
            }
            CallFailed::Lost { why } => {
                let stop = Stop::new(Exit::Fault, format!("the connection to the agent at `{place}` was lost: {why}"));
                match self {
                    Self::Command { .. } => {
                        stop.with_hint("what the command complained of stands above; is there a `step-runner serve` where it leads?")
                    }
                    Self::Socket(_) => stop.with_hint("jobs go on without it: try again when the agent is back"),
                }
            }
            CallFailed::Missing { method } => {
                Stop::new(Exit::BadInput, format!("the agent at `{place}` has no `{method}`")).with_hint(match *method {
                    "Cancel" => "it is an older one: `step-runner remote close` ends a job there",
                    _ => "it is GitLab's or an older one of ours: a newer `step-runner serve` can",
                })
            }
            CallFailed::Refused { code, message, .. } => {
                let is_fault = matches!(code, Code::Internal | Code::DataLoss | Code::Unavailable);
                let stop = Stop::new(if is_fault { Exit::Fault } else { Exit::BadInput }, message.clone());
                match jobs {
                    Some([]) if failed.is_unknown_job() => stop.with_hint("the agent has no jobs"),
                    Some(jobs) if failed.is_unknown_job() => stop.with_hint(format!("it has {}", listed(jobs))),
                    _ => stop,
                }
            }
        }
    }
}

/// How many ids a hint names.
const MOST_LISTED: usize = 10;

fn listed(jobs: &[String]) -> String {
    let named: Vec<String> = jobs.iter().take(MOST_LISTED).map(|id| format!("`{id}`")).collect();
    let more = jobs.len().saturating_sub(MOST_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more: see `step-runner remote status`") };
    format!("{}{more}", named.join(", "))
}

fn default_socket(named: Option<PathBuf>, temporary: &Path) -> PathBuf {
    named.filter(|path| !path.as_os_str().is_empty()).unwrap_or_else(|| temporary.join(SOCKET))
}

/// Splits a command line as a shell does: blanks, quotes and backslashes, and nothing else.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut letters) = (Vec::new(), None::<String>, line.chars());
    let mut quote = None;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().push(letters.next().ok_or("nothing stands behind the last backslash")?),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote has no end") } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Where, String> {
        let place = Where::of(text, |path| path == "here.sock", |path| path == Path::new("/run/agent"));
        place.map_err(|complaint| complaint.message)
    }

    fn command(text: &str) -> Vec<String> {
        match of(text).expect("a place") {
            Where::Command { program, arguments, .. } => std::iter::once(program).chain(arguments).collect(),
            Where::Socket(path) => panic!("a socket: {}", path.display()),
        }
    }

    #[test]
    fn a_path_is_a_socket_and_a_directory_holds_one() {
        let socket = |path: &str| Ok(Where::Socket(path.into()));
        assert_eq!(of("/run/a.sock"), socket("/run/a.sock"));
        assert_eq!(of("./a:b.sock"), socket("./a:b.sock"));
        assert_eq!(of("here.sock"), socket("here.sock"));
        assert_eq!(of("unix:a.sock"), socket("a.sock"));
        assert_eq!(of("unix:///run/a.sock"), socket("/run/a.sock"));
        assert_eq!(of("/run/agent"), socket("/run/agent/step-runner.sock"));
        assert_eq!(default_socket(None, Path::new("/tmp")), PathBuf::from("/tmp/step-runner.sock"));
        assert_eq!(default_socket(Some("/run/s".into()), Path::new("/tmp")), PathBuf::from("/run/s"));
    }

    #[test]
    fn a_host_and_a_container_are_reached_by_their_programs() {
        assert_eq!(command("ssh:me@host"), ["ssh", "-T", "me@host", "step-runner", "proxy"]);
        assert_eq!(command("docker:build-1"), ["docker", "exec", "-i", "build-1", "step-runner", "proxy"]);
        assert_eq!(command("exec:ssh -p 22 'a b' \"c\\\"d\" e\\ f ''"), ["ssh", "-p", "22", "a b", "c\"d", "e f", ""]);
    }

    #[test]
    fn what_names_no_place_is_said() {
        let told = |text: &str| of(text).expect_err("no place");
        insta::assert_snapshot!(told("nowhere"), @"`--connect nowhere`: it is neither a socket nor a way to one");
        insta::assert_snapshot!(told("http://host"), @"`--connect http://host`: `http` is no way to an agent");
        insta::assert_snapshot!(told("ssh:"), @"`--connect ssh:`: nothing stands behind `ssh:`");
        insta::assert_snapshot!(told("ssh:-oProxyCommand=x"), @"`--connect ssh:-oProxyCommand=x`: `-oProxyCommand=x` is no name");
        insta::assert_snapshot!(told("exec:'a"), @"`--connect exec:'a`: a quote has no end");
        insta::assert_snapshot!(told("exec: "), @"`--connect exec: `: there is no command");
    }

    #[test]
    fn an_unknown_job_is_answered_with_the_known_ones() {
        let place = Where::Socket("/s".into());
        let unknown = CallFailed::Refused { code: Code::Unknown, reason: None, message: "no job with id \"x\"".into() };
        let hint = |jobs: &[&str]| {
            let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
            place.stop(&unknown, Some(&jobs)).problems[0].hints.join("; ")
        };
        assert_eq!(hint(&[]), "the agent has no jobs");
        assert_eq!(hint(&["a", "b"]), "it has `a`, `b`");
        assert!(hint(&["a"; 12]).ends_with(" and 2 more: see `step-runner remote status`"));
    }
}
