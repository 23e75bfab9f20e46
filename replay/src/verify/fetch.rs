//! Reading ahead: a thread of its own reads, decodes and checks what needs no state, while the
//! events before are folded.

use ledger::event::{DecodeError, Event};
use ledger::log::LogReader;
use ledger::record::Record;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

/// Records read at once.
const CHUNK: usize = 1024;
/// Chunks that wait to be folded at most.
const AHEAD: usize = 4;

/// What became of reading one place.
pub(super) enum Item {
    /// A record, decoded.
    Read(Box<Fetched>),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// A record with what stands beside it.
pub(super) struct Fetched {
    /// The record.
    pub record: Record,
    /// Its event.
    pub event: Result<Event, DecodeError>,
    /// Its private part.
    pub private: PrivatePart,
}

/// How a record's private part is.
pub(super) enum PrivatePart {
    /// As the header says: there, or there never was one.
    Good,
    /// Gone.
    Gone,
    /// Wrong, or unreadable.
    Wrong(String),
}

/// Reads the events `from` to `to` in order, one [`Item`] each.
pub(super) fn ahead<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    reader: &'env dyn LogReader,
    from: u64,
    to: u64,
) -> Receiver<Vec<Item>> {
    let (sender, receiver) = sync_channel(AHEAD);
    scope.spawn(move || read_all(reader, from, to, &sender));
    receiver
}

fn read_all(reader: &dyn LogReader, from: u64, to: u64, sender: &SyncSender<Vec<Item>>) {
    let mut next = from;
    while next <= to {
        let count = usize::try_from(to - next + 1).unwrap_or(usize::MAX).min(CHUNK);
        let items: Vec<Item> = match reader.read(next, count) {
            Ok(records) if !records.is_empty() => {
                records.into_iter().map(|record| read(reader, record)).collect()
            }
            // Something among them is wrong: each is read by itself, so that the place is known
            // and the rest is still checked.
            _ => (next..).take(count).map(|sequence| one(reader, sequence)).collect(),
        };
        next += items.len() as u64;
        if sender.send(items).is_err() {
            return;
        }
    }
}

fn one(reader: &dyn LogReader, sequence: u64) -> Item {
    match reader.record(sequence) {
        Ok(Some(record)) => read(reader, record),
        Ok(None) => Item::Unreadable("it is missing".into()),
        Err(error) => Item::Unreadable(error.to_string()),
    }
}

fn read(reader: &dyn LogReader, record: Record) -> Item {
    let private = match reader.private(record.header.sequence) {
        Ok(None) if record.header.private_digest.is_none() => PrivatePart::Good,
        Ok(None) => PrivatePart::Gone,
        Ok(Some(private)) => match record.check_private(&private) {
            Ok(()) => PrivatePart::Good,
            Err(error) => PrivatePart::Wrong(error.to_string()),
        },
        Err(error) => PrivatePart::Wrong(format!("its private part cannot be read: {error}")),
    };
    Item::Read(Box::new(Fetched { event: record.event(), record, private }))
}
