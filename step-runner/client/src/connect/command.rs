//! A command whose standard input and output are the stream: `ssh host step-runner proxy`, `docker exec -i c step-runner proxy`.

use super::{ByteStream, Connecting, Connector};
use std::ffi::OsString;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A command that is started for each connection. Its standard error is ours: what it complains of reaches the person.
#[derive(Debug, Clone)]
pub struct CommandStream {
    program: OsString,
    arguments: Vec<OsString>,
}

impl CommandStream {
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    fn start(&self) -> io::Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // The interrupt of a terminal is meant for the job: the connection must outlive it, or nobody could cancel.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|fault| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("could not start `{}`: {fault}", self.program.to_string_lossy()))
        })?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (input, output) = ends.ok_or_else(|| io::Error::other("the command has no standard input or output"))?;
        Ok(Running { input: Some(input), output, _child: child })
    }
}

impl Connector for CommandStream {
    fn connect(&self) -> Connecting {
        let running = self.start();
        Box::pin(async { running.map(|running| Box::new(running) as Box<dyn ByteStream>) })
    }

    fn place(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments).map(|word| word.to_string_lossy());
        format!("exec:{}", words.collect::<Vec<_>>().join(" "))
    }
}

/// The two ends of a command that runs. Dropped, it is killed: nobody could talk to it any more.
struct Running {
    /// `None`: closed, as its reader was told.
    input: Option<ChildStdin>,
    output: ChildStdout,
    _child: Child,
}

impl AsyncRead for Running {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl AsyncWrite for Running {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.input {
            Some(input) => Pin::new(input).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.input {
            Some(input) => Pin::new(input).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(input) = &mut self.input {
            ready!(Pin::new(input).poll_shutdown(context))?;
            self.input = None;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn both_ends_of_a_command_are_a_stream() {
        let mut stream = CommandStream::new("cat", [""; 0]).connect().await.expect("cat runs");
        stream.write_all(b"there and back").await.expect("it reads");
        stream.shutdown().await.expect("its input ends");
        let mut back = String::new();
        stream.read_to_string(&mut back).await.expect("it writes");
        assert_eq!(back, "there and back");
    }

    #[tokio::test]
    async fn a_command_that_cannot_be_started_is_not_waited_for() {
        let fault = CommandStream::new("no-such-program", [""; 0]).connect().await.err().expect("no program");
        assert_eq!(fault.kind(), io::ErrorKind::InvalidInput);
        insta::assert_snapshot!(fault, @"could not start `no-such-program`: No such file or directory (os error 2)");
    }
}
