//! The log: records in order, appended by one writer, kept for ever.
//!
//! Two engines stand behind [`Log`]: RocksDB on this machine ([`RocksLog`]) and memory for tests
//! ([`MemoryLog`]). Both pass the contract tests in `contract.rs`; a replicated stream shall too.

mod acknowledged;
#[cfg(test)]
mod contract;
mod index;
mod memory;
mod owner;
mod private_files;
mod rocks;
mod rocks_reader;

pub use acknowledged::{Acknowledged, acknowledged};
pub use index::IndexKey;
pub use memory::{Fault, MemoryLog};
pub use owner::{Owner, OwnerError};
pub use rocks::RocksLog;
pub use rocks_reader::RocksReader;

use crate::event::Event;
use crate::memory::Part;
use crate::record::{Hash, Private, Record, RecordError};
use crate::time::Timestamp;
use std::sync::Arc;

/// How many bytes one [`LogReader::read`] returns at most, give or take one record.
pub const READ_BYTES: usize = 4 * 1024 * 1024;

/// The end of a log: its last sequence and that record's hash. The default is an empty log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// The last sequence; 0: there is none.
    pub sequence: u64,
    /// The hash of the last record.
    pub hash: Hash,
}

/// The groups of one commit: whole groups only, in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The records, each following on the one before.
    pub records: Vec<Record>,
    /// The private part of each record.
    pub privates: Vec<Option<Private>>,
    /// The event of each record.
    pub events: Vec<Event>,
}

impl Batch {
    /// The end of the log once this batch is in it, if it is not empty.
    pub fn head(&self) -> Option<Head> {
        self.records
            .last()
            .map(|record| Head { sequence: record.header.sequence, hash: record.hash })
    }
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The batch is durable, whole.
    Committed,
    /// The log's end is another than expected; nothing was written.
    Refused(Head),
    /// It may be in the log or not. The log must be opened again before it is used again.
    Unknown(String),
}

/// What went wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The engine said so.
    #[error("{0}")]
    Engine(String),
    /// A commit failed, and the log is being opened again: it can be read in a moment.
    #[error("the log is being opened again")]
    Reopening,
    /// A record that must be there is not.
    #[error("event {sequence} is missing although the log goes on to {head}")]
    Missing {
        /// Which.
        sequence: u64,
        /// Where the log ends.
        head: u64,
    },
    /// A record is not what it must be.
    #[error("event {sequence}: {error}")]
    Record {
        /// Which.
        sequence: u64,
        /// What is wrong.
        error: RecordError,
    },
}

impl LogError {
    pub(crate) fn at(sequence: u64, error: RecordError) -> Self {
        Self::Record { sequence, error }
    }
}

/// What an engine noticed by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What its own threads could not do, since it was opened.
    pub background_errors: u64,
    /// A file that it needs and that is gone.
    pub missing: Option<String>,
}

/// The writing side of a log. One thread has it.
pub trait Log: Send {
    /// The end of the log.
    fn head(&self) -> Head;

    /// Appends a batch durably if the log ends at `expected`.
    fn append(&mut self, batch: &Batch, expected: Head) -> Appended;

    /// Opens the log again after an unknown outcome and makes durable what is found there. Nothing
    /// is made where no log is.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be opened. Its reading sides go on as far as they can, and it may
    /// be tried again.
    fn reopen(&mut self) -> Result<(), LogError>;

    /// Lets go of what the engine holds, so that the log can be opened again, here or elsewhere.
    /// Reading sides answer with an error from then on.
    fn close(&mut self);

    /// A reading side, which stays usable when the log is opened again.
    fn reader(&self) -> Arc<dyn LogReader>;
}

/// The reading side of a log. It shows everything that is in the engine; who must not show what
/// is not durable stops at the durable position.
pub trait LogReader: Send + Sync {
    /// The end of the log.
    ///
    /// # Errors
    /// [`LogError`] if the engine cannot tell.
    fn head(&self) -> Result<Head, LogError>;

    /// Records from `from` on without a gap, at most `max_records` and about [`READ_BYTES`].
    ///
    /// # Errors
    /// [`LogError`] naming the place if one is missing, damaged or unreadable: a read error is
    /// never taken for the end.
    fn read(&self, from: u64, max_records: usize) -> Result<Vec<Record>, LogError>;

    /// One record.
    ///
    /// # Errors
    /// [`LogError`] if it is damaged or unreadable.
    fn record(&self, sequence: u64) -> Result<Option<Record>, LogError>;

    /// The erasable part of a record.
    ///
    /// # Errors
    /// [`LogError`] if it is unreadable.
    fn private(&self, sequence: u64) -> Result<Option<Private>, LogError>;

    /// What the engine noticed by itself, and did not mend.
    fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Sequences after `after` that concern `key`, ascending, at most `limit`.
    ///
    /// # Errors
    /// [`LogError`] if the index is unreadable.
    fn index(&self, key: &IndexKey, after: u64, limit: usize) -> Result<Vec<u64>, LogError>;

    /// What the engine holds in memory, by part.
    fn memory(&self) -> Vec<Part> {
        Vec::new()
    }

    /// The last sequence recorded at or before `time`; 0: none.
    ///
    /// # Errors
    /// [`LogError`] if a record is unreadable.
    fn sequence_at(&self, time: Timestamp) -> Result<u64, LogError> {
        // Recorded times never go back, so the place is found by halving.
        let (mut below, mut above) = (0, self.head()?.sequence + 1);
        while below + 1 < above {
            let middle = below + (above - below) / 2;
            let record = self
                .record(middle)?
                .ok_or(LogError::Missing { sequence: middle, head: above - 1 })?;
            if record.header.recorded_at <= time { below = middle } else { above = middle }
        }
        Ok(below)
    }
}
