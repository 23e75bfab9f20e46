//! A look at the first bytes of a connection.
//!
//! The HTTP library refuses a request whose `content-length` is no number before anybody else
//! sees it. Placement answers it itself, in its own order of checks (after authentication and
//! versions, before the route) and with its own body. So such a header is renamed, in place and
//! to a name of the same length, before the library reads it: the request then gets through
//! without a body, is answered, and the connection closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::body::BAD_LENGTH;

const NAME: &[u8] = b"content-length";
const MOST_HEADERS: usize = 100;

/// A stream whose first bytes are looked at.
#[derive(Debug)]
pub struct FirstBytes<S> {
    stream: S,
    looked: bool,
}

impl<S> FirstBytes<S> {
    /// Wraps a stream on which nothing has been read yet.
    pub fn new(stream: S) -> Self {
        Self { stream, looked: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if !self.looked {
            self.looked = true;
            mend(&mut buf.filled_mut()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Renames a `content-length` that is no number, if the bytes hold a whole request head.
fn mend(bytes: &mut [u8]) {
    let Some(range) = bad_length(bytes) else { return };
    if let Some(name) = bytes.get_mut(range) {
        name.copy_from_slice(BAD_LENGTH.as_bytes());
    }
}

/// Where the name of such a header stands.
fn bad_length(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        _ => return None,
    }
    let is_length =
        |header: &&httparse::Header<'_>| header.name.as_bytes().eq_ignore_ascii_case(NAME);
    let header = request.headers.iter().find(is_length)?;
    let value = header.value.trim_ascii();
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let start = (header.name.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    Some(start..start + NAME.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        mend(&mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn only_a_length_that_is_no_number_is_renamed() {
        let head = |length: &str| {
            format!("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nA: b\r\n\r\n")
        };
        assert_eq!(
            mended(&head("hi mom")),
            head("hi mom").replace("Content-Length", "invalid-length")
        );
        assert_eq!(mended(&head("")), head("").replace("Content-Length", "invalid-length"));
        assert_eq!(mended(&head("12")), head("12"));
    }

    #[test]
    fn anything_else_is_left_alone() {
        for text in [
            "",
            "\u{16}\u{3}",
            "GET / HTTP/1.1\r\nContent-Length: hi",
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            assert_eq!(mended(text), text);
        }
    }
}
