//! `verify` on good ledgers, and on ledgers damaged behind their back: it names the place, and a
//! read error is never taken for the end of the log.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rocksdb::{DB, Options};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// 200 providers, then 4,000 consumers that come and go, in lists of 100.
fn many() -> Book {
    let book = Book::new();
    for n in 0..200 {
        book.host(provider(n), &format!("compute{n}"), &[("VCPU", 64), ("DISK_GB", 2000)]);
    }
    for list in 0..40u128 {
        let claims = (0..100).map(|n| {
            let host = provider((list * 100 + n) % 200);
            claim(consumer(list * 100 + n), vec![on(host, &[("VCPU", 2), ("DISK_GB", 20)])])
        });
        book.submit("req-many", claims.collect());
    }
    book
}

fn raw(dir: &Path) -> DB {
    let path = dir.join("log");
    let names = DB::list_cf(&Options::default(), &path).unwrap();
    DB::open_cf(&Options::default(), &path, names).unwrap()
}

#[test]
fn a_good_ledger_is_sound_while_it_runs_and_when_it_is_closed() {
    let book = many();
    let head = book.ledger.view().sequence();
    let running = replay(book.path(), &["verify"]);
    assert_eq!(running.status, 0, "{running:?}");
    running.tells(&[
        &format!("Checked {head} of {head} events"),
        "a second",
        "The ledger is sound.",
    ]);
    let digest = book.ledger.view().digest().to_string();
    book.ledger.close();
    let closed = replay(book.path(), &["verify", "--json"]);
    assert_eq!(closed.status, 0, "{closed:?}");
    let report: serde_json::Value = serde_json::from_str(&closed.out).unwrap();
    assert_eq!(report["events"], head);
    assert_eq!(report["state_digest"], digest);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0));
}

/// The tool looks again and again while the ledger is written: it finds nothing wrong, and the
/// writer does not notice.
#[test]
fn a_ledger_that_is_being_written_is_sound_at_every_look() {
    let book = Book::new();
    book.host(provider(1), "compute1", &[("VCPU", 1_000_000)]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let one = on(provider(1), &[("VCPU", 1)]);
                book.submit("req-live", vec![claim(consumer(written), vec![one])]);
                written += 1;
            }
            written
        });
        let looks: Vec<Said> = (0..6)
            .flat_map(|_| {
                [replay(book.path(), &["verify"]), replay(book.path(), &["at", "latest"])]
            })
            .collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let written = writer.join().unwrap();
        assert_eq!(book.ledger.view().consumer_count() as u128, written);
        for said in looks {
            assert_eq!(said.status, 0, "{said:?}");
        }
    });
}

fn damage_record(
    book: Book,
    sequence: u64,
    damage: impl FnOnce(&mut Vec<u8>),
) -> tempfile::TempDir {
    let dir = book.shut();
    let db = raw(dir.path());
    let records = db.cf_handle("records").unwrap();
    let mut bytes = db.get_cf(records, sequence.to_be_bytes()).unwrap().unwrap();
    damage(&mut bytes);
    db.put_cf(records, sequence.to_be_bytes(), bytes).unwrap();
    dir
}

#[test]
fn a_flipped_byte_in_a_body_is_found_at_its_place() {
    let book = many();
    let dir = damage_record(book, 500, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 1, "{said:?}");
    said.tells(&["Wrong at event 500: the body does not have the digest that the header names"]);
}

#[test]
fn a_flipped_byte_in_a_header_is_found_at_its_place() {
    let book = many();
    // In the middle of the header: whatever it hits, the record is not what it was.
    let dir = damage_record(book, 500, |bytes| bytes[60] ^= 1);
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.out.contains("event 500"), "{said:?}");
}

#[test]
fn a_missing_record_is_found_and_the_rest_is_still_checked() {
    let book = many();
    let head = book.ledger.view().sequence();
    let dir = book.shut();
    let db = raw(dir.path());
    db.delete_cf(db.cf_handle("records").unwrap(), 700u64.to_be_bytes()).unwrap();
    drop(db);
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 1, "{said:?}");
    said.tells(&[
        "Wrong at event 700",
        "missing",
        &format!("Checked {} of {head} events", head - 1),
    ]);
}

#[test]
fn a_swapped_private_part_is_found() {
    let book = many();
    let dir = book.shut();
    let db = raw(dir.path());
    let private = db.cf_handle("private").unwrap();
    let other = db.get_cf(private, 300u64.to_be_bytes()).unwrap().unwrap();
    db.put_cf(private, 301u64.to_be_bytes(), other).unwrap();
    db.delete_cf(private, 302u64.to_be_bytes()).unwrap();
    drop(db);
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 1, "{said:?}");
    said.tells(&[
        "Wrong at event 301: the private part",
        "Wrong at event 302: its private part is gone",
    ]);
}

#[test]
fn a_cut_tail_is_found_by_what_the_server_acknowledged() {
    let book = many();
    let head = book.ledger.view().sequence();
    let dir = book.shut();
    let db = raw(dir.path());
    db.delete_cf(db.cf_handle("records").unwrap(), head.to_be_bytes()).unwrap();
    drop(db);
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 1, "{said:?}");
    said.tells(&[&format!("Wrong at event {head}")]);
}

/// A damaged block in the middle of the records must be a failure that names the place, never a
/// short success (restatedev/restate #5248: "10,164 events, done").
#[test]
fn a_corrupt_block_is_a_failure_that_names_the_place() {
    let book = many();
    let head = book.ledger.view().sequence();
    let dir = book.shut();
    let db = raw(dir.path());
    let records = db.cf_handle("records").unwrap();
    db.flush_cf(records).unwrap();
    db.compact_range_cf(records, None::<&[u8]>, None::<&[u8]>);
    let files = db.live_files().unwrap();
    let file = files.iter().find(|file| file.column_family_name == "records").unwrap();
    let path = dir.path().join("log").join(file.name.trim_start_matches('/'));
    drop(db);
    let sst = OpenOptions::new().write(true).open(&path).unwrap();
    let middle = sst.metadata().unwrap().len() / 2;
    sst.write_all_at(&[0x5a; 64], middle).unwrap();
    drop(sst);
    // The checkpoint at the head spares a fold; at the event before it there is none.
    let before = (head - 1).to_string();
    for verb in [&["verify"][..], &["at", &before]] {
        let said = replay(dir.path(), verb);
        assert_ne!(said.status, 0, "{said:?}");
        let text = format!("{}{}", said.out, said.err);
        assert!(text.to_lowercase().contains("corrupt") && text.contains("event "), "{text}");
        assert!(!text.contains("sound"), "{text}");
        let short = format!("Checked {head} of {head}");
        assert!(!text.contains(&short), "{text}");
    }
}
