//! The accept loop: a bounded number of connections, and an end that answers what is in hand.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::first_bytes::FirstBytes;
use crate::http::reply::HttpResponse;

/// How long a client may take to send the head of a request, idle time included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// The longest head of a request, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// The most headers of a request.
const HEADERS: usize = 100;
/// How long requests in hand may take once the server ends.
const GRACE: Duration = Duration::from_secs(20);
/// How long to wait after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` is ready; then answers what is in hand and returns.
pub async fn serve<H, F>(
    listener: TcpListener,
    connections: usize,
    handler: H,
    stop: impl Future<Output = ()>,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    let handler = Arc::new(handler);
    let slots = Arc::new(Semaphore::new(connections));
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        if let Some((stream, peer, slot)) = accepted {
            spawn(stream, peer, slot, Arc::clone(&handler), &graceful);
        }
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!(
            "some requests were not answered within {} seconds of the end",
            GRACE.as_secs()
        );
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, slot)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

fn spawn<H, F>(
    stream: TcpStream,
    peer: SocketAddr,
    slot: OwnedSemaphorePermit,
    handler: Arc<H>,
    graceful: &GracefulShutdown,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let service = service_fn(move |request| {
        let answer = handler(request, peer);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(FirstBytes::new(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // What is no HTTP has been answered with 400, 414 or 431 by the library.
        if let Err(error) = connection.await {
            tracing::debug!(%error, %peer, "a connection ended badly");
        }
        drop(slot);
    });
}
