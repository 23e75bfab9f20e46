//! The thread that decides. It has W, the state with everything that was decided, and never waits
//! for the disk unless a whole batch does.

use super::answer::SubmitError;
use super::committer::{BatchInHand, Mark, Waiter, WaitsFor, size};
use super::encode::{self, Envelope};
use super::refusals::Limiter;
use super::remembered::{self, InFlight, Known};
use super::{Shared, Submission};
use crate::command::Command;
use crate::decide::{decide_in_place, too_large};
use crate::event::{Event, Unchanged};
use crate::ids::derived_uuid;
use crate::limits;
use crate::log::Head;
use crate::panics::{Place, caught, planted};
use crate::record::{Hash, Private, Record};
use crate::refusal::{Cause, Refusal};
use crate::stamp::{Actor, Stamp};
use crate::state::State;
use crate::time::{Clock, Timestamp};
use crossbeam_channel::{Receiver, Select, Sender};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The number of the id that a refusal for a panic has; the stamp's other ids have others.
const INTERNAL_ID: u32 = u32::MAX;

fn head(state: &State) -> Head {
    Head { sequence: state.sequence(), hash: state.position().hash }
}

pub(super) struct Decider {
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Arc<dyn Clock>,
    /// W: with everything that was decided.
    pub(super) state: State,
    /// W as it was before the first group of the batch in hand: V, or ahead of it by the batches
    /// that are on their way to the disk. No command works on this one. See [`Self::remake`].
    pub(super) base: State,
    pub(super) epoch: u64,
    pub(super) queue: Receiver<Submission>,
    pub(super) commits: Sender<BatchInHand>,
    pub(super) incarnation: u64,
    pub(super) in_flight: InFlight,
    pub(super) limiter: Limiter,
}

impl Decider {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let mut batch = self.new_batch();
        loop {
            if self.recover(&mut batch) {
                continue;
            }
            if batch.waiters.is_empty() {
                match self.queue.recv() {
                    Ok(submission) => self.take(submission, &mut batch),
                    Err(_) => return,
                }
            } else if batch.is_full() {
                if !self.commit(&mut batch) {
                    return;
                }
            } else if let Ok(submission) = self.queue.try_recv() {
                self.take(submission, &mut batch);
            } else if !self.wait(&mut batch) {
                return;
            }
        }
    }

    /// Waits for whichever comes first: another command for this batch, or the disk for it.
    fn wait(&mut self, batch: &mut BatchInHand) -> bool {
        let queue = self.queue.clone();
        let commits = self.commits.clone();
        let mut select = Select::new();
        let command = select.recv(&queue);
        let disk = select.send(&commits);
        let ready = select.select();
        if ready.index() == command {
            match ready.recv(&queue) {
                Ok(submission) => self.take(submission, batch),
                Err(_) => return self.commit(batch),
            }
            return true;
        }
        debug_assert_eq!(ready.index(), disk);
        let full = std::mem::replace(batch, self.new_batch());
        ready.send(&commits, self.finished(full)).is_ok()
    }

    fn commit(&mut self, batch: &mut BatchInHand) -> bool {
        let full = std::mem::replace(batch, self.new_batch());
        let finished = self.finished(full);
        self.commits.send(finished).is_ok()
    }

    fn finished(&mut self, mut batch: BatchInHand) -> BatchInHand {
        batch.state = Some(self.state.clone());
        self.base = self.state.clone();
        self.in_flight.forget_durable(self.shared.readable_sequence());
        batch
    }

    fn new_batch(&self) -> BatchInHand {
        BatchInHand::new(self.incarnation, self.head())
    }

    fn head(&self) -> Head {
        head(&self.state)
    }

    /// After an unknown outcome everything that was decided on top of it is void.
    fn recover(&mut self, batch: &mut BatchInHand) -> bool {
        let now = self.shared.incarnation.load(Ordering::Acquire);
        if now == self.incarnation {
            return false;
        }
        let Some(state) = self.shared.recovered.lock().take() else { return false };
        self.incarnation = now;
        self.base = state.clone();
        self.state = state;
        self.in_flight.clear();
        std::mem::replace(batch, self.new_batch()).answer_unknown();
        true
    }

    fn take(&mut self, submission: Submission, batch: &mut BatchInHand) {
        self.shared.queued.fetch_sub(1, Ordering::Relaxed);
        // The log may have been opened again while this waited for a command.
        self.recover(batch);
        let Submission { commands, stamp, digest, answer } = submission;
        // It may have waited since the disk was found full.
        if let Some(why) = self.shared.disk.unwritable() {
            let _ = answer.send(Err(SubmitError::ReadOnly(why)));
            return;
        }
        let started = Instant::now();
        let decided = self.guarded(&commands, &stamp, digest, batch);
        self.shared.decisions.note(started.elapsed());
        match decided {
            Ok(waits_for) => batch.waiters.push(Waiter { answer, waits_for }),
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        }
    }

    /// Decides within a border: a panic, which is a defect of this program, refuses this command
    /// and touches no other. The refusal is on record if the command has an id, so that it is not
    /// tried again and again.
    fn guarded(
        &mut self,
        commands: &[Command],
        stamp: &Stamp,
        digest: Option<Hash>,
        batch: &mut BatchInHand,
    ) -> Result<WaitsFor, SubmitError> {
        let now = self.clock.now().max(self.state.position().recorded_at);
        let mark = batch.mark();
        if let Err(panic) = caught(Place::Decide, || self.tell_suppressed(now, batch)) {
            tracing::error!(%panic, "suppressed refusals are not recorded");
            self.remake(mark, batch);
        }
        let mark = batch.mark();
        let panic = match caught(Place::Decide, || self.decide(commands, stamp, now, digest, batch))
        {
            Ok(decided) => return decided,
            Err(panic) => panic,
        };
        let id = derived_uuid(&stamp.seed, stamp.received_at, INTERNAL_ID);
        let command = commands.first().map_or("", Command::name);
        tracing::error!(%id, command, %panic, "deciding a command panicked; it is refused");
        self.remake(mark, batch);
        let refusal = || Refusal::from(Cause::Internal { id });
        // What tells of the command may be at fault too: then the record does without.
        for told in [commands, &[]] {
            let refused =
                caught(Place::Decide, || self.refuse(told, stamp, now, digest, refusal(), batch));
            match refused {
                Ok(waits_for) => return Ok(waits_for),
                Err(_) => self.remake(mark, batch),
            }
        }
        Ok(WaitsFor::Refused { refusal: refusal(), recorded_at: None })
    }

    /// Makes W anew without what came into the batch after `mark`: from `base`, on which no
    /// command has worked, and the groups that the batch had then. Collections of the state are
    /// persistent, and a clone never sees what is done to another; so nothing that a command
    /// half-did to W is left, not even where an update of a collection was broken off.
    fn remake(&mut self, mark: Mark, batch: &mut BatchInHand) {
        batch.cut(mark);
        let base = &self.base;
        let folded = caught(Place::Decide, || {
            let mut state = base.clone();
            for (record, event) in batch.groups() {
                state.apply(record.header.sequence, record.header.recorded_at, event);
                state.seal(record.hash, record.header.epoch);
            }
            state
        });
        self.state = match folded {
            Ok(state) => state,
            Err(panic) => {
                // These events were folded once before, so they can be folded. If not, nothing of
                // the batch is written, and those who wait for it ask again.
                tracing::error!(%panic, "what was decided cannot be folded again; it is dropped");
                std::mem::replace(batch, BatchInHand::new(self.incarnation, head(&self.base)))
                    .answer_unknown();
                self.base.clone()
            }
        };
        self.in_flight.forget_after(self.state.sequence());
    }

    fn decide(
        &mut self,
        commands: &[Command],
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        batch: &mut BatchInHand,
    ) -> Result<WaitsFor, SubmitError> {
        if let Err(cause) = stamp.check() {
            return Ok(WaitsFor::Refused { refusal: cause.into(), recorded_at: None });
        }
        if let (Some(id), Some(digest)) = (&stamp.command_id, digest) {
            match self.in_flight.look_up(id, digest, &*self.shared.reader) {
                Ok(Known::New) => {}
                Ok(Known::Same(first)) => {
                    return Ok(WaitsFor::Repeated { first, commands: commands.len() });
                }
                Ok(Known::Other(refusal)) => {
                    self.shared.refusals.count(&refusal.cause);
                    return Ok(WaitsFor::Refused { refusal, recorded_at: None });
                }
                Err(error) => {
                    tracing::error!(%error, "the outcome of a command id cannot be looked up");
                    return Err(SubmitError::OutcomeUnknown);
                }
            }
        }
        match self.try_group(commands, stamp, now, digest, batch) {
            Ok(waits_for) => Ok(waits_for),
            Err(refusal) => Ok(self.refuse(commands, stamp, now, digest, refusal, batch)),
        }
    }

    fn try_group(
        &mut self,
        commands: &[Command],
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        batch: &mut BatchInHand,
    ) -> Result<WaitsFor, Refusal> {
        planted("decide", stamp.request_id.as_deref());
        let mark = batch.mark();
        let before = self.head();
        let (mut events, unchanged) = decide_in_place(&mut self.state, commands, stamp, now)?;
        if events.is_empty() {
            return self.answered(commands, stamp, now, digest, unchanged, batch);
        }
        if stamp.command_id.is_some() && unchanged.iter().any(Option::is_some) {
            let event = Event::Answered(remembered::answered(&self.state, commands, &unchanged));
            self.state.apply(self.state.sequence() + 1, now, &event);
            events.push(event);
        }
        planted("encode", stamp.request_id.as_deref());
        match self.encoded(before, &events, stamp, now, digest, limits::GROUP_BYTES) {
            Ok(records) => {
                let first = before.sequence + 1;
                let count = self.append(events, records, stamp, digest, batch);
                Ok(WaitsFor::Accepted { first, count, unchanged })
            }
            Err(refusal) => {
                self.remake(mark, batch);
                Err(refusal)
            }
        }
    }

    fn encoded(
        &self,
        before: Head,
        events: &[Event],
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        most: usize,
    ) -> Result<Vec<(Record, Private)>, Refusal> {
        if events.len() > limits::GROUP_EVENTS {
            return Err(too_large("events of the group", limits::GROUP_EVENTS));
        }
        let ledger_id = self.state.position().ledger_id;
        let envelope = Envelope { ledger_id, epoch: self.epoch, stamp, recorded_at: now, digest };
        let records = encode::records(&envelope, before, events).map_err(|error| {
            Refusal::from(Cause::Malformed { what: format!("it cannot be encoded: {error}") })
        })?;
        let bytes: usize = records.iter().map(|(record, private)| size(record, private)).sum();
        if bytes > most {
            return Err(too_large("bytes of the group", most));
        }
        Ok(records)
    }

    /// Puts a group that is folded into W already into the batch; a full batch goes first.
    fn append(
        &mut self,
        events: Vec<Event>,
        records: Vec<(Record, Private)>,
        stamp: &Stamp,
        digest: Option<Hash>,
        batch: &mut BatchInHand,
    ) -> u32 {
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let (Some((first, _)), Some((last, _))) = (records.first(), records.last()) else {
            return 0;
        };
        if let (Some(id), Some(digest)) = (&stamp.command_id, digest) {
            self.in_flight.note(id.clone(), first.header.sequence, digest);
        }
        assert_eq!(self.state.sequence(), last.header.sequence, "W and the chain go together");
        self.state.seal(last.hash, self.epoch);
        batch.push(events, records);
        count
    }

    /// A command that changed nothing: on record if it has an id.
    fn answered(
        &mut self,
        commands: &[Command],
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        unchanged: Vec<Option<Unchanged>>,
        batch: &mut BatchInHand,
    ) -> Result<WaitsFor, Refusal> {
        if stamp.command_id.is_none() {
            return Ok(WaitsFor::Accepted { first: 0, count: 0, unchanged });
        }
        let event = Event::Answered(remembered::answered(&self.state, commands, &unchanged));
        // It stands in place of a group, and may be as large.
        let first = self.note(event, stamp, now, digest, limits::GROUP_BYTES, batch);
        // An outcome that cannot be kept is none for an id.
        let first = first.ok_or_else(|| too_large("bytes of the group", limits::GROUP_BYTES))?;
        Ok(WaitsFor::Accepted { first, count: 1, unchanged })
    }

    fn refuse(
        &mut self,
        commands: &[Command],
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        refusal: Refusal,
        batch: &mut BatchInHand,
    ) -> WaitsFor {
        if refusal.cause == Cause::SearchAgain {
            return WaitsFor::Refused { refusal, recorded_at: None };
        }
        self.shared.refusals.count(&refusal.cause);
        let noted_on_move =
            refusal.move_id.is_some() && matches!(refusal.cause, Cause::HoldsNothing { .. });
        let worth_it = refusal.cause.is_recorded() || noted_on_move;
        let recorded = stamp.command_id.is_some()
            || (worth_it && self.limiter.passes(&stamp.actor.project, self.clock.monotonic()));
        if !recorded {
            return WaitsFor::Refused { refusal, recorded_at: None };
        }
        let known = digest.unwrap_or_else(|| encode::digest(commands));
        let body = encode::rejected(commands, known, &refusal);
        // An id has one outcome: what is answered is what is kept.
        let refusal = if stamp.command_id.is_some() { encode::refusal_of(&body) } else { refusal };
        let event = Event::Rejected(body);
        let recorded_at = self.note(event, stamp, now, digest, limits::NOTE_BYTES, batch);
        WaitsFor::Refused { refusal, recorded_at }
    }

    /// Adds one event that changes no holding, as a group of its own.
    fn note(
        &mut self,
        event: Event,
        stamp: &Stamp,
        now: Timestamp,
        digest: Option<Hash>,
        most: usize,
        batch: &mut BatchInHand,
    ) -> Option<u64> {
        let before = self.head();
        let events = vec![event];
        let records = match self.encoded(before, &events, stamp, now, digest, most) {
            Ok(records) => records,
            Err(refusal) => {
                tracing::warn!(?refusal, "not recorded");
                return None;
            }
        };
        for event in &events {
            self.state.apply(before.sequence + 1, now, event);
        }
        self.append(events, records, stamp, digest, batch);
        Some(before.sequence + 1)
    }

    fn tell_suppressed(&mut self, now: Timestamp, batch: &mut BatchInHand) {
        if let Some(event) = self.limiter.told(self.clock.monotonic()) {
            let seed = *blake3::hash(&self.head().hash.0).as_bytes();
            let mut short = [0; 16];
            short.copy_from_slice(&seed[..16]);
            let stamp = Stamp {
                seed: short,
                received_at: now,
                actor: Actor::default(),
                request_id: None,
                command_id: None,
            };
            self.note(event, &stamp, now, None, limits::NOTE_BYTES, batch);
        }
    }
}
