//! What can go wrong, and which exit status says so.

use crate::{CANNOT, FINDING};
use ledger::fold::FoldError;
use ledger::log::LogError;
use ledger::record::RecordError;
use std::path::PathBuf;

/// Why a verb could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no ledger to look into.
    #[error("cannot open the ledger in {}: {why}", dir.display())]
    Open {
        /// Where.
        dir: PathBuf,
        /// What is in the way.
        why: String,
    },
    /// What was asked for makes no sense on this ledger.
    #[error("{0}")]
    Usage(String),
    /// The log could not be read; the text names the place.
    #[error("the ledger could not be read: {0}")]
    Log(#[from] LogError),
    /// The state could not be rebuilt; the text names the place.
    #[error("the state could not be rebuilt: {0}")]
    Fold(#[from] FoldError),
    /// An index names an event that is not there.
    #[error("event {0} is missing from the log, although an index names it; run `replay verify`")]
    Missing(u64),
    /// A record's private part could not be read.
    #[error("the private part of event {sequence} is damaged: {error}")]
    Private {
        /// Of which event.
        sequence: u64,
        /// What the decoder said.
        error: RecordError,
    },
    /// The result could not be written.
    #[error("the result could not be written: {0}")]
    Output(#[from] std::io::Error),
    /// The result could not be written as JSON.
    #[error("the result could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// The exit status for it.
    pub fn status(&self) -> u8 {
        match self {
            Self::Open { .. } | Self::Usage(_) | Self::Output(_) | Self::Json(_) => CANNOT,
            Self::Log(_) | Self::Fold(_) | Self::Missing(_) | Self::Private { .. } => FINDING,
        }
    }
}
