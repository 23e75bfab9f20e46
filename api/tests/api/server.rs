//! The real program on a port and in a directory of its own, and requests spelled out in bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A server; it is killed when it goes out of scope.
pub struct Server {
    process: Child,
    address: SocketAddr,
    data: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The first error of an error body.
    pub fn error(&self) -> Value {
        self.json()["errors"][0].take()
    }
}

impl Server {
    pub fn start() -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let (process, address) = spawn(data.path());
        Self { process, address, data }
    }

    /// Kills it and starts it again on the same directory.
    pub fn restart(&mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
        (self.process, self.address) = spawn(self.data.path());
    }

    /// Sends bytes, and reads to the end of the connection.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
        // The server may end the connection before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// Sends a request as the administrator, with further header lines, and closes.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Auth-Token: admin\r\n"
        );
        for header in headers {
            bytes.push_str(header);
            bytes.push_str("\r\n");
        }
        bytes.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(body);
        parse(&self.raw(&bytes))
    }

    /// Sends JSON.
    pub fn json(&self, method: &str, path: &str, headers: &[&str], body: &Value) -> Answer {
        let mut all = vec!["Content-Type: application/json"];
        all.extend(headers);
        self.send(method, path, &all, body.to_string().as_bytes())
    }

    /// Ends it by SIGTERM and waits.
    pub fn terminate(&mut self) -> ExitStatus {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        let deadline = Instant::now() + Duration::from_secs(120);
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait().expect("its status") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server did not end on SIGTERM");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(data: &Path) -> (Child, SocketAddr) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_allocd"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .env("ALLOCD_LOG", "info")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let log = BufReader::new(process.stderr.take().expect("a log"));
    let address = address_of(log);
    (process, address)
}

/// The address that the server says it listens on; the rest of its log is read and dropped.
fn address_of(mut log: impl BufRead + Send + 'static) -> SocketAddr {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).expect("a log") > 0, "the server ended:\n{seen}");
        if let Some((_, rest)) = line.split_once("address=") {
            let address = rest.split_whitespace().next().expect("an address");
            let address = address.parse().expect("an address");
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return address;
        }
        seen.push_str(&line);
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.parse().expect("a status"),
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
        body: bytes[end + 4..].to_vec(),
    }
}
