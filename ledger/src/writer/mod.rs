//! The ledger as its users see it: submit commands, read states, follow what is durable.
//!
//! ```text
//! submit -> queue -> decider (one thread, W) -> committer (one thread, the disk) -> V -> answers
//! ```
//!
//! While one batch is at the disk the next is decided on W, a state ahead of the disk. Every answer
//! made from W waits until the disk has reached it.

mod answer;
mod committed;
mod committer;
mod decide_times;
mod decider;
#[cfg(test)]
mod defects;
mod disk;
mod encode;
#[cfg(test)]
mod interleavings;
mod open;
mod refusals;
mod remembered;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod seen;
mod space;
#[cfg(test)]
mod tests;
mod unwritable;

pub use answer::{Answer, Outcome, SubmitError};
pub use committed::{Committed, Tail};
pub use decide_times::DecideTimes;
pub use open::{OpenError, Options};
pub use refusals::RefusalCounts;
pub use space::FreeSpace;
pub use unwritable::{Unwritable, UnwritableCause};

use crate::command::Command;
use crate::log::{IndexKey, LogError, LogReader};
use crate::memory::Part;
use crate::record::{Hash, Private, Record};
use crate::stamp::Stamp;
use crate::state::State;
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use committed::Ring;
use crossbeam_channel::{Sender, TrySendError};
use disk::Disk;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

/// A ledger, open for writing. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

/// What the threads and the handles share.
pub(crate) struct Shared {
    dir: Option<PathBuf>,
    queue: Mutex<Option<Sender<Submission>>>,
    view: ArcSwap<State>,
    durable: watch::Sender<u64>,
    /// Up to where the log may be read: never behind what the view or `durable` say.
    readable: AtomicU64,
    ring: Mutex<Ring>,
    reader: Arc<dyn LogReader>,
    /// Why the log cannot be written, apart from what is known of the disk.
    read_only: Mutex<Option<Unwritable>>,
    disk: Disk,
    /// Dropped when the ledger is closed: then nobody watches the disk any more.
    watching: Mutex<Option<Sender<()>>>,
    /// Goes up with each unknown outcome: what was decided before is void.
    incarnation: AtomicU64,
    recovered: Mutex<Option<State>>,
    fatal: watch::Sender<Option<String>>,
    refusals: RefusalCounts,
    queued: AtomicU64,
    decisions: DecideTimes,
    fsync_nanos: AtomicU64,
    batches: AtomicU64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// One list of commands on its way.
pub(crate) struct Submission {
    commands: Vec<Command>,
    stamp: Stamp,
    /// The digest of the commands, if they have an id.
    digest: Option<Hash>,
    answer: oneshot::Sender<Result<Answer, SubmitError>>,
}

/// How the ledger is doing.
#[derive(Clone, Debug)]
pub struct Health {
    /// Why writes are refused or uncertain, if they are.
    pub read_only: Option<Unwritable>,
    /// Bytes that are free on the ledger's file system; 0: not known, or there is none.
    pub free_bytes: u64,
    /// Bytes that must be free for writes to be taken.
    pub min_free_bytes: u64,
    /// What RocksDB's own threads could not do, since the start.
    pub background_errors: u64,
    /// The last durable sequence.
    pub durable: u64,
    /// Submissions waiting to be decided.
    pub queued: u64,
    /// How long the last commit took, fsync included, in nanoseconds.
    pub last_commit_nanos: u64,
    /// Commits since the start.
    pub batches: u64,
}

impl Ledger {
    /// Hands a list of commands to the writer: one atomic group. The receiver gets the answer once
    /// what it was made from is durable.
    ///
    /// # Errors
    /// [`SubmitError`] at once if the queue is full, the ledger is read-only, or it is closed.
    pub fn submit(
        &self,
        commands: Vec<Command>,
        stamp: Stamp,
    ) -> Result<oneshot::Receiver<Result<Answer, SubmitError>>, SubmitError> {
        if let Some(why) = self.shared.unwritable() {
            return Err(SubmitError::ReadOnly(why));
        }
        let (answer, receiver) = oneshot::channel();
        // Here and not on the writer's thread: of a long list it takes a while.
        let digest = stamp.command_id.as_ref().map(|_| encode::digest(&commands));
        let submission = Submission { commands, stamp, digest, answer };
        let queue = self.shared.queue.lock().clone().ok_or(SubmitError::Closed)?;
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        queue.try_send(submission).map_err(|error| {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => SubmitError::QueueFull,
                TrySendError::Disconnected(_) => SubmitError::Closed,
            }
        })?;
        Ok(receiver)
    }

    /// Like [`Self::submit`], and waits for the answer. Not for asynchronous code.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn submit_blocking(
        &self,
        commands: Vec<Command>,
        stamp: Stamp,
    ) -> Result<Answer, SubmitError> {
        self.submit(commands, stamp)?.blocking_recv().map_err(|_| SubmitError::OutcomeUnknown)?
    }

    /// The durable state, V. It never changes; ask again for a newer one.
    pub fn view(&self) -> Arc<State> {
        self.shared.view.load_full()
    }

    /// The last durable sequence, to be watched.
    pub fn durable(&self) -> watch::Receiver<u64> {
        self.shared.durable.subscribe()
    }

    /// Set once the ledger cannot go on: the process should end with this reason.
    pub fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.shared.fatal.subscribe()
    }

    /// The latest batches from the one that holds event `from` on, as long as they are kept in
    /// memory; `None`: read the log. No batches: nothing newer yet.
    pub fn tail(&self, from: u64) -> Option<Tail> {
        self.shared.ring.lock().from(from)
    }

    /// Reads what is durable.
    pub fn reader(&self) -> Arc<dyn LogReader> {
        Arc::new(DurableReader { shared: Arc::clone(&self.shared) })
    }

    /// Counts of refusals by cause.
    pub fn refusals(&self) -> &RefusalCounts {
        &self.shared.refusals
    }

    /// How long decisions took.
    pub fn decide_times(&self) -> &DecideTimes {
        &self.shared.decisions
    }

    /// How the ledger is doing.
    pub fn health(&self) -> Health {
        Health {
            read_only: self.shared.unwritable().or_else(|| self.shared.disk.late()),
            free_bytes: self.shared.disk.free.load(Ordering::Relaxed),
            min_free_bytes: self.shared.disk.least.load(Ordering::Relaxed),
            background_errors: self.shared.disk.background_errors.load(Ordering::Relaxed),
            durable: self.view().sequence(),
            queued: self.shared.queued.load(Ordering::Relaxed),
            last_commit_nanos: self.shared.fsync_nanos.load(Ordering::Relaxed),
            batches: self.shared.batches.load(Ordering::Relaxed),
        }
    }

    /// What it holds in memory besides the state and what is in hand, by part.
    pub fn memory(&self) -> Vec<Part> {
        let mut parts = self.shared.reader.memory();
        parts.push(("latest_events", self.shared.ring.lock().bytes() as u64));
        parts
    }

    /// The ledger's directory; none for one in memory.
    pub fn dir(&self) -> Option<&PathBuf> {
        self.shared.dir.as_ref()
    }

    /// Takes no more commands, answers those in hand, and writes a checkpoint.
    pub fn close(&self) {
        drop(self.shared.queue.lock().take());
        drop(self.shared.watching.lock().take());
        for thread in std::mem::take(&mut *self.shared.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a writer thread ended by a panic");
            }
        }
        if let Some(dir) = &self.shared.dir
            && let Err(error) = self.view().write_checkpoint(dir)
        {
            tracing::warn!(%error, "no checkpoint at the end; the next start folds more of the log");
        }
    }
}

impl Shared {
    /// Why no commands are taken.
    fn unwritable(&self) -> Option<Unwritable> {
        self.read_only.lock().clone().or_else(|| self.disk.unwritable())
    }

    fn readable_sequence(&self) -> u64 {
        self.readable.load(Ordering::Acquire)
    }
}

/// Shows no more of a log than is durable.
struct DurableReader {
    shared: Arc<Shared>,
}

impl LogReader for DurableReader {
    fn head(&self) -> Result<crate::log::Head, LogError> {
        let view = self.shared.view.load();
        Ok(crate::log::Head { sequence: view.sequence(), hash: view.position().hash })
    }

    fn read(&self, from: u64, max_records: usize) -> Result<Vec<Record>, LogError> {
        let durable = self.shared.readable_sequence();
        if from > durable {
            return Ok(Vec::new());
        }
        let left = usize::try_from(durable - from + 1).unwrap_or(usize::MAX);
        self.shared.reader.read(from, max_records.min(left))
    }

    fn record(&self, sequence: u64) -> Result<Option<Record>, LogError> {
        if sequence > self.shared.readable_sequence() {
            return Ok(None);
        }
        self.shared.reader.record(sequence)
    }

    fn private(&self, sequence: u64) -> Result<Option<Private>, LogError> {
        if sequence > self.shared.readable_sequence() {
            return Ok(None);
        }
        self.shared.reader.private(sequence)
    }

    fn index(&self, key: &IndexKey, after: u64, limit: usize) -> Result<Vec<u64>, LogError> {
        let durable = self.shared.readable_sequence();
        let mut found = self.shared.reader.index(key, after, limit)?;
        found.retain(|sequence| *sequence <= durable);
        Ok(found)
    }

    fn sequence_at(&self, time: Timestamp) -> Result<u64, LogError> {
        Ok(self.shared.reader.sequence_at(time)?.min(self.shared.readable_sequence()))
    }
}
