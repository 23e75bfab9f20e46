//! What all streams of events share: the latest events as they are sent, and the room for what
//! waits to be sent.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ledger::Ledger;
use ledger::record::Header;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::events::EventBody;

/// Streams at a time.
pub const AT_A_TIME: usize = 256;
/// Bytes of one stream that may wait for its reader: two pieces, so that the next is ready when one
/// is gone. An event that is longer waits alone.
pub const EACH: usize = 64 * 1024;
/// Bytes of all streams together that may wait for their readers: all streams at once, as long as
/// events are of usual size; a hundred million bytes of the largest events wait in turn.
pub const TOGETHER: usize = AT_A_TIME * EACH;
/// About the bytes of one piece.
pub const PIECE: usize = EACH / 2;
/// Bytes of the latest events that are kept as they are sent: readers that follow closely are some
/// dozens of events apart.
const LATEST: usize = 2 * 1024 * 1024;

/// What all streams share.
pub struct SharedEvents {
    /// So many streams at a time.
    pub turns: Arc<Semaphore>,
    /// A permit for each byte that may wait, all streams together.
    pub room: Arc<Semaphore>,
    /// So many read the log at a time: each that does holds a thread.
    pub reads: Semaphore,
    latest: Mutex<Latest>,
    ended: [AtomicU64; 2],
}

/// Why the server ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its reader took nothing for too long.
    Slow,
    /// Others took all the room for too long.
    Crowded,
}

/// Pieces that follow on each other.
#[derive(Default)]
struct Latest {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

/// Some events that follow on each other, as they are sent.
struct Piece {
    first: u64,
    bytes: Bytes,
    /// Where each event ends.
    ends: Vec<u32>,
}

impl Piece {
    /// The sequence of the event after the last.
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    /// What comes after an event, if it has that.
    fn after(&self, after: u64) -> Option<(Bytes, u64)> {
        let skip = usize::try_from((after + 1).checked_sub(self.first)?).ok()?;
        if skip >= self.ends.len() {
            return None;
        }
        let from = skip.checked_sub(1).map_or(0, |at| self.ends[at]) as usize;
        Some((self.bytes.slice(from..), self.next() - 1))
    }
}

impl Latest {
    fn after(&self, after: u64) -> Option<(Bytes, u64)> {
        // Most readers are at the end.
        self.pieces.iter().rev().find_map(|piece| piece.after(after))
    }

    fn push(&mut self, piece: Piece) {
        match self.pieces.back().map(Piece::next) {
            Some(next) if next > piece.first => return,
            Some(next) if next == piece.first => {}
            // Nobody has followed for a while.
            _ => *self = Self::default(),
        }
        self.bytes += piece.bytes.len();
        self.pieces.push_back(piece);
        while self.bytes > LATEST && self.pieces.len() > 1 {
            let Some(old) = self.pieces.pop_front() else { break };
            self.bytes -= old.bytes.len();
        }
    }
}

impl Default for SharedEvents {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            room: Arc::new(Semaphore::new(TOGETHER)),
            reads: Semaphore::new(processors),
            latest: Mutex::default(),
            ended: Default::default(),
        }
    }
}

impl SharedEvents {
    /// About [`PIECE`] bytes of what comes after an event, as it is sent, and its last sequence;
    /// none if that is not in memory any more. All readers get the same bytes, not a copy each.
    pub fn after(&self, ledger: &Ledger, after: u64) -> Option<(Bytes, u64)> {
        if let Some(found) = self.latest.lock().after(after) {
            return Some(found);
        }
        let tail = ledger.tail(after + 1)?;
        let events = tail
            .batches
            .iter()
            .flat_map(|batch| batch.records.iter().map(|record| &record.header).zip(&batch.events));
        let (mut text, mut ends) = (String::new(), Vec::new());
        for (header, event) in events.filter(|(header, _)| header.sequence > after) {
            message(&mut text, header, event.body_json());
            // A group has 512 KiB of records at most, and one event no more than that: as JSON that
            // is far below 4 GiB.
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            if text.len() >= PIECE {
                break;
            }
        }
        if ends.is_empty() {
            return None;
        }
        let piece = Piece { first: after + 1, bytes: text.into(), ends };
        let found = piece.after(after);
        self.latest.lock().push(piece);
        found
    }

    /// Notes that the server ended a stream.
    pub fn note(&self, ended: Ended) {
        self.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many streams the server ended.
    pub fn ended(&self, why: Ended) -> u64 {
        self.ended[why as usize].load(Ordering::Relaxed)
    }

    /// How many streams are open.
    pub fn open(&self) -> u64 {
        AT_A_TIME.saturating_sub(self.turns.available_permits()) as u64
    }

    /// Bytes that wait for readers, and of the latest events.
    pub fn bytes(&self) -> u64 {
        let waiting = TOGETHER.saturating_sub(self.room.available_permits());
        (waiting + self.latest.lock().bytes) as u64
    }
}

/// Writes an event as it is sent. JSON has no line ends in it, so that its one line is the whole
/// data.
pub fn message(out: &mut String, header: &Header, body: Value) {
    let data = serde_json::to_string(&EventBody::new(header, body)).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(out, "id: {}\nevent: {}\ndata: {data}\n\n", header.sequence, header.kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first: u64, texts: &[&str]) -> Piece {
        let (mut all, mut ends) = (String::new(), Vec::new());
        for text in texts {
            all.push_str(text);
            ends.push(all.len() as u32);
        }
        Piece { first, bytes: all.into(), ends }
    }

    #[test]
    fn a_reader_gets_what_comes_after_its_event_and_no_copy() {
        let mut latest = Latest::default();
        latest.push(piece(5, &["five", "six"]));
        latest.push(piece(7, &["seven"]));
        assert_eq!(latest.after(3), None);
        assert_eq!(latest.after(4), Some(("fivesix".into(), 6)));
        assert_eq!(latest.after(5), Some(("six".into(), 6)));
        assert_eq!(latest.after(6), Some(("seven".into(), 7)));
        assert_eq!(latest.after(7), None);
        let (one, two) = (latest.after(4).expect("there"), latest.after(4).expect("there"));
        assert_eq!(one.0.as_ptr(), two.0.as_ptr());
    }

    #[test]
    fn a_piece_that_does_not_follow_begins_anew_and_an_old_one_changes_nothing() {
        let mut latest = Latest::default();
        latest.push(piece(5, &["five"]));
        latest.push(piece(5, &["five", "six"]));
        assert_eq!(latest.after(5), None);
        latest.push(piece(9, &["nine"]));
        assert_eq!((latest.after(4), latest.after(8)), (None, Some(("nine".into(), 9))));
    }

    #[test]
    fn the_latest_are_bounded_by_bytes() {
        let mut latest = Latest::default();
        let text = "x".repeat(PIECE);
        for sequence in 1..=1_000 {
            latest.push(piece(sequence, &[&text]));
        }
        assert!(latest.bytes <= LATEST, "{}", latest.bytes);
        assert!(latest.after(999).is_some() && latest.after(0).is_none());
    }
}
