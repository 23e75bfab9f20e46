//! Opening a ledger's directory to look into it.

use crate::cli::Target;
use crate::error::Error;
use crate::progress::Progress;
use ledger::fold;
use ledger::log::{self, Head, LogReader, RocksReader};
use ledger::record::Record;
use ledger::state::State;
use std::path::PathBuf;
use tempfile::TempDir;

/// An opened ledger.
pub(crate) struct Source {
    reader: RocksReader,
    dir: PathBuf,
    /// The newest record there is.
    pub head: Head,
    /// What the server had acknowledged before the log was opened: the log must have it. None: the
    /// server never told, or its note is not whole.
    pub acknowledged: Option<Head>,
    /// The newest event that is known to be durable.
    durable: u64,
    // A RocksDB secondary writes its own log files there; dropped after the reader.
    _scratch: TempDir,
}

impl Source {
    /// Opens the ledger as a RocksDB secondary: a server that runs on it is not disturbed.
    pub fn open(target: &Target) -> Result<Self, Error> {
        let dir = target.data_dir.clone();
        let cannot = |why: String| Error::Open { dir: dir.clone(), why };
        if !dir.is_dir() {
            return Err(cannot("there is no such directory".into()));
        }
        let scratch = tempfile::Builder::new()
            .prefix("replay-")
            .tempdir()
            .map_err(|error| cannot(format!("no place for temporary files: {error}")))?;
        let acknowledged = log::acknowledged(&dir)?;
        let reader = RocksReader::open_secondary(&dir, scratch.path())
            .map_err(|error| cannot(error.to_string()))?;
        reader.catch_up()?;
        let head = reader.head()?;
        // Read again after the head, so that a busy server's newest events are not called undurable.
        let durable = log::acknowledged(&dir)?.map_or(0, |now| now.sequence.min(head.sequence));
        Ok(Self { reader, dir, head, acknowledged, durable, _scratch: scratch })
    }

    /// The log.
    pub fn reader(&self) -> &dyn LogReader {
        &self.reader
    }

    /// The newest event that is known to be durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// One record.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is not there.
    pub fn record(&self, sequence: u64) -> Result<Record, Error> {
        self.reader.record(sequence)?.ok_or(Error::Missing(sequence))
    }

    /// The state after event `target`.
    pub fn state_at(&self, target: u64) -> Result<State, Error> {
        let mut progress = Progress::new("folding");
        let (state, _) = fold::restore(&self.dir, &self.reader, target, &mut |done, all| {
            progress.at(done, all)
        })?;
        progress.finish();
        Ok(state)
    }

    /// Folds `state` on to event `target`, by the nearest checkpoint if it is far.
    pub fn advance(&self, state: &mut State, target: u64) -> Result<(), Error> {
        const FAR: u64 = 100_000;
        if target.saturating_sub(state.sequence()) > FAR {
            *state = self.state_at(target)?;
            return Ok(());
        }
        fold::fold(state, &self.reader, target, &mut |_, _| {})?;
        Ok(())
    }
}
