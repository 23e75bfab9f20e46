//! Bytes straight to the server's socket: what no well-behaved client would send.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long to wait for an answer, or for the end of the connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Send bytes, end the sending side, and read all that comes back. Empty if the server
/// just closed the connection. Panics if nothing happens in time.
pub fn exchange(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        let waited = matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        );
        assert!(
            !waited,
            "no end after {PATIENCE:?}: sent {}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
        );
    }
    answer
}

/// Send a request with a body and the headers that make it come to a handler; the status, or
/// none if the server just closed the connection. `path` goes out as it is.
pub fn request(port: u16, method: &str, path: &[u8], headers: &str, body: &[u8]) -> Option<u16> {
    let mut bytes = Vec::with_capacity(path.len() + body.len() + 300);
    bytes.extend_from_slice(method.as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(path);
    bytes.extend_from_slice(
        format!(
            " HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nx-auth-token: admin\r\naccept: application/json\r\n\
             {headers}content-length: {}\r\n\r\n",
            body.len()
        )
        .as_bytes(),
    );
    bytes.extend_from_slice(body);
    status(&exchange(port, &bytes))
}

/// The status in the first line of an answer.
pub fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|&byte| byte == b'\r').next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()
}

/// A connection that is only opened.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout can be set");
    stream
        .set_write_timeout(Some(PATIENCE))
        .expect("a timeout can be set");
    stream
}
