//! The accept loop: a bounded number of connections, of which each must get on with what it does,
//! and an end that answers what is in hand.
//!
//! Every connection is accepted at once. At the limit an idle one makes room; where none can, the
//! new one is of a small reserve that serves `/healthz`, `/readyz` and `/metrics` alone, so that
//! whoever runs the server sees it however many clients hold connections.

mod connections;
mod watched;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

pub use connections::{Connections, Crowded};

use crate::first_bytes::FirstBytes;
use crate::http::reply::HttpResponse;
use connections::{Place, SWEEP};
use watched::{WatchedBody, WatchedStream};

/// The longest head of a request, in bytes. What waits to be written is bounded by it as well.
const HEAD_LIMIT: usize = 64 * 1024;
/// The most headers of a request.
const HEADERS: usize = 100;
/// How long requests in hand may take once the server ends.
const GRACE: Duration = Duration::from_secs(20);
/// How long to wait after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop` is ready; then answers what is in hand and returns. Requests of
/// the reserve carry the extension [`Crowded`].
pub async fn serve<H, F>(
    listener: TcpListener,
    connections: Arc<Connections>,
    handler: H,
    stop: impl Future<Output = ()>,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    let handler = Arc::new(handler);
    let graceful = GracefulShutdown::new();
    let mut sweeps = tokio::time::interval(SWEEP);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            _ = sweeps.tick() => {
                connections.sweep();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Without a place the connection ends here: even the reserve is at work.
                if let Some(place) = connections.admit() {
                    spawn(stream, peer, place, Arc::clone(&handler), &graceful);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                connections.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
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

fn spawn<H, F>(
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    handler: Arc<H>,
    graceful: &GracefulShutdown,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let this = Arc::clone(&place.connection);
    let reserve = this.reserve;
    let stream = FirstBytes::new(WatchedStream::new(stream, Arc::clone(&this)));
    let service = service_fn(move |mut request: Request<Incoming>| {
        this.answers();
        if reserve {
            request.extensions_mut().insert(Crowded);
        }
        let (answer, this) = (handler(request, peer), Arc::clone(&this));
        async move { Ok::<_, Infallible>(answer.await.map(|body| WatchedBody::new(body, this))) }
    });
    // Time limits are the sweep's: the library needs no timer.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .keep_alive(!reserve)
        .max_buf_size(HEAD_LIMIT)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            // What is no HTTP has been answered with 400, 414 or 431 by the library.
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, %peer, "a connection ended badly");
            },
            () = place.connection.closed() => tracing::debug!(%peer, "a connection was ended"),
        }
    });
}
