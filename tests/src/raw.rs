//! Bytes straight to the server's socket: what no well-behaved client would send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// How long to wait for an answer, or for the end of the connection.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long the server gets to answer before it is told that nothing more will come.
const PAUSE: Duration = Duration::from_millis(100);

/// Send bytes that may be no whole request, and read all that comes back. Empty if the
/// server just closed the connection. Panics if it does not end in time.
///
/// The sending side is ended only after a pause: a server may drop a request whose client
/// seems to be gone, and its answer is what is wanted here.
pub fn exchange(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    stream.set_read_timeout(Some(PAUSE)).expect("a timeout can be set");
    let mut answer = Vec::new();
    if read_to_end(&mut stream, &mut answer) {
        return answer;
    }
    let _ = stream.shutdown(Shutdown::Write);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    assert!(
        read_to_end(&mut stream, &mut answer),
        "no end after {PATIENCE:?}: sent {}",
        start(bytes)
    );
    answer
}

/// Read until the connection ends; false if the time was up before.
fn read_to_end(stream: &mut TcpStream, answer: &mut Vec<u8>) -> bool {
    match stream.read_to_end(answer) {
        Ok(_) => true,
        // A reset ends it as well.
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// The first bytes as text, for a message.
fn start(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}

/// Send a whole request with a body and the headers that make it come to a handler; the status,
/// or none if the server just closed the connection. `path` goes out as it is.
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
    let mut stream = connect(port);
    let _ = stream.write_all(&bytes);
    let mut answer = Vec::new();
    assert!(
        read_to_end(&mut stream, &mut answer),
        "no end after {PATIENCE:?}: sent {}",
        start(&bytes)
    );
    status(&answer)
}

/// The status in the first line of an answer.
pub fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|&byte| byte == b'\r').next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// A connection that takes almost nothing before its owner reads: its receive buffer is as small as
/// the system allows.
pub fn narrow(port: u16) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a buffer can be made smaller");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    socket.connect(&address.into()).expect("the server takes connections");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Whether the other end has closed the connection, or does so within a moment. What it sent
/// before is read and dropped.
pub fn is_ended(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PAUSE)).expect("a timeout can be set");
    read_to_end(stream, &mut Vec::new())
}

/// A connection that is only opened.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}
