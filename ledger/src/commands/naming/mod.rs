//! What plain Placement writes mean: the eight rules of DESIGN, "Plain Placement traffic gets the
//! same names", tried in order, a file each. Naming never changes the answer: it only sorts the
//! consumers of one write into events and says which moves they touch.

mod destination_claimed;
mod destination_released;
mod doubled_up;
mod migration_emptied;
mod other;
mod returned;
mod whole_holding_moved;

use super::plan::{Planned, allocations_after, refreshed};
use crate::command::Via;
use crate::event::{AllocationEvent, Event, Finding, Move, MoveState, Owner};
use crate::ids::ConsumerUuid;
use crate::state::consumer::amount_in;
use crate::state::{Allocation, Allocations, MoveEntry, State, link_of};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// One consumer of a plain write.
#[derive(Clone, Debug)]
pub(crate) struct PlainWrite {
    pub(crate) consumer: ConsumerUuid,
    pub(crate) before: Allocations,
    pub(crate) after: Allocations,
    pub(crate) owner: Owner,
}

impl PlainWrite {
    /// Whether it gets nothing that it has not now. What counts for its link group is then no more
    /// than before, so it may stay, and letting go is never refused.
    fn only_lets_go(&self) -> bool {
        let is_less =
            |held: &Allocation| held.amount <= amount_in(&self.before, held.provider, held.class);
        !self.after.is_empty() && self.after.iter().all(is_less)
    }

    /// Whether it holds no more than before in all, wherever that is. A reshape may spell a class
    /// by another, so amounts are added up whatever their class.
    fn holds_no_more(&self) -> bool {
        let sum = |of: &Allocations| of.iter().map(|held| u64::from(held.amount)).sum::<u64>();
        !self.after.is_empty() && sum(&self.after) <= sum(&self.before)
    }
}

/// One event to be: its kind, its consumers and the moves it changes.
pub(crate) struct Step {
    pub(crate) kind: fn(AllocationEvent) -> Event,
    pub(crate) plan: Vec<Planned>,
    pub(crate) moves: Vec<Move>,
    pub(crate) finding: Option<Finding>,
}

/// What the rules look at.
pub(crate) struct Write<'a> {
    pub(crate) state: &'a State,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) via: Via,
    /// All consumers of the write.
    pub(crate) all: &'a [PlainWrite],
    /// Where each consumer is in `all`.
    places: HashMap<ConsumerUuid, usize>,
    /// By the place in `all`: whether no rule has taken it yet.
    left: Vec<bool>,
    new_id: &'a mut dyn FnMut() -> Uuid,
}

/// Sorts a write into events by the eight rules.
pub(crate) fn steps(
    state: &State,
    request_id: Option<&str>,
    via: Via,
    writes: &[PlainWrite],
    new_id: &mut dyn FnMut() -> Uuid,
) -> Vec<Step> {
    let places = writes.iter().map(|write| write.consumer).zip(0..).collect();
    let left = vec![true; writes.len()];
    let mut write = Write { state, request_id, via, all: writes, places, left, new_id };
    let mut steps = Vec::new();
    returned::take(&mut write, &mut steps);
    whole_holding_moved::take(&mut write, &mut steps);
    migration_emptied::take(&mut write, &mut steps);
    destination_released::take(&mut write, &mut steps);
    destination_claimed::take(&mut write, &mut steps);
    doubled_up::take(&mut write, &mut steps);
    other::take(&mut write, &mut steps);
    // The last rule takes all that are left.
    assert!(!write.left.contains(&true), "each consumer of a write is in one event");
    steps
}

impl<'a> Write<'a> {
    fn left(&self) -> Vec<&'a PlainWrite> {
        let with_left = self.all.iter().zip(&self.left);
        with_left.filter_map(|(write, &left)| left.then_some(write)).collect()
    }

    fn is_left(&self, consumer: ConsumerUuid) -> bool {
        self.places.get(&consumer).is_some_and(|&at| self.left[at])
    }

    fn done(&mut self, consumer: ConsumerUuid) {
        if let Some(&at) = self.places.get(&consumer) {
            self.left[at] = false;
        }
    }

    fn of(&self, consumer: ConsumerUuid) -> Option<&'a PlainWrite> {
        self.places.get(&consumer).map(|&at| &self.all[at])
    }

    /// What a consumer holds once the whole write is carried out.
    fn after(&self, consumer: ConsumerUuid) -> Allocations {
        match self.of(consumer) {
            Some(write) => write.after.clone(),
            None => allocations_after(self.state, &[], consumer),
        }
    }

    /// A consumer's plan when no rule hands it a link: as long as it only lets go of some it keeps
    /// its own, emptied or overwritten it leaves its group.
    fn plain(&self, write: &PlainWrite) -> Planned {
        Planned {
            consumer: write.consumer,
            after: write.after.clone(),
            owner: write.owner.clone(),
            link: link_of(self.state, write.consumer).filter(|_| self.stays_linked(write)),
            untouched: false,
            generation: None,
        }
    }

    /// Who only releases something, or in a reshape holds the same elsewhere, stays in its group.
    fn stays_linked(&self, write: &PlainWrite) -> bool {
        write.only_lets_go() || (self.via == Via::Reshaper && write.holds_no_more())
    }

    /// The plan of a consumer that gets another's whole holding, and with it its link.
    fn handed(&self, write: &PlainWrite, giver: ConsumerUuid) -> Planned {
        Planned { link: link_of(self.state, giver), ..self.plain(write) }
    }

    /// The plan of a consumer that gave its whole holding away: it is unlinked, even if it gets
    /// something new in the same write.
    fn giver(&self, write: &PlainWrite) -> Planned {
        Planned { link: None, ..self.plain(write) }
    }

    /// The live moves of which a consumer holds the source.
    fn live_of_migration(&self, consumer: ConsumerUuid) -> Option<&'a Arc<MoveEntry>> {
        self.state.moves().live_of_migration(consumer)
    }

    /// A move as it ends.
    fn ended(&self, this: &Move, state: MoveState) -> Move {
        let sides = [Some(this.instance), this.migration];
        let written = sides.into_iter().flatten().filter_map(|side| self.of(side));
        let plan: Vec<Planned> = written.map(|write| self.plain(write)).collect();
        let mut ended = refreshed(self.state, &plan, this, self.via);
        ended.state = state;
        ended.alternates.clear();
        ended.arrived &= state == MoveState::Confirmed;
        match state {
            MoveState::Confirmed => ended.source.clear(),
            MoveState::Reverted => {
                ended.source = self.state.holding(&self.after(this.instance));
                ended.destination.clear();
            }
            _ => {}
        }
        ended
    }

    /// Whether the instance of a move holds something itself or through a later live move.
    fn instance_holds(&self, this: &Move) -> bool {
        if !self.after(this.instance).is_empty() {
            return true;
        }
        self.state
            .moves()
            .live_of_instance(this.instance)
            .filter(|later| later.this.id != this.id)
            .filter_map(|later| later.this.migration)
            .any(|migration| Some(migration) != this.migration && !self.after(migration).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::commands::testing::*;
    use crate::event::{Finding, MoveState};
    use crate::refusal::Cause;

    fn on(host: u128, amount: u32) -> Holding {
        holding(&[(host, &[("VCPU", amount)])])
    }

    fn nothing() -> Holding {
        Holding::new()
    }

    /// Server 1 with 2 VCPU on host 1; request ids as Nova sends them.
    fn booted() -> World {
        let mut world = (1..=3).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]));
        world.request_id = Some("req-boot".into());
        assert_eq!(world.kinds(put(1, on(1, 2))), ["Claimed"]);
        world.request_id = Some("req-resize".into());
        world
    }

    fn opened() -> World {
        let mut world = booted();
        assert_eq!(world.kinds(post(&[(1, nothing()), (9, on(1, 2))])), ["MovedToMigration"]);
        world
    }

    #[test]
    fn rule_1_exactly_the_source_back_is_a_revert() {
        let mut world = opened();
        world.ok(put(1, on(2, 4)));
        assert_eq!(world.kinds(post(&[(9, nothing()), (1, on(1, 2))])), ["Reverted"]);
        let this = world.latest_move(1);
        assert_eq!((this.state, this.source), (MoveState::Reverted, on(1, 2)));
        assert_eq!(world.held(2, "VCPU"), 0);
        // Not exactly: rules 3 to 8.
        let mut world = opened();
        assert_eq!(world.kinds(post(&[(9, nothing()), (1, on(1, 1))])), ["Released", "Claimed"]);
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
    }

    #[test]
    fn rule_2_a_whole_holding_handed_over_opens_a_move() {
        let mut world = opened();
        let this = world.latest_move(1);
        assert!(this.inferred && this.migration == Some(consumer(9)));
        assert_eq!((this.state, this.attempt, &this.source), (MoveState::Open, 1, &on(1, 2)));
        // The same migration again after a revert is the next attempt.
        world.ok(post(&[(9, nothing()), (1, on(1, 2))]));
        world.ok(post(&[(1, nothing()), (9, on(1, 2))]));
        let again = world.latest_move(1);
        assert_eq!((again.id, again.attempt, again.state), (this.id, 2, MoveState::Open));
    }

    #[test]
    fn rule_2_something_new_in_the_same_write_is_the_destination() {
        let mut world = booted();
        let generation = world.state.consumer(consumer(1)).unwrap().generation;
        let kinds = world.kinds(post(&[(1, on(2, 4)), (9, on(1, 2))]));
        assert_eq!(kinds, ["MovedToMigration", "Claimed"]);
        let this = world.latest_move(1);
        assert_eq!((this.state, this.destination), (MoveState::Claimed, on(2, 4)));
        // The answers stay Placement's: one write, one step of the generation.
        assert_eq!(world.state.consumer(consumer(1)).unwrap().generation, generation + 1);
    }

    #[test]
    fn rule_3_the_migration_emptied_beside_a_destination_is_a_confirm() {
        for empty in [put(9, nothing()), delete(9), post(&[(9, nothing())])] {
            let mut world = opened();
            world.ok(put(1, on(2, 4)));
            assert_eq!(world.kinds(empty), ["Confirmed"]);
            assert_eq!(world.latest_move(1).state, MoveState::Confirmed);
            assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
        }
    }

    #[test]
    fn rule_4_the_migration_emptied_without_a_destination_is_a_finding() {
        let mut world = opened();
        assert_eq!(world.kinds(delete(9)), ["Released"]);
        assert_eq!(world.last_body().finding, Some(Finding::RunsWithoutAllocation));
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
    }

    #[test]
    fn rule_4_a_migration_overwritten_or_handed_on_ends_its_move() {
        let mut world = opened();
        world.ok(put(9, on(3, 1)));
        assert_eq!(world.last_body().finding, Some(Finding::MigrationOverwritten));
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
        // Handed to a third while the instance keeps a destination: confirmed, and a new move.
        let mut world = opened();
        world.ok(put(1, on(2, 4)));
        let first = world.latest_move(1).id;
        assert_eq!(world.kinds(post(&[(9, nothing()), (7, on(1, 2))])), ["MovedToMigration"]);
        let state = |id| world.state.moves().get(id).unwrap().this.state;
        assert_eq!(state(first), MoveState::Confirmed);
        let opened = world.state.moves().live_of_instance(consumer(9)).next().unwrap();
        assert_eq!(opened.this.state, MoveState::Open);
    }

    #[test]
    fn rule_5_the_instance_emptied_opens_the_move_again() {
        for empty in [put(1, nothing()), delete(1)] {
            let mut world = opened();
            world.ok(put(1, on(2, 4)));
            assert_eq!(world.latest_move(1).state, MoveState::Claimed);
            assert_eq!(world.kinds(empty), ["DestinationReleased"]);
            assert_eq!(world.latest_move(1).state, MoveState::Open);
            assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 0));
        }
    }

    #[test]
    fn rule_6_a_claim_of_the_same_action_is_the_destination() {
        let mut world = opened();
        assert_eq!(world.kinds(put(1, on(2, 4))), ["Claimed"]);
        let body = world.last_body();
        assert_eq!(body.finding, None);
        assert_eq!((&body.moves[0].source, &body.moves[0].destination), (&on(1, 2), &on(2, 4)));
        // Neither has a request id.
        let mut world = booted();
        world.request_id = None;
        world.ok(post(&[(1, nothing()), (9, on(1, 2))]));
        world.ok(put(1, on(2, 4)));
        assert_eq!(world.last_body().finding, None);
    }

    #[test]
    fn rule_6_a_claim_of_another_action_is_a_finding_and_the_move_stays_live() {
        let mut world = opened();
        world.request_id = Some("req-other".into());
        assert_eq!(world.kinds(put(1, on(2, 4))), ["Claimed"]);
        assert_eq!(world.last_body().finding, Some(Finding::ForeignRequestId));
        assert!(world.latest_move(1).state.is_live());
        world.ok(delete(9));
        assert!(!world.latest_move(1).state.is_live());
    }

    #[test]
    fn rule_7_a_second_tree_with_the_same_sums_is_a_double_up() {
        for (end, state) in [(2, MoveState::Confirmed), (1, MoveState::Reverted)] {
            let mut world = booted();
            let both = holding(&[(1, &[("VCPU", 2)]), (2, &[("VCPU", 2)])]);
            assert_eq!(world.kinds(put(1, both)), ["DoubledUp"]);
            let this = world.latest_move(1);
            assert_eq!((this.state, this.migration), (MoveState::Claimed, None));
            assert_eq!((&this.source, &this.destination), (&on(1, 2), &on(2, 2)));
            let kind = if end == 2 { "Confirmed" } else { "Reverted" };
            assert_eq!(world.kinds(put(1, on(end, 2))), [kind]);
            assert_eq!(world.latest_move(1).state, state);
        }
        // Other sums are none.
        let mut world = booted();
        let both = holding(&[(1, &[("VCPU", 2)]), (2, &[("VCPU", 3)])]);
        assert_eq!(world.kinds(put(1, both)), ["Reallocated"]);
    }

    #[test]
    fn rule_7_both_sides_gone_abandons_the_move() {
        let mut world = booted();
        world.ok(put(1, holding(&[(1, &[("VCPU", 2)]), (2, &[("VCPU", 2)])])));
        assert_eq!(world.kinds(delete(1)), ["Released"]);
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
    }

    #[test]
    fn rule_8_each_by_itself() {
        let mut world = booted();
        assert_eq!(world.kinds(put(1, on(1, 3))), ["Reallocated"]);
        assert_eq!(
            world.kinds(post(&[(1, nothing()), (5, on(2, 1)), (6, on(2, 1))])),
            ["Released", "Claimed", "Claimed"]
        );
        assert!(
            world.ok(put(77, nothing())).events.is_empty(),
            "nothing of nothing changes nothing"
        );
    }

    #[test]
    fn a_delete_of_nothing_is_not_found_and_noted_on_a_live_move() {
        let mut world = opened();
        let refusal = world.refused(delete(1));
        assert_eq!(refusal.cause, Cause::HoldsNothing { consumer: consumer(1) });
        assert_eq!(refusal.move_id, Some(world.latest_move(1).id));
        assert_eq!(world.refused(delete(55)).move_id, None);
    }

    /// The example of Launchpad bug 1790204 in `sum` arithmetic: refused, as Placement does.
    #[test]
    fn plain_writes_keep_placements_arithmetic() {
        let mut world = World::new().host(1, &[("DISK_GB", 1028)]);
        let full = holding(&[(1, &[("DISK_GB", 1028)])]);
        world.ok(put(1, full.clone()));
        world.ok(post(&[(1, nothing()), (9, full.clone())]));
        let refusal = world.refused(put(1, full));
        assert_eq!(refusal.cause, Cause::Capacity);
        assert_eq!((refusal.shortages[0].needed, refusal.shortages[0].free), (1028, 0));
        assert_eq!(refusal.move_id, Some(world.latest_move(1).id));
    }
}
