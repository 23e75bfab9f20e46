//! The server with a cloud in it, in this process but behind a real socket, and a client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use allocd::app::App;
use allocd::clock::SystemClock;
use allocd::handle::handle;
use allocd::http::payload::Payload;
use allocd::http::policy::Policy;
use allocd::server::{self, Connections};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Response;
use ledger::command::Command;
use ledger::stamp::{Actor, Stamp};
use ledger::time::Timestamp;
use ledger::{Ledger, Options, Outcome};
use projector::Projections;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::cloud::Cloud;

/// Where the bytes are that were kept.
pub const READY: &str = "/ready-made";

/// Commands of one group: it must not be larger than what a ledger takes at once.
const GROUP: usize = 1_000;

/// A server that serves a cloud. Dropping it ends it.
pub struct Serving {
    address: SocketAddr,
    ready: Arc<ArcSwap<Bytes>>,
    _runtime: Runtime,
    _dir: TempDir,
}

impl Serving {
    /// Makes the cloud and serves it.
    pub fn start(cloud: &Cloud) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let options = Options::default();
        let ledger = Ledger::open(dir.path(), options, Arc::new(SystemClock::default()), [7; 16]);
        let ledger = ledger.expect("a ledger");
        for group in cloud.commands.chunks(GROUP) {
            submit(&ledger, group);
        }
        let projections = Projections::start(&ledger).expect("views");
        let policy = Policy::load(None, false).expect("the built-in policy");
        let app = Arc::new(App::new(ledger, projections, None, policy, None));
        let ready = Arc::new(ArcSwap::from_pointee(Bytes::new()));
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let kept = Arc::clone(&ready);
        let handler = move |request: http::Request<hyper::body::Incoming>, peer| {
            let (app, kept) = (Arc::clone(&app), Arc::clone(&kept));
            async move {
                match request.uri().path() {
                    READY => Response::new(Payload::from(Bytes::clone(&kept.load()))),
                    _ => handle(&app, request, peer).await,
                }
            }
        };
        let connections = Arc::new(Connections::new(16));
        runtime.spawn(server::serve(listener, connections, handler, std::future::pending()));
        Self { address, ready, _runtime: runtime, _dir: dir }
    }

    /// Keeps the bytes that are sent ready-made.
    pub fn keep(&self, body: Vec<u8>) {
        self.ready.store(Arc::new(body.into()));
    }

    /// A client with a connection of its own.
    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Client { stream: BufReader::with_capacity(1 << 16, stream), buffer: vec![0; 1 << 16] }
    }
}

fn submit(ledger: &Ledger, group: &[Command]) {
    let stamp = Stamp {
        seed: *uuid::Uuid::new_v4().as_bytes(),
        received_at: Timestamp::from_micros(1),
        actor: Actor { user: "u".into(), project: "p".into(), address: String::new() },
        request_id: None,
        command_id: None,
    };
    let answer = ledger.submit_blocking(group.to_vec(), stamp).expect("an answer");
    assert!(matches!(answer.outcome, Outcome::Accepted { .. }), "{answer:?}");
}

/// Asks over one connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    /// The body of an answer.
    pub fn get(&mut self, path: &str) -> Vec<u8> {
        let length = self.ask(path);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the body");
        body
    }

    /// Reads an answer and drops it; says how long its body was.
    pub fn count(&mut self, path: &str) -> usize {
        let length = self.ask(path);
        let mut left = length;
        while left > 0 {
            let part = left.min(self.buffer.len());
            self.stream.read_exact(&mut self.buffer[..part]).expect("the body");
            left -= part;
        }
        length
    }

    /// Sends a request and reads the head of the answer; says how long the body is.
    fn ask(&mut self, path: &str) -> usize {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\
             OpenStack-API-Version: placement 1.39\r\n\r\n"
        );
        self.stream.get_mut().write_all(head.as_bytes()).expect("sent");
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a head");
            if line.starts_with("HTTP/1.1") {
                assert!(line.contains(" 200 "), "{line}");
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                return length;
            }
        }
    }
}
