//! Checkpoints from one start to the next.

use super::tests::*;
use super::*;
use std::path::Path;
use std::time::{Duration, Instant};

fn checkpoints(dir: &Path) -> Vec<u64> {
    let Ok(found) = dir.join("checkpoints").read_dir() else { return Vec::new() };
    let mut sequences: Vec<u64> = found
        .filter_map(|entry| {
            entry.unwrap().path().file_name()?.to_str()?.strip_suffix(".ckpt")?.parse().ok()
        })
        .collect();
    sequences.sort_unstable();
    sequences
}

fn write(ledger: &Ledger, from: u64, count: u64) {
    for number in from..from + count {
        let answer = ledger.submit_blocking(put(number.into(), on(1, 1)), stamp(number)).unwrap();
        assert!(is_accepted(&answer), "{answer:?}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// An older copy of the log is put back: its head is below the checkpoints of what was lost.
#[test]
fn checkpoints_of_a_lost_tail_do_not_crowd_out_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let older = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 1_000), stamp(1)).unwrap();
    ledger.close();
    copy(&dir.path().join("log"), older.path());
    for round in 1..=2 {
        let ledger = open(dir.path());
        write(&ledger, round * 100, 10);
        ledger.close();
    }
    let lost = checkpoints(dir.path());
    std::fs::remove_dir_all(dir.path().join("log")).unwrap();
    copy(older.path(), &dir.path().join("log"));

    let accept = Options { accept_lost_tail: true, ..options() };
    let ledger = Ledger::open(dir.path(), accept, clock(), [1; 16]).unwrap();
    write(&ledger, 1_000, 1);
    let head = ledger.view().sequence();
    assert!(lost.iter().all(|sequence| *sequence > head), "{lost:?} are above {head}");
    ledger.close();
    assert!(checkpoints(dir.path()).contains(&head), "{:?}", checkpoints(dir.path()));
    // Nor is one of the lost history taken for one of this, once the log has come so far.
    let ledger = open(dir.path());
    write(&ledger, 2_000, 40);
    let digest = ledger.view().digest();
    ledger.close();
    let again = open(dir.path());
    assert_eq!(again.view().digest(), digest);
    again.close();
}

/// Who has folded a long log once need not do so at the next start, even after a kill.
#[test]
fn a_start_that_folded_a_long_log_writes_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 1_000), stamp(1)).unwrap();
    write(&ledger, 100, 50);
    let head = ledger.view().sequence();
    ledger.close();
    std::fs::remove_dir_all(dir.path().join("checkpoints")).unwrap();

    let often = Options { checkpoint_every: 10, ..options() };
    let ledger = Ledger::open(dir.path(), often.clone(), clock(), [1; 16]).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while checkpoints(dir.path()) != [head] {
        assert!(Instant::now() < patience, "no checkpoint is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    ledger.close();
    // A start from a checkpoint folds nothing and writes none.
    let mut file = dir.path().join("checkpoints").read_dir().unwrap();
    let path = file.next().unwrap().unwrap().path();
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    let (state, from) = crate::fold::restore(
        dir.path(),
        &*{
            let ledger = Ledger::open(dir.path(), often, clock(), [1; 16]).unwrap();
            let reader = ledger.reader();
            assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written);
            reader
        },
        head,
        &mut |_, _| {},
    )
    .unwrap();
    assert_eq!((state.sequence(), from), (head, head));
}
