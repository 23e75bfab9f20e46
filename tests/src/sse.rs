//! A reader of server-sent events that does nothing but what the bytes say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// How long the next line may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An open stream.
pub struct Sse {
    from: BufReader<Chunked>,
    /// The head of the answer, a line each, in lower case.
    pub head: Vec<String>,
}

/// What came.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An event.
    Event {
        /// Its id.
        id: u64,
        /// Its kind.
        kind: String,
        /// Its data.
        data: Value,
    },
    /// A comment, or an instruction to the client.
    Comment(String),
    /// The stream ended.
    End,
}

impl Sse {
    /// Open one; the status must be 200.
    pub fn open(port: u16, path: &str, headers: &[(&str, &str)]) -> Sse {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).expect("the server reads");
        let mut from = BufReader::new(stream);
        let head = head(&mut from);
        assert!(head[0].contains(" 200 "), "{head:?}");
        assert!(head.contains(&"transfer-encoding: chunked".to_owned()), "{head:?}");
        Sse { from: BufReader::with_capacity(16, Chunked { from, left: 0, ended: false }), head }
    }

    /// The next thing that comes.
    pub fn next_item(&mut self) -> Item {
        let (mut id, mut kind, mut data) = (None, String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).expect("a line in time") == 0 {
                return Item::End;
            }
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("id", text)) => id = text.parse().ok(),
                Some(("event", text)) => kind = text.to_owned(),
                Some(("data", text)) => data = text.to_owned(),
                Some(("" | "retry", text)) => return Item::Comment(text.to_owned()),
                _ => {
                    if let Some(id) = id {
                        let data = serde_json::from_str(&data).expect("data is JSON");
                        return Item::Event { id, kind, data };
                    }
                }
            }
        }
    }

    /// The next event; comments are passed over. Panics at the end.
    pub fn next_event(&mut self) -> (u64, String, Value) {
        loop {
            match self.next_item() {
                Item::Event { id, kind, data } => return (id, kind, data),
                Item::Comment(_) => {}
                Item::End => panic!("the stream ended"),
            }
        }
    }
}

fn head(from: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).expect("a head");
        match line.trim_end() {
            "" => return lines,
            line => lines.push(line.to_lowercase()),
        }
    }
}

/// A body in chunks.
struct Chunked {
    from: BufReader<TcpStream>,
    left: usize,
    ended: bool,
}

impl Read for Chunked {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut line = String::new();
            self.from.read_line(&mut line)?;
            if line.trim().is_empty() {
                // The end of the chunk before, or of the connection.
                self.ended = line.is_empty();
                return if self.ended { Ok(0) } else { self.read(into) };
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            self.ended = self.left == 0;
        }
        let most = self.left.min(into.len());
        let read = self.from.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}
