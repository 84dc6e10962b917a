//! An agent that serves, and a caller that knows nothing but the published contract.

use ci_proto::step_runner as wire;
use ci_proto::step_runner::step_runner_client::StepRunnerClient;
use ci_tests::program::{Invocation, Started};
use ci_tests::workshop::Workshop;
use hyper_util::rt::TokioIo;
use rustix::process::Signal;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// A caller waits no longer than this for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// `step-runner serve` in a workshop of its own. Its jobs end with it.
pub struct Served {
    pub workshop: Workshop,
    front: Option<Started>,
    runtime: Runtime,
    client: OnceCell<StepRunnerClient<Channel>>,
}

/// A log as it comes.
pub struct Following<'a> {
    runtime: &'a Runtime,
    stream: Streaming<wire::FollowLogsResponse>,
}

/// A caller of a later release: its requests hold what this one does not know.
pub struct RawCaller(tonic::client::Grpc<Channel>);

impl RawCaller {
    /// Sends an encoded `RunRequest`.
    pub async fn run(&mut self, bytes: Vec<u8>) -> Result<(), Status> {
        self.0.ready().await.map_err(|fault| Status::unknown(fault.to_string()))?;
        let path = tonic::codegen::http::uri::PathAndQuery::from_static("/proto.StepRunner/Run");
        let codec = tonic_prost::ProstCodec::<Encoded, wire::RunResponse>::default();
        self.0.unary(tonic::Request::new(Encoded(bytes)), path, codec).await.map(drop)
    }
}

/// A message that is encoded already.
#[derive(Debug, Default)]
struct Encoded(Vec<u8>);

impl prost::Message for Encoded {
    fn encode_raw(&self, buffer: &mut impl prost::bytes::BufMut) {
        buffer.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        _tag: u32,
        _wire_type: prost::encoding::WireType,
        _buffer: &mut impl prost::bytes::Buf,
        _context: prost::encoding::DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Served {
    /// Raw logs and the texts of v0.12, as most cases want them.
    pub fn raw() -> Self {
        Self::with(&["--log", "raw", "--level", "0.12"])
    }

    pub fn with(arguments: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut served = Self { workshop: Workshop::new(), front: None, runtime, client: OnceCell::new() };
        std::fs::create_dir_all(served.workshop.path("work")).unwrap();
        served.start(arguments);
        served
    }

    /// Starts a front, and calls it from now on.
    pub fn start(&mut self, arguments: &[&str]) {
        let mut front = self.invocation(arguments).start();
        front.wait_for("is listening on socket");
        self.front = Some(front);
        self.client = OnceCell::new();
    }

    /// One that nobody has started yet.
    pub fn invocation(&self, arguments: &[&str]) -> Invocation {
        let words: Vec<&str> = ["serve"].into_iter().chain(arguments.iter().copied()).collect();
        let invocation = self.workshop.step_runner(&words).limit(Duration::from_secs(300));
        invocation.dir(self.workshop.path("work"))
    }

    pub fn front(&mut self) -> &mut Started {
        self.front.as_mut().expect("a front")
    }

    /// The number of the front's process.
    pub fn pid(&self) -> u32 {
        self.front.as_ref().expect("a front").pid
    }

    /// The front, to be waited for.
    pub fn take_front(&mut self) -> Started {
        self.front.take().expect("a front")
    }

    pub fn socket(&self) -> PathBuf {
        self.workshop.path("tmp/step-runner.sock")
    }

    /// The directory of a job.
    pub fn directory(&self, id: &str) -> PathBuf {
        self.workshop.path(&format!("tmp/step-runner-output-{id}"))
    }

    /// A connection of its own.
    pub fn connect(&self) -> StepRunnerClient<Channel> {
        StepRunnerClient::new(self.channel()).max_decoding_message_size(80 << 20).max_encoding_message_size(80 << 20)
    }

    /// One that sends requests as they are.
    pub fn connect_raw(&self) -> RawCaller {
        RawCaller(tonic::client::Grpc::new(self.channel()))
    }

    pub fn channel(&self) -> Channel {
        let socket = self.socket();
        // Room for five hundred logs that nobody has read yet.
        let endpoint = Endpoint::from_static("http://localhost").initial_connection_window_size(64 << 20);
        let channel = endpoint.connect_with_connector(tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        }));
        self.wait(channel).unwrap()
    }

    /// The connection that the other calls use.
    pub fn calls(&self) -> StepRunnerClient<Channel> {
        self.client()
    }

    fn client(&self) -> StepRunnerClient<Channel> {
        self.client.get_or_init(|| self.connect()).clone()
    }

    /// Drives any call to its end.
    pub fn wait<F: Future>(&self, call: F) -> F::Output {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await }).expect("an answer within a minute")
    }

    pub fn run(&self, request: wire::RunRequest) -> Result<(), Status> {
        let mut client = self.client();
        self.wait(client.run(request)).map(drop)
    }

    /// Runs a job of one script, named `s`.
    pub fn run_script(&self, id: &str, script: &str) {
        self.run(script_job(id, script)).unwrap();
    }

    pub fn follow_from(&self, id: &str, offset: i64) -> Result<Following<'_>, Status> {
        let mut client = self.client();
        let stream = self.wait(client.follow_logs(wire::FollowLogsRequest { id: id.into(), offset }))?.into_inner();
        Ok(Following { runtime: &self.runtime, stream })
    }

    pub fn follow(&self, id: &str) -> Following<'_> {
        self.follow_from(id, 0).unwrap()
    }

    /// The whole log, to the end of the job.
    pub fn log(&self, id: &str) -> Vec<u8> {
        self.follow(id).rest().unwrap()
    }

    pub fn log_text(&self, id: &str) -> String {
        String::from_utf8(self.log(id)).unwrap()
    }

    /// An empty id asks for all.
    pub fn statuses(&self, id: &str) -> Result<Vec<wire::Status>, Status> {
        let mut client = self.client();
        Ok(self.wait(client.status(wire::StatusRequest { id: id.into() }))?.into_inner().jobs)
    }

    pub fn status(&self, id: &str) -> wire::Status {
        self.statuses(id).unwrap().remove(0)
    }

    /// The status after the end of the log.
    pub fn ended(&self, id: &str) -> wire::Status {
        self.log(id);
        self.status(id)
    }

    pub fn close(&self, id: &str) {
        let mut client = self.client();
        self.wait(client.close(wire::CloseRequest { id: id.into() })).unwrap();
    }

    pub fn cancel(&self, id: &str) -> Result<(), Status> {
        let mut client = self.client();
        self.wait(client.cancel(wire::CancelRequest { id: id.into() })).map(drop)
    }
}

/// Nothing of a test lives on, however it ends.
impl Drop for Served {
    fn drop(&mut self) {
        if let Some(front) = self.front.take() {
            front.signal(Signal::TERM);
            if !std::thread::panicking() {
                let mut front = front;
                // A front waits a moment for those who are connected.
                self.runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                // Two at once would be one. It may be gone by then.
                front.wait_for("shutting down.");
                let pid = i32::try_from(front.pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
                let _gone = rustix::process::kill_process(pid, Signal::TERM);
                front.finish();
            }
        }
    }
}

impl Following<'_> {
    /// The next piece; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Status> {
        let next = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.stream.message()).await });
        Ok(next.expect("a piece within a minute")?.map(|piece| piece.data.to_vec()))
    }

    /// Reads until the text has come, and returns all that came.
    pub fn until(&mut self, text: &str) -> Vec<u8> {
        let mut log = Vec::new();
        while !String::from_utf8_lossy(&log).contains(text) {
            log.extend(self.next().unwrap().unwrap_or_else(|| panic!("the log ended without {text:?}: {}", String::from_utf8_lossy(&log))));
        }
        log
    }

    /// What is left, to the end.
    pub fn rest(&mut self) -> Result<Vec<u8>, Status> {
        let mut log = Vec::new();
        while let Some(piece) = self.next()? {
            log.extend(piece);
        }
        Ok(log)
    }
}

/// A job of one script, named `s`.
pub fn script_job(id: &str, script: &str) -> wire::RunRequest {
    job(id, &format!("run:\n  - {{name: s, script: {}}}\n", serde_json::to_string(script).unwrap()))
}

/// A job of a definition without a spec.
pub fn job(id: &str, definition: &str) -> wire::RunRequest {
    wire::RunRequest { id: id.into(), steps: format!("{{}}\n---\n{definition}"), ..wire::RunRequest::default() }
}

/// What a caller sees of a refusal: code, reason for programs, text.
pub fn refusal(status: &Status) -> (Code, String, String) {
    use tonic_types::StatusExt as _;
    let reason = status.get_details_error_info().map(|info| info.reason).unwrap_or_default();
    (status.code(), reason, status.message().to_owned())
}
