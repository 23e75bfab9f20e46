//! Folding the log into a state: at start-up, after an unknown outcome, and to look at any point
//! of the past. The chain is checked on the way.

use crate::event::DecodeError;
use crate::log::{LogError, LogReader};
use crate::panics::{Place, caught};
use crate::state::{State, checkpoint};
use std::path::Path;

/// Records read at once.
const CHUNK: usize = 4_096;

/// Told the sequence reached and the target, about once a chunk.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Why a log could not be folded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The log is damaged, incomplete or unreadable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An event is of a kind this program does not know.
    #[error("event {sequence}: {error}")]
    Decode {
        /// Which.
        sequence: u64,
        /// What is wrong.
        error: DecodeError,
    },
    /// An event contradicts the state before it: it was written by a program that decides
    /// differently.
    #[error("event {sequence} cannot follow on what is before it: {what}")]
    Contradiction {
        /// Which.
        sequence: u64,
        /// What does not fit.
        what: String,
    },
    /// The log ends before the target.
    #[error("the ledger ends at event {head}; event {target} is not there")]
    BeyondEnd {
        /// Where the log ends.
        head: u64,
        /// What was asked for.
        target: u64,
    },
}

/// The state after event `target`: the newest good checkpoint of this log at or below it, and the
/// rest of the log on top. Beside it the sequence of that checkpoint; 0: there was none.
///
/// # Errors
/// [`FoldError`] naming the place.
pub fn restore(
    dir: &Path,
    reader: &dyn LogReader,
    target: u64,
    progress: Progress<'_>,
) -> Result<(State, u64), FoldError> {
    let mut state = State::default();
    for checkpoint in checkpoint::newest_first(dir, target) {
        if follows_log(&checkpoint, reader)? {
            state = checkpoint;
            break;
        }
    }
    let from = state.sequence();
    fold(&mut state, reader, target, progress)?;
    Ok((state, from))
}

/// Whether a checkpoint belongs to this log: the record it ends with has the hash it names.
fn follows_log(state: &State, reader: &dyn LogReader) -> Result<bool, LogError> {
    let record = reader.record(state.sequence())?;
    let same = record.is_some_and(|record| record.hash == state.position().hash);
    if !same {
        tracing::warn!(sequence = state.sequence(), "checkpoint ignored: it is not of this log");
    }
    Ok(same)
}

/// Folds the events after the state's own up to `target` into it.
///
/// # Errors
/// [`FoldError`] naming the place. After a contradiction the state is of no use any more, after
/// other errors it stands before that place.
pub fn fold(
    state: &mut State,
    reader: &dyn LogReader,
    target: u64,
    progress: Progress<'_>,
) -> Result<(), FoldError> {
    while state.sequence() < target {
        let left = usize::try_from(target - state.sequence()).unwrap_or(usize::MAX);
        let records = reader.read(state.sequence() + 1, left.min(CHUNK))?;
        if records.is_empty() {
            return Err(FoldError::BeyondEnd { head: state.sequence(), target });
        }
        for record in &records {
            let sequence = state.sequence() + 1;
            record
                .check_follows(state.sequence(), state.position().hash)
                .map_err(|error| LogError::at(sequence, error))?;
            let event = record.event().map_err(|error| FoldError::Decode { sequence, error })?;
            caught(Place::Fold, || state.apply(sequence, record.header.recorded_at, &event))
                .map_err(|panic| FoldError::Contradiction { sequence, what: panic.to_string() })?;
            state.seal(record.hash, record.header.epoch);
        }
        progress(state.sequence(), target);
    }
    Ok(())
}
