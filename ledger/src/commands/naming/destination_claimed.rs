//! Rule 6: the instance is empty, its move is open, and a write gives it something: the
//! destination, if the request id is that of the move's opening (or neither has one). With another
//! request id it is a finding, and the move stays live until the migration is emptied.
//!
//! With the setting `same_host_moves: max`, a PUT with the request id of the latest opening is
//! granted overlap: the destination is linked with the source, so that on a provider that both are
//! on only the larger counts (Launchpad bug 1790204). Without a request id, or with another, both
//! count, as Placement does it.

use super::{PlainWrite, Step, Write};
use crate::command::{SameHostMoves, Via};
use crate::commands::claim::source_linked;
use crate::commands::plan::Planned;
use crate::event::{Event, Finding, Move, MoveState};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for instance in write.left() {
        if !instance.before.is_empty() || instance.after.is_empty() {
            continue;
        }
        let Some(entry) = write.state.moves().live_of_instance(instance.consumer).next() else {
            continue;
        };
        if entry.this.state != MoveState::Open || entry.this.migration.is_none() {
            continue;
        }
        let same_action = entry.this.request_id.as_deref() == write.request_id;
        // The event names both holdings: the move's source and its destination.
        steps.push(Step {
            kind: Event::Claimed,
            plan: plan(write, instance, &entry.this),
            moves: Vec::new(),
            finding: (!same_action).then_some(Finding::ForeignRequestId),
        });
        write.done(instance.consumer);
    }
}

fn plan(write: &mut Write<'_>, instance: &PlainWrite, this: &Move) -> Vec<Planned> {
    let claimed = write.plain(instance);
    if !is_granted_overlap(write, this) {
        return vec![claimed];
    }
    match source_linked(write.state, this, write.new_id) {
        Some(source) => vec![Planned { link: source.link.clone(), ..claimed }, source],
        None => vec![claimed],
    }
}

fn is_granted_overlap(write: &Write<'_>, this: &Move) -> bool {
    let has_id = write.request_id.is_some_and(|id| !id.is_empty());
    write.state.settings().same_host_moves == SameHostMoves::Max
        && write.via == Via::Put
        && has_id
        && this.request_id.as_deref() == write.request_id
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{ChangeSettings, Command, SameHostMoves};
    use crate::commands::testing::*;
    use crate::event::MoveState;
    use crate::refusal::Cause;

    fn on(vcpus: u32) -> Holding {
        holding(&[(1, &[("VCPU", vcpus)])])
    }

    /// A host of 4, full with server 1, which was handed to migration 9 by a request.
    fn opened(rule: SameHostMoves) -> World {
        let mut world = World::new().host(1, &[("VCPU", 4)]);
        let change = ChangeSettings { same_host_moves: Some(rule), ..ChangeSettings::default() };
        world.try_(Command::ChangeSettings(change)).unwrap();
        world.ok(put(1, on(4)));
        world.request_id = Some("req-resize".into());
        world.ok(post(&[(1, Holding::new()), (9, on(4))]));
        world
    }

    /// Launchpad bug 1790204 by plain calls.
    #[test]
    fn with_max_the_same_request_counts_the_larger_side() {
        for (end, left) in [(delete(9), 3), (post(&[(9, Holding::new()), (1, on(4))]), 4)] {
            let mut world = opened(SameHostMoves::Max);
            assert_eq!(world.kinds(put(1, on(3))), ["Claimed"]);
            assert_eq!((world.held(1, "VCPU"), world.holds(1), world.holds(9)), (4, on(3), on(4)));
            assert_eq!(world.latest_move(1).state, MoveState::Claimed);
            world.ok(end);
            assert_eq!(world.held(1, "VCPU"), left);
        }
    }

    #[test]
    fn another_request_another_call_and_sum_count_both_sides() {
        for request_id in [None, Some(""), Some("req-other")] {
            let mut world = opened(SameHostMoves::Max);
            world.request_id = request_id.map(str::to_owned);
            assert_eq!(world.refused(put(1, on(1))).cause, Cause::Capacity);
        }
        let mut world = opened(SameHostMoves::Max);
        assert_eq!(world.refused(post(&[(1, on(1))])).cause, Cause::Capacity);
        let mut world = opened(SameHostMoves::Sum);
        assert_eq!(world.refused(put(1, on(1))).cause, Cause::Capacity);
    }

    #[test]
    fn a_closed_attempt_gives_no_overlap_and_the_next_one_does_again() {
        let mut world = opened(SameHostMoves::Max);
        world.ok(put(1, on(4)));
        world.ok(delete(9));
        world.ok(delete(1));
        world.ok(put(5, on(1)));
        world.ok(put(1, on(3)));
        assert_eq!(world.held(1, "VCPU"), 4, "the move has ended: nobody is linked");
        world.request_id = Some("req-again".into());
        world.ok(post(&[(1, Holding::new()), (9, on(3))]));
        world.request_id = Some("req-resize".into());
        assert_eq!(world.refused(put(1, on(3))).cause, Cause::Capacity);
        world.request_id = Some("req-again".into());
        world.ok(put(1, on(3)));
        assert_eq!(world.held(1, "VCPU"), 4);
    }

    /// A destination that is given up and claimed again by the same request is linked again.
    #[test]
    fn the_same_request_may_claim_again() {
        let mut world = opened(SameHostMoves::Max);
        for vcpus in [4, 2, 3] {
            world.ok(put(1, on(vcpus)));
            assert_eq!(world.held(1, "VCPU"), 4);
            world.ok(put(1, Holding::new()));
        }
        // Without a provider in common it is linked, too: shared storage may follow.
        assert_eq!(world.held(1, "VCPU"), 4);
    }

    /// Who gets anything more leaves the group, and both count.
    #[test]
    fn a_side_that_grows_is_no_longer_the_move_s() {
        let mut world = opened(SameHostMoves::Max).host(2, &[("VCPU", 4)]);
        world.ok(put(1, on(3)));
        world.ok(put(1, on(2)));
        assert_eq!(world.held(1, "VCPU"), 4);
        assert_eq!(world.refused(put(1, on(3))).cause, Cause::Capacity);
        world.ok(put(9, on(1)));
        assert_eq!(world.held(1, "VCPU"), 2, "both let go of some and stay linked");
        world.ok(put(1, on(3)));
        assert_eq!(world.held(1, "VCPU"), 4);
    }
}
