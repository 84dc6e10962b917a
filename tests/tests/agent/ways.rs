//! The ways to an agent: a socket, a proxy before it, standard streams; and how it comes to where it serves.

use super::served::{Served, script_job};
use ci_proto::step_runner as wire;
use ci_proto::step_runner::step_runner_client::StepRunnerClient;
use ci_tests::program;
use ci_tests::workshop::{Ends, Workshop};
use hyper_util::rt::TokioIo;
use rustix::process::Signal;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::{Channel, Endpoint};

/// A program whose standard input and output are one stream to a caller.
struct Streams {
    runtime: tokio::runtime::Runtime,
    child: Child,
    /// `None`: it has said goodbye.
    client: Option<StepRunnerClient<Channel>>,
}

/// A stream that ends only when its last handle is closed.
struct Unended(tokio::net::UnixStream);

impl AsyncRead for Unended {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Unended {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Streams {
    fn to(command: Command) -> Self {
        Self::to_and_beside(command).0
    }

    /// Also a second handle on our end of the stream.
    fn to_and_beside(mut command: Command) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let beside = ours.try_clone().unwrap();
        let output = theirs.try_clone().unwrap();
        let child = command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(output)).spawn().unwrap();
        drop(command);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = Some(ours);
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = runtime.block_on(endpoint.connect_with_connector(tower::service_fn(move |_| {
            let stream = ours.take().ok_or_else(|| std::io::Error::other("there is one stream"));
            async move { stream.and_then(tokio::net::UnixStream::from_std).map(|stream| TokioIo::new(Unended(stream))) }
        })));
        (Self { runtime, child, client: Some(StepRunnerClient::new(channel.unwrap())) }, beside)
    }

    /// Ends the connection in the way of HTTP/2: the last word is a GOAWAY.
    fn say_goodbye(&mut self) {
        self.client = None;
        while self.runtime.metrics().num_alive_tasks() > 0 {
            self.runtime.block_on(tokio::task::yield_now());
        }
    }

    fn run(&mut self, request: wire::RunRequest) {
        self.runtime.block_on(self.client.as_mut().unwrap().run(request)).unwrap();
    }

    fn log_until(&mut self, id: &str, text: &str) -> String {
        self.runtime.block_on(async {
            let follow = wire::FollowLogsRequest { id: id.into(), offset: 0 };
            let mut stream = self.client.as_mut().unwrap().follow_logs(follow).await.unwrap().into_inner();
            let mut log = String::new();
            while !log.contains(text) {
                let Some(piece) = stream.message().await.unwrap() else { break };
                log.push_str(&String::from_utf8_lossy(&piece.data));
            }
            log
        })
    }
}

fn program(arguments: &[&str], workshop: &Workshop) -> Command {
    let mut command = Command::new(program::path("STEP_RUNNER"));
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", workshop.path("tmp"));
    command.current_dir(workshop.dir()).stderr(Stdio::null());
    command
}

#[test]
fn a_whole_session_goes_through_a_proxy() {
    let served = Served::raw();
    let mut streams = Streams::to(program(&["proxy"], &served.workshop));
    streams.run(script_job("1", "seq 10000; echo the end"));
    assert!(streams.log_until("1", "the end\n").contains("\n9999\n10000\nthe end\n"));
    drop(streams.client);
    drop(streams.runtime);
    assert!(streams.child.wait().unwrap().success());
}

#[test]
fn a_proxy_delivers_what_comes_after_the_end_of_its_input() {
    let workshop = Workshop::new();
    let socket = workshop.path("tmp/step-runner.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        std::io::Read::read_to_end(&mut caller, &mut got).unwrap();
        std::io::Write::write_all(&mut caller, &[got.as_slice(), &vec![b'x'; 1 << 20]].concat()).unwrap();
    });
    let finished = workshop.step_runner(&["proxy"]).input("ask").finish().exits(0);
    assert_eq!(finished.stdout.len(), 3 + (1 << 20));
    assert!(finished.stdout.starts_with(b"askx"));
    answering.join().unwrap();
}

#[test]
fn a_proxy_without_an_agent_says_so() {
    Workshop::new().step_runner(&["proxy"]).ends(70).says("could not reach an agent on").says(" hint: ");
}

#[test]
fn the_one_caller_of_standard_streams_takes_the_jobs_with_it() {
    let workshop = Workshop::new();
    let mut streams = Streams::to(program(&["serve", "--stdio", "--log", "raw"], &workshop));
    streams.run(script_job("1", "sleep 1000 & echo $! >pid; echo ready; wait"));
    assert!(streams.log_until("1", "ready").ends_with("ready\n"));
    let pid = workshop.read("pid");
    drop(streams.client);
    drop(streams.runtime);
    assert!(streams.child.wait().unwrap().success());
    let is_alive = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(!is_alive, "process {pid} lives on");
}

/// A container that is attached keeps its streams open for as long as its client likes.
#[test]
fn the_one_caller_has_left_when_it_says_goodbye_although_its_stream_stays_open() {
    let workshop = Workshop::new();
    let (mut streams, stays_open) = Streams::to_and_beside(program(&["serve", "--stdio", "--log", "raw"], &workshop));
    streams.run(script_job("1", "echo ready"));
    streams.log_until("1", "ready");
    streams.say_goodbye();
    assert!(streams.child.wait().unwrap().success());
    drop(stays_open);
}

#[test]
fn several_may_serve_in_one_directory_when_their_sockets_are_named() {
    let workshop = Workshop::new();
    let mut first = workshop.step_runner(&["steps", "serve", "--socket", "a.sock"]).start();
    first.wait_for("step-runner is listening on socket a.sock");
    let mut second = workshop.step_runner(&["steps", "serve", "--socket", "b.sock"]).start();
    second.wait_for("step-runner is listening on socket b.sock");
    first.signal(Signal::TERM);
    second.signal(Signal::TERM);
    first.finish().exits(0);
    second.finish().exits(0);
}

#[test]
fn a_front_ends_with_the_command_beside_it() {
    let workshop = Workshop::new();
    let script = "read line; echo \"$line on $STEP_RUNNER_SOCKET\"; [ -S \"$STEP_RUNNER_SOCKET\" ] && exit 7";
    let finished = workshop.step_runner(&["steps", "serve", "--socket", "s.sock", "sh", "-c", script]).input("works\n").finish();
    let finished = finished.exits(7).says("is listening on socket s.sock").prints("works on ");
    assert!(finished.stdout().ends_with("s.sock\n"), "{finished}");
    assert!(!workshop.path("s.sock").exists());
}

#[test]
fn a_command_without_input_does_not_run() {
    let workshop = Workshop::new();
    let finished = workshop.step_runner(&["steps", "serve", "--socket", "s.sock", "sh", "-c", "echo ran"]).finish().exits(0);
    assert_eq!(finished.stdout(), "");
}

#[test]
fn cli_13_the_directory_of_the_socket_has_to_be_there() {
    let workshop = Workshop::new();
    workshop.step_runner(&["serve", "nowhere"]).ends(3).says("invalid socket dir nowhere");
    workshop.step_runner(&["serve", ""]).ends(3).says("invalid empty socket dir");
    let served = Served::raw();
    assert!(served.socket().ends_with("step-runner.sock") && served.socket().exists());
}

#[test]
fn cli_16_what_is_in_the_way_of_the_program_is_named() {
    let workshop = Workshop::new();
    workshop.file("file", "");
    workshop.step_runner(&["bootstrap", "file"]).ends(3).says("mkdir file: not a directory");
    workshop.file("taken/step-runner/x", "");
    workshop.step_runner(&["bootstrap", "taken"]).ends(3).says("open taken/step-runner: is a directory");
    workshop.step_runner(&["bootstrap", "new/place"]).ends(0);
    program::Invocation::of(&workshop.path("new/place/step-runner"), ["--version"]).finish().exits(0).prints("step-runner ");
    workshop.step_runner(&["steps", "bootstrap", "helper"]).ends(0);
    assert!(workshop.path("helper").is_file());
}
