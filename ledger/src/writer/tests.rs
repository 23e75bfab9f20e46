//! The writer from outside: what its users rely on, on RocksDB and with faults on a log in memory.

use super::*;
use crate::amounts::{Holding, Inventory};
use crate::command::*;
use crate::event::Event;
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::log::{Fault, MemoryLog};
use crate::refusal::Cause;
use crate::stamp::{Actor, CommandId};
use crate::time::Clock;
use std::path::Path;
use uuid::Uuid;

/// Time that goes on by a millisecond each time it is asked for.
pub(crate) struct TestClock(pub(crate) AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1000, Ordering::Relaxed) as i64)
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

pub(super) fn clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(AtomicU64::new(1_000_000_000)))
}

pub(super) fn options() -> Options {
    Options { owner: "a test".into(), free_space: FreeSpace::Bytes(0), ..Options::default() }
}

pub(super) fn open(dir: &Path) -> Ledger {
    Ledger::open(dir, options(), clock(), [1; 16]).unwrap()
}

pub(super) fn stamp(number: u64) -> Stamp {
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    Stamp {
        seed,
        received_at: Timestamp::from_micros(number as i64),
        actor: Actor { user: "ann".into(), project: "p".into(), address: String::new() },
        request_id: None,
        command_id: None,
    }
}

pub(super) fn with_id(number: u64, id: &str) -> Stamp {
    let command_id = Some(CommandId { project: "p".into(), id: id.into() });
    Stamp { command_id, ..stamp(number) }
}

pub(super) fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xa0 + number))
}

pub(super) fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xc000 + number))
}

pub(super) fn host(number: u128, total: u32) -> Vec<Command> {
    let uuid = provider(number);
    let inventories = [("VCPU".to_owned(), Inventory::of(total))].into();
    vec![
        Command::CreateProvider(CreateProvider {
            uuid,
            name: format!("host{number}"),
            parent: None,
        }),
        Command::ChangeInventories(ChangeInventories {
            provider: uuid,
            generation: None,
            change: InventoryChange::ReplaceAll(inventories),
            may_reserve_all: true,
        }),
    ]
}

pub(super) fn on(host: u128, amount: u32) -> Holding {
    [(provider(host), [("VCPU".to_owned(), amount)].into())].into()
}

pub(super) fn put(number: u128, allocations: Holding) -> Vec<Command> {
    vec![Command::ReplaceAllocations(ReplaceAllocations {
        via: Via::Put,
        consumers: vec![ConsumerWrite {
            consumer: consumer(number),
            allocations,
            project_id: "p".into(),
            user_id: "u".into(),
            consumer_type: None,
            generation: GenerationCheck::Unchecked,
        }],
    })]
}

pub(super) fn held(state: &State, host: u128) -> u64 {
    state.provider(provider(host)).map_or(0, |row| row.inventories[0].held)
}

pub(super) fn is_accepted(answer: &Answer) -> bool {
    matches!(answer.outcome, Outcome::Accepted { .. })
}

/// Invariants 1 and 3: what was answered is there after the process is gone, from the log alone
/// and from a checkpoint, to the digest.
#[test]
fn what_was_acknowledged_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    assert!(is_accepted(&ledger.submit_blocking(host(1, 100), stamp(1)).unwrap()));
    for number in 0..50 {
        let answer =
            ledger.submit_blocking(put(number, on(1, 2)), stamp(10 + number as u64)).unwrap();
        assert!(is_accepted(&answer));
        assert_eq!(answer.events().count(), 1);
        assert!(ledger.view().sequence() >= answer.sequence);
    }
    let digest = ledger.view().digest();
    ledger.close();
    assert!(dir.path().join("checkpoints").read_dir().unwrap().count() > 0);
    let again = open(dir.path());
    assert_eq!(again.view().digest(), digest);
    again.close();
    std::fs::remove_dir_all(dir.path().join("checkpoints")).unwrap();
    let folded = open(dir.path());
    assert_eq!(folded.view().digest(), digest, "from the start as from a checkpoint");
    folded.close();
}

/// Case I9: a checkpoint of another version, or a damaged one, is left alone.
#[test]
fn a_checkpoint_that_cannot_be_used_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 100), stamp(1)).unwrap();
    let digest = ledger.view().digest();
    ledger.close();
    let checkpoint =
        dir.path().join("checkpoints").read_dir().unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read(&checkpoint).unwrap();
    for damage in [9, good.len() / 2] {
        let mut bytes = good.clone();
        bytes[damage] ^= 0x40;
        std::fs::write(&checkpoint, bytes).unwrap();
        assert!(crate::state::checkpoint::read_checkpoint(&checkpoint).is_err());
        let again = open(dir.path());
        assert_eq!(again.view().digest(), digest);
        again.close();
        std::fs::write(&checkpoint, &good).unwrap();
    }
}

/// Moves leave fields out that are empty: a checkpoint has to keep apart which.
#[test]
fn a_checkpoint_brings_moves_back() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    let hosts: Vec<Command> = (1..=3).flat_map(|number| host(number, 10)).collect();
    ledger.submit_blocking(hosts, stamp(1)).unwrap();
    ledger.submit_blocking(put(1, on(1, 2)), stamp(2)).unwrap();
    let resize = Command::Resize(Resize {
        consumer: consumer(1),
        migration: consumer(2),
        kind: MoveKind::Resize,
        options: vec![on(1, 3), on(2, 3), on(3, 3)],
        candidates: None,
        searched: None,
        ignore_hosts: Vec::new(),
        max_attempts: 3,
    });
    assert!(is_accepted(&ledger.submit_blocking(vec![resize], stamp(3)).unwrap()));
    let digest = ledger.view().digest();
    ledger.close();
    let checkpoint = dir.path().join("checkpoints").read_dir().unwrap().next().unwrap().unwrap();
    let state = crate::state::checkpoint::read_checkpoint(&checkpoint.path()).unwrap();
    assert_eq!(state.digest(), digest);
    let this = &state.moves().live_of_instance(consumer(1)).next().unwrap().this;
    assert_eq!((this.alternates.len(), this.migration), (2, Some(consumer(2))));
}

#[test]
fn the_second_process_is_told_who_has_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let told = Ledger::open(dir.path(), options(), clock(), [2; 16]).err().unwrap().to_string();
    assert!(told.contains("a test"), "{told}");
    first.close();
    open(dir.path()).close();
}

/// A log that ends before what was acknowledged is not opened until told otherwise.
#[test]
fn a_lost_tail_is_refused_naming_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 100), stamp(1)).unwrap();
    ledger.close();
    let old = tempfile::tempdir().unwrap();
    copy(&dir.path().join("log"), &old.path().join("log"));
    let ledger = open(dir.path());
    let answer = ledger.submit_blocking(put(1, on(1, 1)), stamp(2)).unwrap();
    ledger.close();
    std::fs::remove_dir_all(dir.path().join("log")).unwrap();
    std::fs::remove_dir_all(dir.path().join("checkpoints")).unwrap();
    copy(&old.path().join("log"), &dir.path().join("log"));
    let told = Ledger::open(dir.path(), options(), clock(), [3; 16]).err().unwrap().to_string();
    assert!(told.contains(&answer.sequence.to_string()), "{told}");
    let accept = Options { accept_lost_tail: true, ..options() };
    Ledger::open(dir.path(), accept, clock(), [3; 16]).unwrap().close();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Invariant 6, case C13: one outcome for each command id, for ever.
#[test]
fn the_same_id_gets_the_same_outcome_also_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = open(dir.path());
    ledger.submit_blocking(host(1, 4), stamp(1)).unwrap();
    let first = ledger.submit_blocking(put(1, on(1, 3)), with_id(2, "a")).unwrap();
    let refused = ledger.submit_blocking(put(2, on(1, 3)), with_id(3, "b")).unwrap();
    assert_eq!(refused.refusal().unwrap().cause, Cause::Capacity);
    let nothing = ledger.submit_blocking(put(9, Holding::new()), with_id(4, "c")).unwrap();
    assert!(is_accepted(&nothing) && nothing.events().next().unwrap().1.kind() == "Answered");
    // There is room now, but a refused id stays refused.
    ledger.submit_blocking(put(1, on(1, 1)), stamp(5)).unwrap();
    for round in 0..2 {
        let head = ledger.view().sequence();
        let again = ledger.submit_blocking(put(1, on(1, 3)), with_id(6, "a")).unwrap();
        assert!(again.repeated && is_accepted(&again));
        let ids =
            |answer: &Answer| answer.events().map(|(header, _)| header.id).collect::<Vec<_>>();
        assert_eq!(ids(&again), ids(&first));
        let again = ledger.submit_blocking(put(2, on(1, 3)), with_id(7, "b")).unwrap();
        assert_eq!(again.refusal().unwrap(), refused.refusal().unwrap());
        assert!(ledger.submit_blocking(put(9, Holding::new()), with_id(8, "c")).unwrap().repeated);
        let other = ledger.submit_blocking(put(1, on(1, 2)), with_id(9, "a")).unwrap();
        assert!(matches!(other.refusal().unwrap().cause, Cause::CommandIdReused { .. }));
        assert_eq!(ledger.view().sequence(), head, "round {round}: nothing is written twice");
        ledger.close();
        ledger = open(dir.path());
    }
    ledger.close();
}

/// An unknown outcome is never told as a refusal; the log decides what happened.
/// Those who hold what is lacking are cut before the answer, where the record has no room for them.
#[test]
fn a_repeat_names_the_same_holders_also_where_the_record_has_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 4), stamp(1)).unwrap();
    let name = |number: u32| format!("CUSTOM_{number:0>200}");
    let classes = (1..=16).map(|number| Command::CreateResourceClass(Named { name: name(number) }));
    let change = |number| InventoryChange::Create(name(number), Inventory::of(1));
    let inventories = (1..=16).map(|number| {
        Command::ChangeInventories(ChangeInventories {
            provider: provider(1),
            generation: None,
            change: change(number),
            may_reserve_all: true,
        })
    });
    ledger.submit_blocking(classes.chain(inventories).collect(), stamp(2)).unwrap();
    let all: Holding = [(provider(1), (1..=16).map(|number| (name(number), 1)).collect())].into();
    assert!(is_accepted(&ledger.submit_blocking(put(1, all.clone()), stamp(3)).unwrap()));
    let refused = ledger.submit_blocking(put(2, all.clone()), with_id(4, "a")).unwrap();
    let told = refused.refusal().unwrap().held_by.clone().unwrap();
    assert_eq!((told.consumers, told.first.len()), (1, 0), "counted, and no room for names");
    let again = ledger.submit_blocking(put(2, all), with_id(5, "a")).unwrap();
    assert!(again.repeated);
    assert_eq!(again.refusal().unwrap().held_by, Some(told));
    ledger.close();
}

#[test]
fn after_an_unknown_outcome_the_log_decides() {
    for (fault, there) in [(Fault::UnknownWritten, true), (Fault::UnknownLost, false)] {
        let log = MemoryLog::default();
        let ledger = Ledger::open_on(Box::new(log.clone()), options(), clock(), [1; 16]).unwrap();
        ledger.submit_blocking(host(1, 10), stamp(1)).unwrap();
        log.fail_next(fault);
        let error = ledger.submit_blocking(put(1, on(1, 4)), with_id(2, "x")).unwrap_err();
        assert_eq!(error, SubmitError::OutcomeUnknown);
        // Asked again with the same id it is done once, whatever had become of it.
        let answer = loop {
            match ledger.submit_blocking(put(1, on(1, 4)), with_id(3, "x")) {
                Ok(answer) => break answer,
                Err(SubmitError::OutcomeUnknown | SubmitError::ReadOnly(_)) => {
                    std::thread::yield_now()
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(answer.repeated, there);
        assert_eq!(held(&ledger.view(), 1), 4);
        ledger.view().check_invariants().unwrap();
        ledger.close();
    }
}

/// Case C1 in process: only a true lack of room refuses.
#[test]
fn many_at_once_fill_a_host_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = open(dir.path());
    ledger.submit_blocking(host(1, 60), stamp(1)).unwrap();
    let accepted = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..100)
            .map(|number| {
                let ledger = ledger.clone();
                scope.spawn(move || {
                    is_accepted(
                        &ledger
                            .submit_blocking(put(number, on(1, 1)), stamp(number as u64 + 9))
                            .unwrap(),
                    )
                })
            })
            .collect();
        claims
            .into_iter()
            .filter(|_| true)
            .map(|claim| claim.join().unwrap())
            .filter(|done| *done)
            .count()
    });
    assert_eq!((accepted, held(&ledger.view(), 1)), (60, 60));
    ledger.close();
}

/// A list is one group: all of it or nothing.
#[test]
fn a_list_is_done_whole_or_not_at_all() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    ledger.submit_blocking(host(1, 4), stamp(1)).unwrap();
    let digest = ledger.view().digest();
    let list: Vec<Command> = [put(1, on(1, 3)), put(2, on(1, 3))].concat();
    let answer = ledger.submit_blocking(list, stamp(2)).unwrap();
    assert_eq!(answer.refusal().unwrap().index, 1);
    let state = ledger.view();
    assert_eq!(held(&state, 1), 0);
    assert_eq!(state.consumer_count(), 0);
    // The refusal itself is on record.
    assert_ne!(state.digest(), digest);
    let record = ledger.reader().record(state.sequence()).unwrap().unwrap();
    assert!(matches!(record.event().unwrap(), Event::Rejected(_)));
    ledger.close();
}

/// Too large a group is refused and leaves no trace, whatever it had changed on the way.
#[test]
fn a_group_over_the_limit_is_refused_whole() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    ledger.submit_blocking(host(1, 1_000_000), stamp(1)).unwrap();
    let list: Vec<Command> = (0..5000).flat_map(|number| put(number, on(1, 1))).collect();
    let answer = ledger.submit_blocking(list, stamp(2)).unwrap();
    assert!(matches!(answer.refusal().unwrap().cause, Cause::TooLarge { .. }));
    assert_eq!(held(&ledger.view(), 1), 0);
    ledger.submit_blocking(put(1, on(1, 1)), stamp(3)).unwrap();
    assert_eq!(held(&ledger.view(), 1), 1);
    ledger.close();
}

/// A small command may touch much: a consumer with many allocations is moved or refused, never
/// half moved, and the writer goes on.
#[test]
fn a_small_command_on_a_large_holding_is_refused_whole_too() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    let hosts: Vec<u128> = (0..4000).collect();
    for chunk in hosts.chunks(400) {
        let list = chunk.iter().flat_map(|number| host(*number, 20)).collect();
        assert!(is_accepted(&ledger.submit_blocking(list, stamp(chunk[0] as u64)).unwrap()));
    }
    // Somewhere between these sizes a claim still fits into a group and its move does not.
    let mut refused = 0;
    for (who, count) in (1..).zip((1600..=4000).step_by(200)) {
        let much: Holding = hosts.iter().take(count).flat_map(|number| on(*number, 1)).collect();
        if !is_accepted(&ledger.submit_blocking(put(who, much), stamp(5000)).unwrap()) {
            break;
        }
        let before = ledger.view().holding_of(consumer(who));
        let to_migration = Command::MoveToMigration(MoveToMigration {
            consumer: consumer(who),
            migration: consumer(who + 100),
            kind: MoveKind::Resize,
        });
        let answer = ledger.submit_blocking(vec![to_migration], stamp(5001)).unwrap();
        if let Some(refusal) = answer.refusal() {
            assert!(matches!(refusal.cause, Cause::TooLarge { .. }));
            assert_eq!(ledger.view().holding_of(consumer(who)), before);
            refused += 1;
        } else {
            assert_eq!(ledger.view().holding_of(consumer(who + 100)), before);
        }
    }
    assert!(refused > 0, "no size was between the two");
    ledger.submit_blocking(put(999, on(1, 1)), stamp(5002)).unwrap();
    ledger.view().check_invariants().unwrap();
    ledger.close();
}

/// A release may take with it what was to go once it is free: all of it or, if that is too much for
/// a group, nothing, and the writer goes on.
#[test]
fn a_release_takes_a_whole_tree_with_it_or_is_refused_whole() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    let submit = |list: Vec<Command>| ledger.submit_blocking(list, stamp(1)).unwrap();
    for (deep, fits) in [(150, true), (2_500, false)] {
        let all: Vec<u128> = (0..deep).collect();
        for chunk in all.chunks(300) {
            let nested = |number: u128| CreateProvider {
                uuid: provider(number),
                name: format!("host{number}"),
                parent: (number > 0).then(|| provider(number - 1)),
            };
            let list = chunk.iter().map(|number| Command::CreateProvider(nested(*number)));
            assert!(is_accepted(&submit(list.collect())));
        }
        let last = host(deep - 1, 8).pop().unwrap();
        assert!(is_accepted(&submit(vec![last])));
        assert!(is_accepted(&submit(put(1, on(deep - 1, 1)))));
        for chunk in all.chunks(300) {
            let which = chunk.iter().map(|number| provider(*number)).collect();
            let which = WhichProviders::Providers(which);
            let retire = Retire { which, when_free: true, reason: None };
            assert!(is_accepted(&submit(vec![Command::Retire(retire)])));
        }
        let answer = submit(put(1, Holding::new()));
        assert_eq!(is_accepted(&answer), fits);
        let left = if fits { 0 } else { deep as usize };
        assert_eq!(ledger.view().provider_count(), left);
        assert_eq!(ledger.view().consumer_count(), usize::from(!fits));
        ledger.view().check_invariants().unwrap();
    }
    ledger.close();
}

/// Case I7: a follower's list equals the log; no number is filled in below its position later.
#[test]
fn a_follower_sees_every_event_once_in_order() {
    let ledger =
        Ledger::open_on(Box::new(MemoryLog::default()), options(), clock(), [1; 16]).unwrap();
    ledger.submit_blocking(host(1, 1_000_000), stamp(1)).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8u128 {
            let ledger = ledger.clone();
            scope.spawn(move || {
                for number in 0..200u128 {
                    let number = writer * 1000 + number;
                    ledger
                        .submit_blocking(put(number, on(1, 1)), stamp(number as u64 + 9))
                        .unwrap();
                }
            });
        }
        let mut next = 1;
        while next <= 1603 {
            let batches = match ledger.tail(next) {
                Some(tail) => tail.batches,
                None => {
                    let records = ledger.reader().read(next, 100).unwrap();
                    next += records.len() as u64;
                    continue;
                }
            };
            for record in batches.iter().flat_map(|batch| &batch.records) {
                if record.header.sequence >= next {
                    assert_eq!(record.header.sequence, next);
                    // `durable` wakes its followers when all can be seen: the log is what counts.
                    let logged = ledger.shared.reader.head().unwrap().sequence;
                    assert!(next <= logged, "nobody sees what is not durable");
                    next += 1;
                }
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(ledger.reader().read(1, 10_000).unwrap().len(), 1603);
    ledger.close();
}
