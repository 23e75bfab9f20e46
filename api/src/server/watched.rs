//! A connection's two ends as its [`Connection`] sees them: the bytes, and the answers.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connections::Connection;
use crate::http::payload::Payload;

/// Bytes that the system may hold of an answer that goes on. By itself it would take megabytes for
/// each reader that reads nothing, which count nowhere; a reader that reads needs far less.
const STREAM_BUFFER: usize = 64 * 1024;

/// A socket that notes what comes and goes.
pub(super) struct WatchedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    narrow: bool,
}

impl WatchedStream {
    pub(super) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection, narrow: false }
    }

    /// Makes the system's buffer small once the answer is one that goes on.
    fn narrow(&mut self) {
        if self.narrow || !self.connection.streams() {
            return;
        }
        self.narrow = true;
        if let Err(error) = SockRef::from(&self.stream).set_send_buffer_size(STREAM_BUFFER) {
            tracing::debug!(%error, "the send buffer could not be made smaller");
        }
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => self.connection.has_written(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection.cannot_write(),
        }
        written
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.connection.has_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.narrow();
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.narrow();
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note(written)
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

/// The body of an answer. Once it is dropped, all of it was handed over for writing.
pub(super) struct WatchedBody {
    payload: Payload,
    connection: Arc<Connection>,
}

impl WatchedBody {
    pub(super) fn new(payload: Payload, connection: Arc<Connection>) -> Self {
        match payload.size_hint().exact() {
            Some(bytes) => connection.owes(bytes),
            None => connection.has_stream(),
        }
        Self { payload, connection }
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().payload).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.payload.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.connection.has_answered();
    }
}
