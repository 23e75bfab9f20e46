//! The story of one move: each event that touched it, in order.

use ledger::amounts::Holding;
use ledger::command::Via;
use ledger::event::{Event, Finding, Move, MoveState};
use ledger::ids::ConsumerUuid;
use ledger::record::Header;
use ledger::refusal::{Cause, Shortage};
use ledger::time::Timestamp;
use std::sync::Arc;

/// Steps that are kept of one move's beginning.
const FIRST_STEPS: usize = 64;
/// Steps that are kept of one move's end.
const LAST_STEPS: usize = 192;

/// A move as it stands, and how it came there.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// As its last event left it.
    pub this: Move,
    /// When it first opened.
    pub opened_at: Timestamp,
    /// The sequence of the event that first opened it.
    pub opened_sequence: u64,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// The sequence of the event that last changed it.
    pub changed_sequence: u64,
    /// What happened, oldest first. Of a very long story the middle is left out, and of one that
    /// ended a while ago all of it; the log has it.
    pub steps: Vec<Arc<Step>>,
    /// How many steps were left out.
    pub left_out: u64,
}

/// One event of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its sequence.
    pub sequence: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// Its kind, such as `MovedToMigration`.
    pub kind: &'static str,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// Where the move stood after it.
    pub state: MoveState,
    /// The request that did it.
    pub request_id: Option<String>,
    /// Which call it came by; none for a refusal.
    pub via: Option<Via>,
    /// Why, if the caller said so.
    pub reason: Option<String>,
    /// Something an operator should look at.
    pub finding: Option<Finding>,
    /// Why it was refused and what was lacking where, if it was.
    pub refused: Option<(Cause, Vec<Shortage>)>,
    /// What was held as the source after it.
    pub source: Holding,
    /// What was held as the destination after it.
    pub destination: Holding,
}

/// A side of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the consumer came from.
    Source,
    /// Where it goes.
    Destination,
}

impl Story {
    /// What is still held, on which side, and by whom.
    pub fn held(&self) -> impl Iterator<Item = (Side, ConsumerUuid, &Holding)> {
        let source = self.this.migration.unwrap_or(self.this.instance);
        [
            (Side::Source, source, &self.this.source),
            (Side::Destination, self.this.instance, &self.this.destination),
        ]
        .into_iter()
        .filter(|(_, _, holding)| !holding.is_empty())
    }

    /// Things an operator should look at, with the sequence of each.
    pub fn findings(&self) -> impl Iterator<Item = (u64, Finding)> + '_ {
        self.steps.iter().filter_map(|step| Some((step.sequence, step.finding?)))
    }

    pub(super) fn begin(this: &Move, header: &Header) -> Self {
        Self {
            this: this.clone(),
            opened_at: header.recorded_at,
            opened_sequence: header.sequence,
            changed_at: header.recorded_at,
            changed_sequence: header.sequence,
            steps: Vec::new(),
            left_out: 0,
        }
    }

    /// Keeps what finds the move, and neither its steps nor what it held: it has ended.
    pub(super) fn forget_steps(&mut self) {
        self.left_out += self.steps.len() as u64;
        self.steps = Vec::new();
        self.this.source.clear();
        self.this.destination.clear();
        self.this.alternates = Vec::new();
    }

    /// Goes on with an event after which the move stands as `this`.
    pub(super) fn go_on(&mut self, this: &Move, header: &Header, event: &Event) {
        self.this.clone_from(this);
        self.changed_at = header.recorded_at;
        self.changed_sequence = header.sequence;
        self.note(header, event);
    }

    /// Notes an event that left the move as it is.
    pub(super) fn note(&mut self, header: &Header, event: &Event) {
        let body = event.allocations();
        let refused = match event {
            Event::Rejected(body) => Some((body.cause.clone(), body.shortages.clone())),
            _ => None,
        };
        // A refusal leaves the sides as they were spelled last, whatever was renamed since.
        let last = self.steps.last().filter(|_| body.is_none());
        let (source, destination) = match last {
            Some(step) => (step.source.clone(), step.destination.clone()),
            None => (self.this.source.clone(), self.this.destination.clone()),
        };
        self.steps.push(Arc::new(Step {
            sequence: header.sequence,
            at: header.recorded_at,
            kind: event.kind(),
            attempt: self.this.attempt,
            state: self.this.state,
            request_id: header.request_id.clone(),
            via: body.map(|body| body.via),
            reason: body.and_then(|body| body.reason.clone()),
            finding: body.and_then(|body| body.finding),
            refused,
            source,
            destination,
        }));
        if self.steps.len() > FIRST_STEPS + LAST_STEPS {
            self.steps.remove(FIRST_STEPS);
            self.left_out += 1;
        }
    }
}
