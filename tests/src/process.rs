//! A process under test: its output kept in a file, its end by id.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Lines of a log that are shown when a test fails.
const TAIL: usize = 60;

/// A child process. Dropping it kills it; if the test is failing, the end of its output
/// is shown first.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Start `command`, with its output appended to the file `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Process {
        let file =
            File::options().create(true).append(true).open(log).expect("the log can be written");
        let errors = file.try_clone().expect("a file handle can be duplicated");
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error} ({command:?})"));
        Process { name: name.to_owned(), child, log: log.to_owned() }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, at once: nothing of what it holds in memory survives.
    pub fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGSTOP: it keeps its connections and does nothing, until [`Process::resume`]. Returns
    /// once it has stopped: the signal alone leaves its other threads running for a moment.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        // Fails only if it has ended already.
        let _ = waitid(WaitId::Pid(self.pid()), WaitIdOptions::STOPPED);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // Fails only if it has ended already.
        let _ = kill_process(self.pid(), signal);
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        id.expect("a process id is positive")
    }

    /// SIGTERM, and how it ended. Panics if it has not ended after `patience`.
    pub fn terminate(&mut self, patience: Duration) -> ExitStatus {
        if self.running() {
            self.signal(Signal::TERM);
        }
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("{} still runs {patience:?} after SIGTERM", self.name);
    }

    /// The end of its output.
    pub fn log_tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("--- the end of {}'s output\n{}\n---", self.name, self.log_tail());
        }
    }
}

/// A port of the loopback address that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address can be bound");
    listener.local_addr().expect("a bound socket has an address").port()
}
