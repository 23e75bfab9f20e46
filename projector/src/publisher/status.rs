//! What is known of the publisher's health. It is judged by acknowledged publishes, not by
//! whether a connection stands: a server whose disk is full stays connected (J10).

use super::fault::Fault;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long events may wait for an acknowledgement before that is an alarm.
const STALLED_AFTER: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How the publisher is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherStatus {
    /// The stream's name.
    pub stream: String,
    /// Whether a session with the server stands.
    pub connected: bool,
    /// The last event that the stream is known to hold.
    pub published: u64,
    /// How many durable events the stream lacks.
    pub lag: u64,
    /// Something an operator should look at: the stream was damaged and is being filled again, it
    /// belongs to somebody else, or nothing is acknowledged. It goes when that is over.
    pub alarm: Option<String>,
    /// The newest alarm, also one that is over.
    pub last_alarm: Option<String>,
    /// How many alarms there were.
    pub alarms: u64,
    /// What interrupted publishing last, while it is interrupted.
    pub fault: Option<String>,
    /// What may go wrong with the stream as it is set up: limits that drop events, others who may
    /// publish to it.
    pub warnings: Vec<String>,
}

/// Where the publisher notes how it is.
pub(super) struct Board {
    stream: String,
    durable: watch::Receiver<u64>,
    notes: Mutex<Notes>,
}

struct Notes {
    connected: bool,
    published: u64,
    /// When an event was acknowledged last, or none was waiting.
    progress: Instant,
    stalled: bool,
    /// An alarm, and the event with whose publication it is over; none: with the next session.
    alarm: Option<(String, Option<u64>)>,
    last_alarm: Option<String>,
    alarms: u64,
    fault: Option<String>,
    warnings: Vec<String>,
}

impl Board {
    pub(super) fn new(stream: String, durable: watch::Receiver<u64>) -> Self {
        let notes = Notes {
            connected: false,
            published: 0,
            progress: Instant::now(),
            stalled: false,
            alarm: None,
            last_alarm: None,
            alarms: 0,
            fault: None,
            warnings: Vec::new(),
        };
        Self { stream, durable, notes: Mutex::new(notes) }
    }

    pub(super) fn published(&self) -> u64 {
        self.notes.lock().published
    }

    /// A session stands, and the stream holds everything up to `last`.
    pub(super) fn session(&self, last: u64) {
        let mut notes = self.notes.lock();
        notes.connected = true;
        notes.fault = None;
        if matches!(notes.alarm, Some((_, None))) {
            notes.alarm = None;
        }
        notes.published = last;
        notes.settle();
    }

    /// Event `sequence` was acknowledged.
    pub(super) fn acknowledged(&self, sequence: u64) {
        let mut notes = self.notes.lock();
        notes.published = sequence;
        notes.progress = Instant::now();
        notes.stalled = false;
        notes.settle();
    }

    /// What may go wrong with the stream as it is set up; each is logged once.
    pub(super) fn warn(&self, warnings: Vec<String>) {
        let mut notes = self.notes.lock();
        for warning in warnings.iter().filter(|warning| !notes.warnings.contains(warning)) {
            tracing::warn!(stream = self.stream, "{warning}");
        }
        notes.warnings = warnings;
    }

    /// The stream was damaged. The alarm is over when everything that is durable now is published.
    pub(super) fn damaged(&self, what: &str) {
        let until = *self.durable.borrow();
        self.raise(format!("{what}; it is filled again from the ledger"), Some(until));
    }

    /// Something foreign stands where event `from` belongs, behind more events than are published
    /// again for it. The alarm is over as above.
    pub(super) fn cut(&self, what: &str, from: u64) {
        let until = *self.durable.borrow();
        let told = format!("{what}; it begins anew at event {from}, older ones are in the ledger");
        self.raise(told, Some(until));
    }

    pub(super) fn fault(&self, fault: &Fault) {
        if let Fault::NotOurs(what) = fault {
            self.raise(what.clone(), None);
        }
        let mut notes = self.notes.lock();
        notes.connected = false;
        notes.fault = Some(fault.to_string());
    }

    fn raise(&self, what: String, until: Option<u64>) {
        let mut notes = self.notes.lock();
        let news = notes.alarm.as_ref().is_none_or(|(old, _)| *old != what);
        if news {
            tracing::error!(stream = self.stream, "{what}");
            notes.alarms += 1;
            notes.last_alarm = Some(what.clone());
        }
        notes.alarm = Some((what, until));
    }

    fn look(&self) {
        let durable = *self.durable.borrow();
        let mut notes = self.notes.lock();
        if notes.published >= durable {
            notes.progress = Instant::now();
            notes.stalled = false;
        } else if !notes.stalled && notes.progress.elapsed() >= STALLED_AFTER {
            notes.stalled = true;
            notes.alarms += 1;
            let what = notes.stall(durable);
            tracing::error!(stream = self.stream, fault = ?notes.fault, "{what}");
            notes.last_alarm = Some(what);
        }
    }

    pub(super) fn status(&self) -> PublisherStatus {
        self.look();
        let durable = *self.durable.borrow();
        let notes = self.notes.lock();
        let stall = notes.stalled.then(|| notes.stall(durable));
        PublisherStatus {
            stream: self.stream.clone(),
            connected: notes.connected,
            published: notes.published,
            lag: durable.saturating_sub(notes.published),
            alarm: notes.alarm.as_ref().map(|(what, _)| what.clone()).or(stall),
            last_alarm: notes.last_alarm.clone(),
            alarms: notes.alarms,
            fault: notes.fault.clone(),
            warnings: notes.warnings.clone(),
        }
    }
}

impl Notes {
    /// Ends the alarm if what it waits for is published.
    fn settle(&mut self) {
        if let Some((what, Some(until))) = &self.alarm
            && self.published >= *until
        {
            tracing::info!(published = self.published, "over: {what}");
            self.alarm = None;
        }
    }

    fn stall(&self, durable: u64) -> String {
        format!(
            "{} events wait and none was acknowledged for {} seconds",
            durable.saturating_sub(self.published),
            self.progress.elapsed().as_secs()
        )
    }
}

/// Looks again and again whether publishing has stalled.
pub(super) async fn watch(board: Arc<Board>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        board.look();
    }
}
