//! What a projection is, and how one is rebuilt from nothing.

use ledger::event::Event;
use ledger::log::{LogError, LogReader};
use ledger::record::{Hash, Header, Record};
use ledger::state::State;
use std::sync::Arc;

/// Records that are read from the log at once: the largest group is read whole.
pub(crate) const READ_RECORDS: usize = ledger::limits::GROUP_EVENTS;

/// Whole groups of events, in order.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The records, contiguous.
    pub records: &'a [Record],
    /// The event of each record.
    pub events: &'a [Event],
}

impl<'a> Batch<'a> {
    /// The events after `sequence` with their headers: what was folded before is dropped here, so
    /// a batch that comes twice changes nothing.
    ///
    /// # Errors
    /// [`ProjectionError::Gap`] if events between `sequence` and the batch are missing.
    pub fn after(
        &self,
        sequence: u64,
    ) -> Result<impl Iterator<Item = (&'a Header, &'a Event)>, ProjectionError> {
        let first = self.records.first().map_or(sequence + 1, |record| record.header.sequence);
        if first > sequence.saturating_add(1) && sequence > 0 {
            return Err(ProjectionError::Gap { at: sequence, next: first });
        }
        let records = self.records;
        Ok(records
            .iter()
            .map(|record| &record.header)
            .zip(self.events)
            .filter(move |(header, _)| header.sequence > sequence))
    }
}

/// A view that is folded from events alone, with the position it is true as of.
pub trait Projection: Clone + Send + Sync + 'static {
    /// Its name in health reports and logs.
    const NAME: &'static str;
    /// Whether events tell it only what changed, and the state how it is now. Such a view can only
    /// be taken to the ledger's newest state, by [`Self::follow_to`].
    const NEEDS_STATE: bool = false;

    /// The view of the state `state`, so that a start need not fold the whole log. `reader` is
    /// for views that tell more than the state keeps.
    ///
    /// # Errors
    /// [`ProjectionError`] if the log cannot be read.
    fn from_state(state: &Arc<State>, reader: &dyn LogReader) -> Result<Self, ProjectionError>;

    /// The sequence of the last event in it.
    fn sequence(&self) -> u64;

    /// Folds whole groups. On an error the caller drops this copy and keeps the one before.
    ///
    /// # Errors
    /// [`ProjectionError`] if the events do not follow on the view.
    fn apply(&mut self, batch: &Batch<'_>) -> Result<(), ProjectionError>;

    /// Folds all of `batches`, after the last of which the ledger's state is `state`.
    ///
    /// # Errors
    /// As [`Self::apply`].
    fn follow_to(
        &mut self,
        batches: &[Batch<'_>],
        _state: &Arc<State>,
    ) -> Result<(), ProjectionError> {
        batches.iter().try_for_each(|batch| self.apply(batch))
    }
}

/// A view that can be compared with another one.
pub trait Lines: Projection {
    /// Everything in the view, one fact a line, in an order that depends on the facts alone: two
    /// views are equal if and only if their lines are.
    fn lines(&self) -> Vec<String>;

    /// One hash over [`Self::lines`].
    fn digest(&self) -> Hash {
        let mut hasher = blake3::Hasher::new_derive_key("allocd 2026 projection digest");
        for line in self.lines() {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        Hash(*hasher.finalize().as_bytes())
    }
}

/// Why a projection stopped.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// Events are missing.
    #[error("event {next} does not follow on {at}")]
    Gap {
        /// The last event in the view.
        at: u64,
        /// The event that came.
        next: u64,
    },
    /// An event that this program does not know, or whose body is damaged.
    #[error("event {sequence} cannot be read: {error}")]
    Event {
        /// Its sequence.
        sequence: u64,
        /// Why.
        error: ledger::event::DecodeError,
    },
    /// An event that contradicts the view.
    #[error("event {sequence} does not follow on the view: {what}")]
    Contradiction {
        /// Its sequence.
        sequence: u64,
        /// What does not fit.
        what: String,
    },
    /// The fold panicked: a defect in this program.
    #[error("folding after event {at} failed: {what}")]
    Panicked {
        /// The last event in the view.
        at: u64,
        /// What the panic said.
        what: String,
    },
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ProjectionError {
    /// The event that could not be folded, as far as that is known; none: the log was at fault.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            Self::Event { sequence, .. } | Self::Contradiction { sequence, .. } => Some(*sequence),
            Self::Gap { at, .. } | Self::Panicked { at, .. } => Some(at + 1),
            Self::Log(_) => None,
        }
    }
}

/// A view folded from the first record to `target`, whatever `Self::from_state` would say: what a
/// live view must equal at that sequence (invariant 7).
///
/// # Errors
/// [`ProjectionError`] if a record cannot be read or does not fit.
pub fn rebuild<P: Projection + Default>(
    reader: &dyn LogReader,
    target: u64,
) -> Result<P, ProjectionError> {
    let mut view = P::default();
    let mut from = 1;
    while from <= target {
        let records = reader.read(from, READ_RECORDS)?;
        let Some(last) = apply_records(&mut view, records, target)? else {
            return Err(ProjectionError::Gap { at: from - 1, next: target });
        };
        from = last + 1;
    }
    Ok(view)
}

/// Folds what `records` holds of whole groups up to `target`. Tells the last sequence that was
/// folded; none: there was no whole group.
pub(crate) fn apply_records<P: Projection>(
    view: &mut P,
    mut records: Vec<Record>,
    target: u64,
) -> Result<Option<u64>, ProjectionError> {
    records.truncate(whole_groups(&records, target));
    let Some(last) = records.last().map(|record| record.header.sequence) else {
        return Ok(None);
    };
    let events = decode(&records)?;
    view.apply(&Batch { records: &records, events: &events })?;
    Ok(Some(last))
}

/// How many of `records`, from the first on, belong to groups that end in them at or before
/// `target`.
fn whole_groups(records: &[Record], target: u64) -> usize {
    let ends = |record: &Record| {
        let header = &record.header;
        header.sequence <= target
            && header.group_first.checked_add(header.group_count.into())
                == header.sequence.checked_add(1)
    };
    records.iter().rposition(ends).map_or(0, |at| at + 1)
}

pub(crate) fn decode(records: &[Record]) -> Result<Vec<Event>, ProjectionError> {
    records
        .iter()
        .map(|record| {
            record
                .event()
                .map_err(|error| ProjectionError::Event { sequence: record.header.sequence, error })
        })
        .collect()
}
