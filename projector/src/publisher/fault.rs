//! What ends a session with the server. After a pause there is another one, which looks at the
//! stream anew and decides what is to be done.

use crate::connection::ConnectionError;
use ledger::log::LogError;
use std::fmt;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The connection cannot even be tried.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The server is away or does not answer.
    #[error("{what}: {error}")]
    Server {
        /// What was tried.
        what: &'static str,
        /// What the client said.
        error: String,
    },
    /// The connection was lost.
    #[error("the connection to the server was lost")]
    Disconnected,
    /// The server did not take a message.
    #[error("event {sequence} was not taken: {error}")]
    Publish {
        /// Which.
        sequence: u64,
        /// What the server said.
        error: String,
    },
    /// The stream took a message at another place.
    #[error("event {sequence} was stored as message {stored} of {stream}")]
    Misplaced {
        /// Which event.
        sequence: u64,
        /// Its place in the stream.
        stored: u64,
        /// Which stream took it.
        stream: String,
    },
    /// The stream is not as it was left.
    #[error("the stream changed under the publisher: {0}")]
    Changed(String),
    /// The stream was made for something else; it is left alone.
    #[error("{0}")]
    NotOurs(String),
    /// The ledger's own log cannot be read.
    #[error("the log cannot be read: {0}")]
    Log(#[from] LogError),
    /// The session panicked: a defect in this program.
    #[error("publishing panicked: {0}")]
    Panicked(String),
    /// The log lacks an event that it should hold.
    #[error("the log has no event {0}")]
    Missing(u64),
}

impl Fault {
    /// The server did not do what was asked.
    pub(super) fn server(what: &'static str) -> impl Fn(&dyn fmt::Display) -> Self {
        move |error| Self::Server { what, error: error.to_string() }
    }
}
