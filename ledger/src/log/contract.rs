//! What every engine promises: the same tests run on each.

use super::{Appended, Batch, Head, IndexKey, Log, LogError, MemoryLog, RocksLog, RocksReader};
use crate::event::{Event, ProviderCreated};
use crate::ids::{EventId, LedgerId, ProviderUuid};
use crate::record::{Hash, Header, Private, Record};
use crate::stamp::Actor;
use crate::time::Timestamp;
use uuid::Uuid;

fn event(number: u64) -> Event {
    Event::ProviderCreated(ProviderCreated {
        provider: ProviderUuid(Uuid::from_u128(u128::from(number % 10))),
        name: format!("provider {number}"),
        parent: None,
        root: None,
        generation: 0,
    })
}

/// `count` records that follow on `head`.
pub(crate) fn batch(head: Head, count: u64) -> Batch {
    let mut previous = head;
    let mut batch = Batch::default();
    for _ in 0..count {
        let sequence = previous.sequence + 1;
        let private = Private::encode(&Actor::default(), &[7; 16], 0).unwrap();
        let header = Header {
            ledger_id: LedgerId::default(),
            epoch: 1,
            sequence,
            id: EventId(Uuid::from_u128(u128::from(sequence))),
            group_first: sequence,
            group_count: 1,
            received_at: Timestamp::from_micros(sequence as i64 * 10),
            recorded_at: Timestamp::from_micros(sequence as i64 * 10),
            schema: 0,
            kind: String::new(),
            command_id: None,
            command_project: None,
            command_digest: None,
            request_id: Some(format!("req-{}", sequence % 3)),
            move_id: None,
            previous_hash: previous.hash,
            body_digest: Hash::default(),
            private_digest: Some(private.digest()),
        };
        let event = event(sequence);
        let record = Record::encode(header, &event).unwrap();
        previous = Head { sequence, hash: record.hash };
        batch.records.push(record);
        batch.privates.push(Some(private));
        batch.events.push(event);
    }
    batch
}

fn keeps_the_contract(log: &mut dyn Log) {
    assert_eq!(log.head(), Head::default());
    let first = batch(Head::default(), 5);
    assert_eq!(log.append(&first, Head::default()), Appended::Committed);
    let head = log.head();
    assert_eq!(Some(head), first.head());

    // Another expectation writes nothing.
    assert_eq!(log.append(&first, Head::default()), Appended::Refused(head));
    assert_eq!(log.append(&batch(head, 20), head), Appended::Committed);
    let reader = log.reader();
    assert_eq!(reader.head().unwrap(), log.head());

    // What was written is read back, to the byte, from anywhere and not beyond the end.
    let all = reader.read(1, 1000).unwrap();
    assert_eq!(all.len(), 25);
    assert_eq!(all[..5], first.records[..]);
    assert_eq!(reader.read(24, 1000).unwrap().len(), 2);
    assert_eq!(reader.read(3, 4).unwrap(), all[2..6]);
    assert!(reader.read(26, 10).unwrap().is_empty());
    let mut end = Head::default();
    for record in &all {
        record.check_follows(end.sequence, end.hash).unwrap();
        end = Head { sequence: record.header.sequence, hash: record.hash };
        let private = reader.private(end.sequence).unwrap().unwrap();
        record.check_private(&private).unwrap();
    }
    assert_eq!(reader.record(7).unwrap().as_ref(), Some(&all[6]));
    assert_eq!(reader.record(26).unwrap(), None);

    // The index finds all of a key and nothing else.
    let provider = IndexKey::Provider(ProviderUuid(Uuid::from_u128(3)));
    assert_eq!(reader.index(&provider, 0, 10).unwrap(), [3, 13, 23]);
    assert_eq!(reader.index(&provider, 3, 1).unwrap(), [13]);
    let request = IndexKey::RequestId("req-1".into());
    assert_eq!(reader.index(&request, 19, 10).unwrap(), [22, 25]);

    // A time leads to the last event recorded by then.
    assert_eq!(reader.sequence_at(Timestamp::from_micros(9)).unwrap(), 0);
    assert_eq!(reader.sequence_at(Timestamp::from_micros(109)).unwrap(), 10);
    assert_eq!(reader.sequence_at(Timestamp::from_micros(1 << 40)).unwrap(), 25);

    // It can be opened again and goes on.
    log.reopen().unwrap();
    let head = log.head();
    assert_eq!(head.sequence, 25);
    assert_eq!(log.append(&batch(head, 1), head), Appended::Committed);
    assert_eq!(reader.read(26, 10).unwrap().len(), 1);
}

#[test]
fn the_log_in_memory_keeps_the_contract() {
    keeps_the_contract(&mut MemoryLog::default());
}

#[test]
fn the_log_on_rocksdb_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    keeps_the_contract(&mut RocksLog::open(dir.path()).unwrap());
    let log = RocksLog::open(dir.path()).unwrap();
    assert_eq!(log.head().sequence, 26);
}

#[test]
fn another_process_reads_along_without_disturbing() {
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut log = RocksLog::open(dir.path()).unwrap();
    log.append(&batch(Head::default(), 10), Head::default());
    let reader = RocksReader::open_secondary(dir.path(), scratch.path()).unwrap();
    assert_eq!(super::LogReader::read(&reader, 1, 100).unwrap().len(), 10);
    let head = log.head();
    log.append(&batch(head, 10), head);
    reader.catch_up().unwrap();
    assert_eq!(super::LogReader::read(&reader, 1, 100).unwrap().len(), 20);
    let none = RocksReader::open_secondary(scratch.path(), dir.path());
    assert!(none.is_err(), "a directory without a ledger is no ledger");
}

/// Case J5: a record that is gone, or a block that cannot be read, is never taken for the end.
#[test]
fn a_hole_or_a_damaged_block_is_an_error_that_names_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = RocksLog::open(dir.path()).unwrap();
    for _ in 0..20 {
        let head = log.head();
        log.append(&batch(head, 1000), head);
    }
    drop(log);
    // Opening flushed the write-ahead log into a table file; damage its middle.
    drop(RocksLog::open(dir.path()).unwrap());
    let mut tables: Vec<_> = std::fs::read_dir(dir.path().join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "sst"))
        .collect();
    tables.sort_by_key(|path| std::fs::metadata(path).unwrap().len());
    let table = tables.pop().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&table, bytes).unwrap();
    let log = RocksLog::open(dir.path()).unwrap();
    let reader = log.reader();
    let mut next = 1;
    let error = loop {
        match reader.read(next, 1000) {
            Ok(records) if records.is_empty() => panic!("{} events and no error", next - 1),
            Ok(records) => next += records.len() as u64,
            Err(error) => break error,
        }
    };
    let told = error.to_string();
    assert!(told.contains("event ") && next < 20_000, "{told}");
    assert!(matches!(
        error,
        LogError::Engine(_) | LogError::Record { .. } | LogError::Missing { .. }
    ));
}
