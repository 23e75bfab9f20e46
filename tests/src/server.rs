//! The real `allocd` on a port and in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binaries;
use crate::http::Client;
use crate::process::{Process, free_port};

/// How long a server may take until it answers `GET /`, in a crowded test run.
const READY: Duration = Duration::from_secs(300);

/// How long a server may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(120);

/// Tries at a port, since another process may take a free one before the server does.
const TRIES: usize = 5;

/// A server, restarted on the same folder and port as often as a test wants.
pub struct Server {
    process: Option<Process>,
    folder: TempDir,
    data: PathBuf,
    port: u16,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Server {
    /// A server with an empty ledger, ready to answer.
    pub fn start() -> Server {
        Server::with(&[], &[])
    }

    /// The same with further arguments and environment variables.
    pub fn with(arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let folder = folder();
        let data = folder.path().join("data");
        Server::begin(folder, data, arguments, environment)
    }

    /// The same with its ledger in a folder of the test's, which is made.
    pub fn on(data: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        Server::begin(folder(), data.to_owned(), arguments, environment)
    }

    fn begin(
        folder: TempDir,
        data: PathBuf,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Server {
        fs::create_dir(&data).expect("a folder can be made");
        let mut server = Server {
            process: None,
            folder,
            data,
            port: free_port(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            environment: environment
                .iter()
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        };
        server.restart();
        server
    }

    /// Start it again on what is on disk (and end it first, by SIGTERM, if it runs).
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.terminate();
        }
        for attempt in 1..=TRIES {
            let mut process = self.spawn();
            if self.wait_until_ready(&mut process) {
                self.process = Some(process);
                return;
            }
            let log = process.log_tail();
            let taken = log.contains("in use") || log.contains("AddrInUse");
            assert!(taken && attempt < TRIES, "allocd does not start:\n{log}");
            self.port = free_port();
        }
    }

    /// Start it and kill it before it may be ready: a crash during recovery.
    pub fn start_and_kill(&mut self, after: Duration) {
        let mut process = self.spawn();
        thread::sleep(after);
        process.kill();
    }

    fn spawn(&self) -> Process {
        let mut command = Command::new(binaries::allocd());
        command
            .arg("serve")
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--data-dir")
            .arg(self.data_dir())
            .args(&self.arguments)
            .env("AUTH_STRATEGY", "noauth2")
            .envs(self.environment.iter().map(|(key, value)| (key, value)));
        Process::start("allocd", command, &self.folder.path().join("allocd.log"))
    }

    /// Whether it became ready; false if it ended instead.
    fn wait_until_ready(&self, process: &mut Process) -> bool {
        let deadline = Instant::now() + READY;
        let client = self.client();
        while Instant::now() < deadline {
            if client.get("/").is_ok_and(|answer| answer.status == 200) {
                return true;
            }
            if !process.running() {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("allocd did not answer within {READY:?}:\n{}", process.log_tail());
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// SIGTERM; how it ended. A clean stop has the status 0.
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.take().expect("the server runs").terminate(STOP)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// Whether the process is alive.
    pub fn running(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::running)
    }

    /// Where it listens, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its ledger's folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data.clone()
    }

    /// A client of its own connections, an administrator.
    pub fn client(&self) -> Client {
        Client::new(&self.url())
    }

    /// All its output since it was first started.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.path().join("allocd.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The end of its output.
    pub fn log_tail(&self) -> String {
        self.process.as_ref().map(Process::log_tail).unwrap_or_default()
    }
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("allocd-").tempdir().expect("a folder can be made")
}

/// `replay verify` on a ledger's folder: panics with its words if it finds a fault.
pub fn verify_ledger(data_dir: &Path) {
    let output = Command::new(binaries::replay())
        .arg("verify")
        .arg("--data-dir")
        .arg(data_dir)
        .output()
        .expect("replay runs");
    assert!(
        output.status.success(),
        "replay verify: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
