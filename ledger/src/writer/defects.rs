//! Defects of this program at each border of the writer: a panic costs the command that met it and
//! nobody else's. In these tests the request id `panic-in-PLACE` plants a panic at that place.

use super::tests::*;
use super::*;
use crate::amounts::Holding;
use crate::command::*;
use crate::event::Event;
use crate::limits;
use crate::log::MemoryLog;
use crate::refusal::{Cause, Refusal};
use crate::stamp::{Actor, CommandId};

fn open(log: &MemoryLog) -> Ledger {
    Ledger::open_on(Box::new(log.clone()), options(), clock(), [1; 16]).unwrap()
}

fn planted(place: &str, stamp: Stamp) -> Stamp {
    Stamp { request_id: Some(format!("panic-in-{place}")), ..stamp }
}

fn is_internal(refusal: &Refusal) -> bool {
    matches!(refusal.cause, Cause::Internal { .. })
}

/// What was written folds to the state that is served, and the state is sound.
fn is_whole(ledger: &Ledger, log: &MemoryLog) {
    ledger.view().check_invariants().unwrap();
    let digest = ledger.view().digest();
    ledger.close();
    let again = open(log);
    assert_eq!(again.view().digest(), digest, "replay equals live");
    again.close();
}

/// A panic anywhere between the queue and the batch, before and after the state was changed:
/// fifty others in the same moment are done, the one is refused, and its id stays refused.
#[test]
fn a_panic_while_deciding_refuses_one_command_and_no_other() {
    for place in ["decide", "apply", "encode"] {
        let log = MemoryLog::default();
        let ledger = open(&log);
        ledger.submit_blocking(host(1, 1000), stamp(1)).unwrap();
        ledger.submit_blocking(put(77, on(1, 7)), stamp(2)).unwrap();
        let mut waiting = Vec::new();
        for number in 0..50 {
            waiting.push(ledger.submit(put(number, on(1, 2)), stamp(10 + number as u64)).unwrap());
            if number == 25 {
                // A list, so that some of it is decided before the panic.
                let list = [put(77, Holding::new()), put(88, on(1, 1))].concat();
                waiting.push(ledger.submit(list, planted(place, with_id(99, "bad"))).unwrap());
            }
        }
        let answers: Vec<Answer> =
            waiting.into_iter().map(|answer| answer.blocking_recv().unwrap().unwrap()).collect();
        let refused: Vec<&Refusal> = answers.iter().filter_map(Answer::refusal).collect();
        assert!(matches!(refused[..], [refusal] if is_internal(refusal)), "{place}: {refused:?}");
        assert_eq!(held(&ledger.view(), 1), 107, "{place}");
        assert_eq!(ledger.view().consumer_count(), 51);
        let list = [put(77, Holding::new()), put(88, on(1, 1))].concat();
        let again = ledger.submit_blocking(list, with_id(200, "bad")).unwrap();
        assert!(again.repeated, "{place}: on record");
        assert_eq!(again.refusal(), Some(refused[0]));
        let next = ledger.submit_blocking(put(300, on(1, 1)), stamp(300)).unwrap();
        assert!(is_accepted(&next));
        is_whole(&ledger, &log);
    }
}

/// Without an id there is nothing to repeat, and nothing is on record.
#[test]
fn a_panic_without_an_id_leaves_no_trace() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 10), stamp(1)).unwrap();
    let head = ledger.view().sequence();
    let answer = ledger.submit_blocking(put(1, on(1, 2)), planted("apply", stamp(2))).unwrap();
    assert!(is_internal(answer.refusal().unwrap()));
    assert_eq!(ledger.view().sequence(), head);
    assert!(is_accepted(&ledger.submit_blocking(put(1, on(1, 2)), stamp(3)).unwrap()));
    is_whole(&ledger, &log);
}

/// On the way to the disk and to the readers the outcome is unknown; the log decides, once.
#[test]
fn after_a_panic_of_the_committer_the_log_decides() {
    for (place, there) in [("append", false), ("publish", true)] {
        let log = MemoryLog::default();
        let ledger = open(&log);
        ledger.submit_blocking(host(1, 10), stamp(1)).unwrap();
        let error =
            ledger.submit_blocking(put(1, on(1, 4)), planted(place, with_id(2, "x"))).unwrap_err();
        assert_eq!(error, SubmitError::OutcomeUnknown, "{place}");
        let answer = loop {
            match ledger.submit_blocking(put(1, on(1, 4)), with_id(3, "x")) {
                Ok(answer) => break answer,
                Err(SubmitError::OutcomeUnknown | SubmitError::ReadOnly { .. }) => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((answer.repeated, held(&ledger.view(), 1)), (there, 4), "{place}");
        is_whole(&ledger, &log);
    }
}

/// What was decided stands, and the others that waited for the batch are told.
#[test]
fn a_panic_while_answering_is_of_one_waiter_alone() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 10), stamp(1)).unwrap();
    let bad = ledger.submit(put(1, on(1, 4)), planted("answer", with_id(2, "x"))).unwrap();
    let good = ledger.submit(put(2, on(1, 1)), stamp(3)).unwrap();
    assert_eq!(bad.blocking_recv().unwrap().unwrap_err(), SubmitError::OutcomeUnknown);
    assert!(is_accepted(&good.blocking_recv().unwrap().unwrap()));
    let again = ledger.submit_blocking(put(1, on(1, 4)), with_id(4, "x")).unwrap();
    assert!(again.repeated && is_accepted(&again));
    assert_eq!(held(&ledger.view(), 1), 5);
    is_whole(&ledger, &log);
}

/// Each record of a group repeats who asked: what is too long for that is refused, whoever hands
/// it to the ledger.
#[test]
fn a_stamp_is_bounded() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 100), stamp(1)).unwrap();
    let head = ledger.view().sequence();
    let long = || "p".repeat(20_000);
    let id = CommandId { project: long(), id: "k".into() };
    let actor = |user, project| Actor { user, project, address: String::new() };
    for bad in [
        Stamp { command_id: Some(id), ..stamp(2) },
        Stamp { actor: actor(long(), "p".into()), ..stamp(3) },
        Stamp { actor: actor("u".into(), long()), ..stamp(4) },
        Stamp { request_id: Some("r".repeat(300)), ..stamp(5) },
        with_id(6, &"k".repeat(300)),
    ] {
        let list: Vec<Command> = (0..40).flat_map(|number| put(number, on(1, 1))).collect();
        let answer = ledger.submit_blocking(list, bad).unwrap();
        assert!(matches!(answer.refusal().unwrap().cause, Cause::TooLarge { .. }));
    }
    assert_eq!(ledger.view().sequence(), head);
    is_whole(&ledger, &log);
}

/// Private parts are written with their records, so they count with them.
#[test]
fn private_parts_count_into_the_size_of_a_group() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 100_000), stamp(1)).unwrap();
    // Each record is about as large as its private part.
    let user = "\u{1f4be}".repeat(limits::NAME_CHARS);
    let actor = Actor { user, project: "p".into(), address: String::new() };
    let list: Vec<Command> = (0..600).flat_map(|number| put(number, on(1, 1))).collect();
    assert!(is_accepted(&ledger.submit_blocking(list, stamp(2)).unwrap()));
    let list: Vec<Command> = (0..600).flat_map(|number| put(number, on(1, 2))).collect();
    let answer = ledger.submit_blocking(list, Stamp { actor, ..stamp(3) }).unwrap();
    assert!(matches!(answer.refusal().unwrap().cause, Cause::TooLarge { .. }));
    assert_eq!(held(&ledger.view(), 1), 600);
    is_whole(&ledger, &log);
}

/// The event of what was suppressed is bounded, however long the names of the projects are, and
/// counts all of it.
#[test]
fn suppressed_refusals_of_long_projects_are_recorded() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 1), stamp(1)).unwrap();
    let project = |number: usize| format!("{number}{}", "\u{1f4be}".repeat(250));
    let mut refused = 0;
    // The clock goes on by a millisecond or two a command: within some seconds much is suppressed.
    for number in 0..3_000 {
        let actor = Actor { project: project(number % 20), ..Actor::default() };
        let stamp = Stamp { actor, ..stamp(10 + number as u64) };
        let answer = ledger.submit_blocking(put(5, on(1, 2)), stamp).unwrap();
        refused += u64::from(answer.refusal().is_some());
    }
    let records = ledger.reader().read(1, 100_000).unwrap();
    let mut suppressed = 0;
    for record in records {
        if let Event::RefusalsSuppressed(body) = record.event().unwrap() {
            assert!(!body.by_project.is_empty());
            assert!(record.bytes().len() < limits::NOTE_BYTES);
            suppressed += body.total;
        }
    }
    assert!(refused == 3_000 && suppressed > 500, "{suppressed}");
    is_whole(&ledger, &log);
}

/// A ratio puts a capacity as far from 0 as it likes. A ledger that holds such a row, which the
/// reshaper once took, is served.
#[test]
fn a_capacity_beyond_all_numbers_is_survived() {
    use crate::amounts::Inventory;
    use crate::event::{InventoryBeforeAfter, InventoryChanged};
    for (ratio, reserved) in [(-1e30, 0), (1e30, 200), (3.4e38, 0)] {
        let mut state = State::default();
        let mut apply = |event: Event| {
            let next = state.sequence() + 1;
            state.apply(next, Timestamp::from_micros(1), &event);
            state.clone()
        };
        apply(Event::Genesis(crate::event::Genesis {
            ledger_id: Default::default(),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: vec!["VCPU".into()],
            standard_traits: Vec::new(),
        }));
        apply(Event::ProviderCreated(crate::event::ProviderCreated {
            provider: provider(1),
            name: "host".into(),
            parent: None,
            root: None,
            generation: 0,
        }));
        let before = Inventory::of(100);
        let after = Inventory { allocation_ratio: ratio, reserved, ..before };
        let change = |before, after| InventoryBeforeAfter { class: "VCPU".into(), before, after };
        let event = |generation, change| {
            let changes = vec![change];
            Event::InventoryChanged(InventoryChanged { provider: provider(1), generation, changes })
        };
        let stocked = apply(event(1, change(None, Some(before))));
        // Something is held already, which comes on top of the capacity.
        let now = Timestamp::from_micros(2);
        let mut state =
            crate::decide::decide(&stocked, &put(9, on(1, 5)), &stamp(9), now).unwrap().state;
        let next = state.sequence() + 1;
        state.apply(next, now, &event(3, change(Some(before), Some(after))));
        let free = state.provider(provider(1)).unwrap().inventories[0].free();
        assert_eq!(free > 0, ratio > 1e35);
        // A claim and a PUT of the inventories are decided, one way or the other.
        let claim = put(1, on(1, 3));
        let claimed = crate::decide::decide(&state, &claim, &stamp(1), now);
        assert_eq!(claimed.is_ok(), ratio > 1e35);
        if let Ok(claimed) = claimed {
            state = claimed.state;
        }
        let change = Command::ChangeInventories(ChangeInventories {
            provider: provider(1),
            generation: None,
            change: InventoryChange::ReplaceAll([("VCPU".to_owned(), before)].into()),
            may_reserve_all: true,
        });
        crate::decide::decide(&state, &[change], &stamp(2), now).unwrap();
    }
}

/// A figure that an older version wrote too small is no reason to end: commands on it are decided,
/// and the figure is right from then on.
#[test]
fn a_ledger_with_too_small_a_figure_is_served_and_mended() {
    let log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 100), stamp(1)).unwrap();
    ledger.submit_blocking(quota_of_p(90), stamp(2)).unwrap();
    let mut state = (*ledger.view()).clone();
    ledger.close();
    let now = Timestamp::from_micros(i64::MAX / 2);
    let claim = crate::decide::decide(&state, &put(1, on(1, 5)), &stamp(3), now).unwrap();
    for mut event in claim.events {
        if let Event::Claimed(body) = &mut event {
            body.providers[0].held[0].after = 2;
        }
        state.apply(state.sequence() + 1, now, &event);
    }
    assert!(state.check_invariants().is_err() && held(&state, 1) == 2);
    for (command, left) in [
        (put(2, on(1, 1)), 3),
        (put(1, on(1, 4)), 5),
        (put(2, Holding::new()), 4),
        (put(1, Holding::new()), 0),
    ] {
        state = crate::decide::decide(&state, &command, &stamp(4), now).unwrap().state;
        assert_eq!(held(&state, 1), left);
    }
    state.check_invariants().unwrap();
}

fn quota_of_p(most: u64) -> Vec<Command> {
    let limits = [("VCPU".to_owned(), Some(Limit::AtMost(most)))].into();
    vec![Command::SetQuota(SetQuota { project_id: Some("p".into()), limits })]
}

/// An event that contradicts what is before it, as another program may write it, is told with its
/// place where the log is folded; nothing panics.
#[test]
fn a_log_that_contradicts_itself_is_refused_by_name() {
    use crate::fold::FoldError;
    use crate::log::{Appended, Batch, Head, Log};
    let mut log = MemoryLog::default();
    let ledger = open(&log);
    ledger.submit_blocking(host(1, 10), stamp(1)).unwrap();
    let last = ledger.reader().record(ledger.view().sequence()).unwrap().unwrap();
    ledger.close();
    let sequence = last.header.sequence + 1;
    let gone = crate::event::ProviderDeleted { provider: provider(7), name: String::new() };
    let event = Event::ProviderDeleted(gone);
    let header = crate::record::Header {
        sequence,
        group_first: sequence,
        group_count: 1,
        previous_hash: last.hash,
        ..last.header
    };
    let record = Record::encode(header, &event).unwrap();
    let head = Head { sequence: sequence - 1, hash: last.hash };
    let batch = Batch { records: vec![record], privates: vec![None], events: vec![event] };
    assert_eq!(log.append(&batch, head), Appended::Committed);
    let error = Ledger::open_on(Box::new(log), options(), clock(), [2; 16]).err().unwrap();
    let OpenError::Fold(FoldError::Contradiction { sequence: at, what }) = error else {
        panic!("{error}")
    };
    assert!(at == sequence && what.contains("does not exist"), "{at}: {what}");
}
