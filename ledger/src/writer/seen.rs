//! In which order what is durable is seen, and by which clock rates go.

use super::tests::*;
use super::*;
use crate::log::{MemoryLog, acknowledged};
use crate::time::Clock;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Looks at everything in the very moment in which `durable` wakes its followers.
struct Looks {
    ledger: Ledger,
    seen: Mutex<Vec<(u64, u64, bool, u64)>>,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let durable = *self.ledger.durable().borrow();
        let view = self.ledger.view().sequence();
        let record = self.ledger.reader().record(durable).unwrap().is_some();
        let tail = self.ledger.tail(durable).is_some_and(|tail| !tail.batches.is_empty());
        let dir = self.ledger.dir().unwrap();
        let noted = acknowledged(dir).unwrap().map_or(0, |head| head.sequence);
        self.seen.lock().push((durable, view, record && tail, noted));
    }
}

#[test]
fn who_is_woken_finds_it_acknowledged_and_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let mut durable = ledger.durable();
    let looks = Arc::new(Looks { ledger: ledger.clone(), seen: Mutex::default() });
    let waker = Waker::from(Arc::clone(&looks));
    for number in 0..20 {
        durable.borrow_and_update();
        let mut changed = pin!(durable.changed());
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        ledger.submit_blocking(host(number, 10), stamp(number as u64)).unwrap();
    }
    let seen = std::mem::take(&mut *looks.seen.lock());
    assert_eq!(seen.len(), 20);
    for (durable, view, found, noted) in seen {
        assert_eq!((view, found, noted), (durable, true, durable));
    }
    ledger.close();
}

/// A reader never finds a sequence in the view whose event it does not get.
#[test]
fn what_the_view_names_can_be_read() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reading = {
        let (ledger, done) = (ledger.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            let reader = ledger.reader();
            while !done.load(Ordering::Relaxed) {
                let sequence = ledger.view().sequence();
                assert!(reader.record(sequence).unwrap().is_some(), "event {sequence}");
                assert_ne!(ledger.tail(sequence).map(|tail| tail.batches.len()), Some(0));
            }
        })
    };
    for number in 0..3_000 {
        ledger.submit_blocking(host(number, 10), stamp(number as u64)).unwrap();
    }
    done.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    ledger.close();
}

/// A clock that is set by hand: the system's time, and the time that has really passed.
#[derive(Default)]
struct HandClock {
    wall: AtomicI64,
    passed: AtomicU64,
}

impl HandClock {
    fn set(&self, hours: i64, passed: Duration) {
        self.wall.store(1_000_000_000_000_000 + hours * 3_600_000_000, Ordering::Relaxed);
        self.passed.store(passed.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.passed.load(Ordering::Relaxed))
    }
}

#[test]
fn a_clock_that_is_set_leaves_the_rate_of_recorded_refusals_as_it_is() {
    let clock = Arc::new(HandClock::default());
    clock.set(0, Duration::ZERO);
    let log = Box::new(MemoryLog::default());
    let ledger = Ledger::open_on(log, options(), clock.clone(), [1; 16]).unwrap();
    ledger.submit_blocking(host(1, 1), stamp(1)).unwrap();
    let mut number = 100;
    let mut recorded = || {
        number += 1;
        let answer = ledger.submit_blocking(put(number, on(1, 5)), stamp(number as u64)).unwrap();
        match answer.outcome {
            Outcome::Refused { recorded_at, .. } => recorded_at.is_some(),
            other => panic!("{other:?}"),
        }
    };
    // An hour forward, then back: each second has its ten, and no more.
    for (second, hours) in [0, 1, 1, 0, -1, 0].into_iter().enumerate() {
        clock.set(hours, Duration::from_secs(10 + second as u64));
        assert_eq!((0..15).filter(|_| recorded()).count(), 10, "second {second}");
        clock.set(hours + 1, Duration::from_secs(10 + second as u64));
        assert!(!recorded(), "the clock was set within second {second}");
    }
    ledger.close();
}
