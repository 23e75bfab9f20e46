//! The thread at the disk: one batch, one write, one fsync; then `acknowledged`, V, `durable`, the
//! answers. If the outcome is unknown it opens the log again and finds out what is there.

use super::Shared;
use super::answer::{Answer, Group, Outcome, SubmitError};
use super::committed::Committed;
use super::remembered::answer_from_log;
use super::unwritable::{Unwritable, UnwritableCause};
use crate::event::{Event, Unchanged};
use crate::fold::fold;
use crate::limits;
use crate::log::{Acknowledged, Appended, Batch, Head, Log};
use crate::panics::{Place, caught, planted};
use crate::record::{Private, Record};
use crate::refusal::Refusal;
use crate::state::State;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The pause after a log that could not be opened again; the next is twice as long ...
const PAUSE: Duration = Duration::from_millis(200);
/// ... up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why a log was not opened again.
enum Down {
    /// The disk may be better later.
    ForNow(String),
    /// What was acknowledged is not there.
    ForGood(String),
}

/// A batch on its way to the disk, with those who wait for it.
pub(super) struct BatchInHand {
    incarnation: u64,
    expected: Head,
    batch: Batch,
    bytes: usize,
    pub(super) waiters: Vec<Waiter>,
    /// W after it.
    pub(super) state: Option<State>,
}

/// Somebody who waits until a batch is durable.
pub(super) struct Waiter {
    pub(super) answer: oneshot::Sender<Result<Answer, SubmitError>>,
    pub(super) waits_for: WaitsFor,
}

/// What will be answered.
pub(super) enum WaitsFor {
    /// A group of this batch, or (count 0) that nothing changed.
    Accepted { first: u64, count: u32, unchanged: Vec<Option<Unchanged>> },
    /// A refusal.
    Refused { refusal: Refusal, recorded_at: Option<u64> },
    /// What the group beginning here was answered; it is that of a list of so many commands.
    Repeated { first: u64, commands: usize },
}

impl BatchInHand {
    pub(super) fn new(incarnation: u64, expected: Head) -> Self {
        Self {
            incarnation,
            expected,
            batch: Batch::default(),
            bytes: 0,
            waiters: Vec::new(),
            state: None,
        }
    }

    /// Whether another group might not fit, with the note of suppressed refusals before it.
    pub(super) fn is_full(&self) -> bool {
        self.bytes + limits::GROUP_BYTES + limits::NOTE_BYTES > limits::BATCH_BYTES
            || self.waiters.len() >= limits::QUEUE
    }

    pub(super) fn push(&mut self, events: Vec<Event>, records: Vec<(Record, Private)>) {
        for (record, private) in records {
            self.bytes += size(&record, &private);
            self.batch.records.push(record);
            self.batch.privates.push(Some(private));
        }
        self.batch.events.extend(events);
    }

    /// Where the batch ends at present.
    pub(super) fn mark(&self) -> Mark {
        Mark { records: self.batch.records.len(), bytes: self.bytes }
    }

    /// Drops what came in after `mark`. Those who wait stay: each waits for what came before it.
    pub(super) fn cut(&mut self, mark: Mark) {
        self.batch.records.truncate(mark.records);
        self.batch.privates.truncate(mark.records);
        self.batch.events.truncate(mark.records);
        self.bytes = mark.bytes;
    }

    /// Its records with their events.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Record, &Event)> {
        self.batch.records.iter().zip(&self.batch.events)
    }

    pub(super) fn answer_unknown(self) {
        answer_unknown(self.waiters);
    }

    /// See [`planted`].
    fn plant(&self, place: &str) {
        for record in &self.batch.records {
            planted(place, record.header.request_id.as_deref());
        }
    }
}

fn answer_unknown(waiters: Vec<Waiter>) {
    for waiter in waiters {
        let _ = waiter.answer.send(Err(SubmitError::OutcomeUnknown));
    }
}

/// A place in a batch, between two groups.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    records: usize,
    bytes: usize,
}

/// What a record and its private part count for, in groups and batches, in bytes.
pub(super) fn size(record: &Record, private: &Private) -> usize {
    record.bytes().len() + private.bytes().len()
}

pub(super) struct Committer {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Box<dyn Log>,
    pub(super) acknowledged: Option<Acknowledged>,
    pub(super) commits: Receiver<BatchInHand>,
    pub(super) checkpoint_every: u64,
    pub(super) checkpoint_at: u64,
    pub(super) incarnation: u64,
    pub(super) checkpointing: Option<std::thread::JoinHandle<()>>,
}

impl Committer {
    /// Works until the decider is gone.
    pub(super) fn run(mut self) {
        // A start that folded a long log must not be followed by another.
        self.checkpoint();
        while let Ok(batch) = self.commits.recv() {
            if batch.incarnation != self.incarnation {
                batch.answer_unknown();
                continue;
            }
            self.commit(batch);
        }
        if let Some(checkpointing) = self.checkpointing.take() {
            let _ = checkpointing.join();
        }
        self.log.close();
    }

    fn commit(&mut self, mut batch: BatchInHand) {
        let waiters = std::mem::take(&mut batch.waiters);
        let Some(head) = batch.batch.head() else { return self.answer(waiters, None) };
        // After a panic on the way nobody knows how far it came: the log is opened again and the
        // state folded from it, so nothing of what was half done is used.
        match caught(Place::Commit, || self.written(batch, head)) {
            Ok(Ok(committed)) => self.answer(waiters, Some(&committed)),
            Ok(Err(reason)) => return self.recover(waiters, &reason),
            Err(panic) => return self.recover(waiters, &panic.to_string()),
        }
        if let Err(panic) = caught(Place::Checkpoint, || self.checkpoint()) {
            tracing::error!(%panic, "no checkpoint is begun");
        }
    }

    /// Takes a batch to the disk and to the readers.
    ///
    /// # Errors
    /// Why it is not known whether it is on disk.
    fn written(&mut self, mut batch: BatchInHand, head: Head) -> Result<Arc<Committed>, String> {
        // The decider takes no group into a batch that has no room for the largest one.
        assert!(batch.bytes <= limits::BATCH_BYTES, "a batch is larger than its limit");
        batch.plant("append");
        let started = Instant::now();
        self.shared.disk.committing(Some(started));
        let appended = self.log.append(&batch.batch, batch.expected);
        self.shared.disk.committing(None);
        match appended {
            Appended::Committed => {}
            Appended::Refused(actual) => {
                return Err(format!(
                    "the log ends at {} instead of {}",
                    actual.sequence, batch.expected.sequence
                ));
            }
            Appended::Unknown(reason) => return Err(reason),
        }
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.shared.fsync_nanos.store(nanos, Ordering::Relaxed);
        self.shared.batches.fetch_add(1, Ordering::Relaxed);
        batch.plant("publish");
        let state = batch.state.take().ok_or("the batch came without its state")?;
        let state = Arc::new(state);
        assert_eq!(state.sequence(), head.sequence, "a batch ends where its state does");
        let committed = Arc::new(Committed {
            first: batch.expected.sequence + 1,
            last: head.sequence,
            records: batch.batch.records,
            events: batch.batch.events,
        });
        self.publish(state, Some(Arc::clone(&committed)), head);
        Ok(committed)
    }

    /// Lets everybody see what is durable now. The order counts:
    ///
    /// 1. `acknowledged`, before anybody can learn of these events. The process may be killed right
    ///    after it: the log is synced, so it reaches at least as far as the file says. Killed right
    ///    before it, the file is older, and nobody knows what it does not name.
    /// 2. The ring and the bound of the log's readers: event N can be had.
    /// 3. The view: whoever finds sequence N in it gets event N.
    /// 4. `durable`: whoever is woken by it with N finds N in the view, the ring and the log.
    /// 5. The answers (by the caller): whoever gets one finds its own write everywhere.
    fn publish(&self, state: Arc<State>, committed: Option<Arc<Committed>>, head: Head) {
        if let Some(file) = &self.acknowledged
            && let Err(error) = file.note(head)
        {
            tracing::warn!(%error, "the acknowledged position is not noted");
        }
        match committed {
            Some(committed) => self.shared.ring.lock().push(committed, Arc::clone(&state)),
            None => self.shared.ring.lock().restart(Arc::clone(&state)),
        }
        self.shared.readable.store(head.sequence, Ordering::Release);
        self.shared.view.store(state);
        self.shared.durable.send_replace(head.sequence);
    }

    fn answer(&self, waiters: Vec<Waiter>, committed: Option<&Arc<Committed>>) {
        let view = self.shared.view.load_full();
        for Waiter { answer, waits_for } in waiters {
            // What was decided stands: whoever asks again by command id gets it.
            let told = caught(Place::Answer, || self.told(waits_for, &view, committed));
            let told = told.unwrap_or_else(|panic| {
                tracing::error!(%panic, "an outcome cannot be told");
                Err(SubmitError::OutcomeUnknown)
            });
            let _ = answer.send(told);
        }
    }

    fn told(
        &self,
        waits_for: WaitsFor,
        view: &Arc<State>,
        committed: Option<&Arc<Committed>>,
    ) -> Result<Answer, SubmitError> {
        let sequence = view.sequence();
        match waits_for {
            WaitsFor::Accepted { first, count, unchanged } => Ok(Answer {
                outcome: Outcome::Accepted { unchanged },
                sequence,
                repeated: false,
                group: group_of(committed, first, count),
            }
            .planted()),
            WaitsFor::Refused { refusal, recorded_at } => Ok(Answer {
                group: recorded_at.and_then(|first| group_of(committed, first, 1)),
                outcome: Outcome::Refused { refusal, recorded_at },
                sequence,
                repeated: false,
            }),
            WaitsFor::Repeated { first, commands } => {
                answer_from_log(first, commands, &*self.shared.reader, sequence).map_err(|error| {
                    tracing::error!(%error, first, "a repeated command's outcome cannot be read");
                    SubmitError::OutcomeUnknown
                })
            }
        }
    }

    /// The outcome of a batch is unknown: nobody is told it failed. The log is opened again; what
    /// it holds decides. While it cannot be opened, reads go on and commands are refused.
    fn recover(&mut self, waiters: Vec<Waiter>, reason: &str) {
        tracing::error!(reason, "the outcome of a commit is unknown; the log is opened again");
        self.refuse(format!(
            "a commit's outcome is unknown ({reason}); the log is being opened again"
        ));
        self.shared.disk.committing(None);
        answer_unknown(waiters);
        let (mut pause, mut known) = (PAUSE, String::new());
        loop {
            let reopened = caught(Place::Commit, || self.reopened());
            match reopened.unwrap_or_else(|panic| Err(Down::ForGood(panic.to_string()))) {
                Ok(state) => return self.resume(state),
                Err(Down::ForGood(error)) => {
                    tracing::error!(error, "the log cannot be used again");
                    self.refuse(error.clone());
                    self.shared.fatal.send_replace(Some(error));
                    break;
                }
                Err(Down::ForNow(error)) => {
                    if error != known {
                        tracing::error!(error, "the log cannot be opened; it is tried again");
                    }
                    self.refuse(format!(
                        "the log cannot be opened for writing: {error} (first: {reason}). It is tried \
                         again every few seconds; reads go on"
                    ));
                    known = error;
                    if !self.wait(pause) {
                        break;
                    }
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            }
        }
        // Nothing can be written any more; whoever still waits is told so.
        self.incarnation = u64::MAX;
    }

    fn refuse(&self, reason: String) {
        *self.shared.read_only.lock() = Some(Unwritable::new(UnwritableCause::DiskFailed, reason));
    }

    fn resume(&mut self, state: State) {
        let head = Head { sequence: state.sequence(), hash: state.position().hash };
        let state = Arc::new(state);
        self.publish(Arc::clone(&state), None, head);
        self.incarnation += 1;
        *self.shared.recovered.lock() = Some((*state).clone());
        self.shared.incarnation.store(self.incarnation, Ordering::Release);
        *self.shared.read_only.lock() = None;
        tracing::warn!(sequence = head.sequence, "the log is open again");
    }

    /// Waits; what was decided on top of the unknown comes to nothing meanwhile. False: the ledger
    /// is closed.
    fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.commits.recv_deadline(until) {
                Ok(batch) => batch.answer_unknown(),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn reopened(&mut self) -> Result<State, Down> {
        let now = |error: &dyn std::fmt::Display| Down::ForNow(error.to_string());
        self.log.reopen().map_err(|error| now(&error))?;
        let mut state = (*self.shared.view.load_full()).clone();
        let target = self.log.head().sequence;
        if target < state.sequence() {
            return Err(Down::ForGood(format!(
                "event {} was acknowledged, the log ends at {target}",
                state.sequence()
            )));
        }
        let reader = self.log.reader();
        fold(&mut state, &*reader, target, &mut |_, _| {}).map_err(|error| now(&error))?;
        Ok(state)
    }

    /// Writes a checkpoint beside the work every so many events.
    fn checkpoint(&mut self) {
        let Some(dir) = self.shared.dir.clone() else { return };
        let state = self.shared.view.load_full();
        if state.sequence() < self.checkpoint_at.saturating_add(self.checkpoint_every) {
            return;
        }
        // What room there is belongs to the log.
        if self.shared.disk.unwritable().is_some() {
            return;
        }
        if self.checkpointing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.checkpoint_at = state.sequence();
        self.checkpointing = std::thread::Builder::new()
            .name("checkpoint".into())
            .spawn(move || match caught(Place::Checkpoint, || state.write_checkpoint(&dir)) {
                Ok(Ok(path)) => tracing::info!(path = %path.display(), "checkpoint written"),
                Ok(Err(error)) => tracing::warn!(%error, "checkpoint not written"),
                Err(panic) => tracing::error!(%panic, "checkpoint not written"),
            })
            .ok();
    }
}

fn group_of(committed: Option<&Arc<Committed>>, first: u64, count: u32) -> Option<Group> {
    let committed = committed.filter(|_| count > 0)?;
    Some(Group { committed: Arc::clone(committed), first, count })
}
