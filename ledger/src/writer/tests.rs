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
use proptest::prelude::*;
use std::path::Path;
use uuid::Uuid;

/// Time that goes on by a millisecond each time it is asked for.
pub(crate) struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1000, Ordering::Relaxed) as i64)
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(AtomicU64::new(1_000_000_000)))
}

fn options() -> Options {
    Options { owner: "a test".into(), min_free_bytes: 0, ..Options::default() }
}

fn open(dir: &Path) -> Ledger {
    Ledger::open(dir, options(), clock(), [1; 16]).unwrap()
}

fn stamp(number: u64) -> Stamp {
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

fn with_id(number: u64, id: &str) -> Stamp {
    let command_id = Some(CommandId { project: "p".into(), id: id.into() });
    Stamp { command_id, ..stamp(number) }
}

fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xa0 + number))
}

fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xc000 + number))
}

fn host(number: u128, total: u32) -> Vec<Command> {
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

fn on(host: u128, amount: u32) -> Holding {
    [(provider(host), [("VCPU".to_owned(), amount)].into())].into()
}

fn put(number: u128, allocations: Holding) -> Vec<Command> {
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

fn held(state: &State, host: u128) -> u64 {
    state.provider(provider(host)).map_or(0, |row| row.inventories[0].held)
}

fn is_accepted(answer: &Answer) -> bool {
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
                Err(SubmitError::OutcomeUnknown | SubmitError::ReadOnly { .. }) => {
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
                Some(batches) => batches,
                None => {
                    let records = ledger.reader().read(next, 100).unwrap();
                    next += records.len() as u64;
                    continue;
                }
            };
            for record in batches.iter().flat_map(|batch| &batch.records) {
                if record.header.sequence >= next {
                    assert_eq!(record.header.sequence, next);
                    assert!(next <= *ledger.durable().borrow(), "nobody sees what is not durable");
                    next += 1;
                }
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(ledger.reader().read(1, 10_000).unwrap().len(), 1603);
    ledger.close();
}

#[derive(Clone, Debug)]
enum Step {
    Claim(u128, u128, u32),
    Put(u128, u128, u32),
    Open(u128),
    Confirm(u128),
    Revert(u128),
    Reschedule(u128, u128, u32),
    DoubleUp(u128, u128, u32),
    Release(u128, bool),
    Part(u128, u128, u32),
    Add(u128, i64),
    Quota(Option<u64>),
    PostBack(u128),
    Delete(u128),
    Resize(u128, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let (who, host, amount) = (0..4u128, 0..3u128, 1..5u32);
    prop_oneof![
        (who.clone(), host.clone(), amount.clone()).prop_map(|(a, b, c)| Step::Claim(a, b, c)),
        (0..8u128, host.clone(), amount.clone()).prop_map(|(a, b, c)| Step::Put(a, b, c)),
        who.clone().prop_map(Step::Open),
        who.clone().prop_map(Step::Confirm),
        who.clone().prop_map(Step::Revert),
        (who.clone(), host.clone(), amount.clone()).prop_map(|(a, b, c)| Step::Reschedule(a, b, c)),
        (who.clone(), host.clone(), amount.clone()).prop_map(|(a, b, c)| Step::DoubleUp(a, b, c)),
        (0..8u128, any::<bool>()).prop_map(|(a, b)| Step::Release(a, b)),
        (0..8u128, host.clone(), 1..3u32).prop_map(|(a, b, c)| Step::Part(a, b, c)),
        (host.clone(), -2..3i64).prop_map(|(a, b)| Step::Add(a, b)),
        proptest::option::of(0..12u64).prop_map(Step::Quota),
        who.clone().prop_map(Step::PostBack),
        (0..8u128).prop_map(Step::Delete),
        (host, amount).prop_map(|(a, b)| Step::Resize(a, b * 2)),
    ]
}

/// The migration consumer of server `who`.
fn migration(who: u128) -> u128 {
    who + 4
}

fn command(step: &Step, state: &State) -> Vec<Command> {
    let plain = |via, writes: Vec<(u128, Holding)>| {
        let all: Vec<Command> =
            writes.into_iter().flat_map(|(who, after)| put(who, after)).collect();
        let consumers = all
            .into_iter()
            .flat_map(|one| match one {
                Command::ReplaceAllocations(it) => it.consumers,
                _ => Vec::new(),
            })
            .collect();
        Command::ReplaceAllocations(ReplaceAllocations { via, consumers })
    };
    let options = |host: u128, amount| vec![on(host, amount), on((host + 1) % 3, amount)];
    vec![match step.clone() {
        Step::Claim(who, host, amount) => Command::Claim(Claim {
            consumer: consumer(who),
            project_id: "p".into(),
            user_id: "u".into(),
            consumer_type: None,
            options: options(host, amount),
        }),
        Step::Put(who, host, amount) => return put(who, on(host, amount)),
        Step::Open(who) => Command::MoveToMigration(MoveToMigration {
            consumer: consumer(who),
            migration: consumer(migration(who)),
            kind: MoveKind::Resize,
        }),
        Step::Confirm(who) => Command::Confirm(Confirm { consumer: consumer(who), move_id: None }),
        Step::Revert(who) => {
            Command::Revert(Revert { consumer: consumer(who), move_id: None, reason: None })
        }
        Step::Reschedule(who, host, amount) => Command::Reschedule(Reschedule {
            consumer: consumer(who),
            move_id: None,
            reason: "test".into(),
            options: options(host, amount),
        }),
        Step::DoubleUp(who, host, amount) => Command::DoubleUp(DoubleUp {
            consumer: consumer(who),
            kind: MoveKind::Evacuation,
            options: options(host, amount),
        }),
        Step::Release(who, ended) => {
            Command::Release(Release { consumer: consumer(who), ended, reason: None })
        }
        Step::Part(who, host, amount) => Command::ReleasePart(ReleasePart {
            consumer: consumer(who),
            provider: provider(host),
            class: "VCPU".into(),
            amount,
            reason: None,
        }),
        Step::Add(host, total) => Command::AddInventory(AddInventory {
            provider: provider(host),
            class: "VCPU".into(),
            total,
            reserved: 0,
        }),
        Step::Quota(limit) => Command::SetQuota(SetQuota {
            project_id: Some("p".into()),
            limits: [("VCPU".to_owned(), limit.map(Limit::AtMost))].into(),
        }),
        Step::PostBack(who) => {
            let source = state.holding_of(consumer(migration(who)));
            plain(Via::Post, vec![(migration(who), Holding::new()), (who, source)])
        }
        Step::Delete(who) => plain(Via::Delete, vec![(who, Holding::new())]),
        Step::Resize(host, total) => Command::ChangeInventories(ChangeInventories {
            provider: provider(host),
            generation: None,
            change: InventoryChange::Update("VCPU".into(), Inventory::of(total)),
            may_reserve_all: true,
        }),
    }]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Invariants 3, 4 and 5 over random interleavings of moves, plain writes, partial releases,
    /// changing inventories and limits of the project.
    #[test]
    fn held_never_goes_above_capacity_and_ends_never_raise_it(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let mut state = State::default();
        let genesis = MemoryLog::default();
        let ledger = Ledger::open_on(Box::new(genesis), options(), clock(), [1; 16]).unwrap();
        state.clone_from(&ledger.view());
        ledger.close();
        let mut number = 0;
        let mut decide = |state: &State, list: &[Command]| {
            number += 1;
            crate::decide::decide(state, list, &stamp(number), Timestamp::from_micros(number as i64))
        };
        for number in 0..3 {
            state = decide(&state, &host(number, 6)).unwrap().state;
        }
        for step in &steps {
            let list = command(step, &state);
            let before: Vec<u64> = (0..3).map(|host| held(&state, host)).collect();
            let Ok(decided) = decide(&state, &list) else { continue };
            let after: Vec<u64> = (0..3).map(|host| held(&decided.state, host)).collect();
            decided.state.check_invariants().map_err(|wrong| TestCaseError::fail(format!("{step:?}: {wrong:?}")))?;
            for host in 0..3 {
                let row = decided.state.provider(provider(host as u128)).unwrap();
                let capacity = row.inventories[0].inventory.capacity() as u64;
                prop_assert!(
                    after[host] <= capacity
                        || after[host] <= before[host]
                        || matches!(step, Step::Resize(..) | Step::Add(..)),
                    "{step:?} leaves {} held of {capacity}", after[host]
                );
            }
            let vcpu = decided.state.classes().id("VCPU").unwrap();
            let of_project = [&state, &decided.state].map(|state| state.held_by_project("p", vcpu));
            if let Some(limit) = state.limit_of("p", vcpu) {
                prop_assert!(
                    of_project[1] <= limit.max(of_project[0]) || matches!(step, Step::Quota(_)),
                    "{step:?} leaves the project with {of_project:?} of {limit}"
                );
            }
            if matches!(step, Step::Confirm(_) | Step::Revert(_) | Step::Open(_) | Step::Part(..)) {
                prop_assert!(after.iter().zip(&before).all(|(after, before)| after <= before), "{step:?} raises held");
            }
            state = decided.state;
        }
    }
}
