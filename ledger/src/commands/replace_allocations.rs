//! `replace_allocations`: Placement's PUT, POST and DELETE of allocations (API reference,
//! "Allocations"). Each consumer's whole holding is replaced; all or nothing.

use super::Decision;
use super::naming::{self, PlainWrite, Step};
use super::plan::{
    self, Planned, check_fits, check_kept, event_body, generations_after, malformed, resolve,
};
use crate::command::{ConsumerWrite, GenerationCheck, ReplaceAllocations, Via};
use crate::decide::Draft;
use crate::event::{Move, Owner, Unchanged};
use crate::ids::ConsumerUuid;
use crate::refusal::{Cause, Refusal};
use crate::state::{State, link_of};
use std::collections::{BTreeSet, HashMap};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReplaceAllocations) -> Decision {
    let writes = plain_writes(&draft.state, &command.consumers)?;
    if command.via == Via::Delete {
        refuse_deleting_nothing(&draft.state, &writes)?;
    }
    let note = Note { via: command.via, reason: None, ended: false, shrinks: false };
    carry_out(draft, &writes, &note)
}

/// What the caller says about a write beside its consumers.
pub(super) struct Note {
    pub(super) via: Via,
    pub(super) reason: Option<String>,
    /// The consumers are gone for good.
    pub(super) ended: bool,
    /// The consumers only let go of a part, so that they stay in their link groups: the largest
    /// amount of a group cannot grow by it.
    pub(super) shrinks: bool,
}

/// Names the write, checks that it fits as a whole, and adds its events.
pub(super) fn carry_out(draft: &mut Draft<'_>, writes: &[PlainWrite], note: &Note) -> Decision {
    let amounts = writes.iter().map(|write| 1 + write.before.len() + write.after.len());
    draft.charge(amounts.sum::<usize>() / 4)?;
    let state = draft.state.clone();
    let request_id = draft.stamp.request_id.clone();
    let mut steps =
        naming::steps(&state, request_id.as_deref(), note.via, writes, &mut || draft.new_id());
    if note.shrinks {
        let left = steps.iter_mut().flat_map(|step| &mut step.plan);
        left.filter(|planned| !planned.after.is_empty())
            .for_each(|planned| planned.link = link_of(&state, planned.consumer));
    }
    if steps.is_empty() {
        return Ok(Some(Unchanged::NoChange));
    }
    // The last plan of a consumer is what it ends with.
    let plans: Vec<&Planned> = steps.iter().flat_map(|step| &step.plan).collect();
    let last: HashMap<ConsumerUuid, usize> =
        plans.iter().map(|planned| planned.consumer).zip(0..).collect();
    let is_last = |(at, planned): &(usize, &&Planned)| last.get(&planned.consumer) == Some(at);
    let whole: Vec<Planned> =
        plans.iter().enumerate().filter(is_last).map(|(_, planned)| (*planned).clone()).collect();
    // The ledger's own commands only release something here; Placement asks all again.
    let check = if note.via == Via::Command { check_kept } else { check_fits };
    check(&state, &whole).map_err(|refusal| about_move(&state, writes, refusal))?;
    let mut generations = generations_after(&state, &whole);
    if note.via == Via::Delete {
        generations.clear();
    }
    drop(state);
    for step in steps {
        emit(draft, step, &generations, note);
    }
    Ok(None)
}

fn emit(draft: &mut Draft<'_>, step: Step, generations: &plan::Generations, note: &Note) {
    let mut body = event_body(&draft.state, &step.plan, generations, step.moves, note.via);
    body.reason.clone_from(&note.reason);
    body.finding = step.finding;
    if note.ended {
        let gone = |this: &Move| step.plan.iter().any(|planned| planned.consumer == this.instance);
        body.moves.iter_mut().filter(|this| gone(this)).for_each(|this| this.ended = true);
    }
    plan::emit(draft, step.kind, body);
}

/// The consumers of a write with what they hold before and after, generations checked.
pub(super) fn plain_writes(
    state: &State,
    consumers: &[ConsumerWrite],
) -> Result<Vec<PlainWrite>, Refusal> {
    let mut seen = BTreeSet::new();
    for write in consumers {
        if !seen.insert(write.consumer) {
            return Err(malformed(format!("consumer {} is written twice", write.consumer)).into());
        }
        check_generation(state, write)?;
    }
    // An unknown provider is told before any unknown class, whichever consumer names it.
    for provider in consumers.iter().flat_map(|write| write.allocations.keys()) {
        if state.provider_id(*provider).is_none() {
            return Err(Cause::ProviderNotFound { provider: *provider }.into());
        }
    }
    let mut writes = Vec::with_capacity(consumers.len());
    for write in consumers {
        let row = state.consumer(write.consumer);
        writes.push(PlainWrite {
            consumer: write.consumer,
            before: row.map(|row| row.allocations.clone()).unwrap_or_default(),
            after: resolve(state, &write.allocations)?,
            owner: Owner {
                project_id: write.project_id.clone(),
                user_id: write.user_id.clone(),
                consumer_type: write
                    .consumer_type
                    .clone()
                    .or_else(|| row.and_then(|row| plan::owner_of(state, row).consumer_type)),
            },
        });
    }
    Ok(writes)
}

fn check_generation(state: &State, write: &ConsumerWrite) -> Result<(), Cause> {
    let GenerationCheck::Is(given) = write.generation else { return Ok(()) };
    let current = state.consumer(write.consumer).map(|row| row.generation);
    if current == given {
        return Ok(());
    }
    Err(Cause::ConsumerGeneration { consumer: write.consumer, current, given })
}

/// A DELETE of nothing is "not found". During a move it is noted on the move: whoever sent it
/// believed that there was something.
fn refuse_deleting_nothing(state: &State, writes: &[PlainWrite]) -> Result<(), Refusal> {
    let Some(write) = writes.iter().find(|write| write.before.is_empty()) else { return Ok(()) };
    let refusal = Refusal::because(Cause::HoldsNothing { consumer: write.consumer });
    Err(about_move(state, writes, refusal))
}

/// A refusal with the live move that one of the consumers is a side of.
fn about_move(state: &State, writes: &[PlainWrite], mut refusal: Refusal) -> Refusal {
    refusal.move_id = writes.iter().find_map(|write| {
        let mut moves = state.moves().of(write.consumer);
        moves.find(|entry| entry.this.state.is_live()).map(|entry| entry.this.id)
    });
    refusal
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, GenerationCheck, ReplaceAllocations, Via};
    use crate::commands::testing::*;
    use crate::refusal::{Cause, ShortageCause};

    /// Launchpad bug 1778743, case C3.
    #[test]
    fn the_sum_over_the_request_counts() {
        let mut world = World::new().host(1, &[("VCPU", 4)]);
        let of = |amount| holding(&[(1, &[("VCPU", amount)])]);
        let refusal = world.refused(post(&[(1, of(3)), (2, of(3))]));
        assert_eq!(refusal.cause, Cause::Capacity);
        assert_eq!((refusal.shortages[0].needed, refusal.shortages[0].free), (6, 4));
        world.ok(post(&[(1, of(3)), (2, of(1))]));
    }

    /// Launchpad bug 2104040, case H1.
    #[test]
    fn an_overcommitted_provider_may_stay_so_or_improve() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        let of = |amount| holding(&[(1, &[("VCPU", amount)])]);
        world.ok(put(1, of(4)));
        world.ok(put(2, of(4)));
        world.ok(shrink(1, "VCPU", 4));
        world.ok(put(1, of(4)));
        world.ok(put(1, of(3)));
        assert_eq!(world.refused(put(1, of(5))).cause, Cause::Capacity);
        assert_eq!(world.refused(put(3, of(1))).cause, Cause::Capacity);
    }

    /// Case H5: capacity is an IEEE double, as Placement computes it.
    #[test]
    fn capacity_is_a_double() {
        for (total, ratio, fits) in
            [(100, 0.29, 28), (1000, 1.001, 1000), (10, 1.1, 11), (10, 0.7, 7)]
        {
            let mut world = World::new().host(1, &[("VCPU", 1)]);
            let inventory = crate::amounts::Inventory {
                allocation_ratio: ratio,
                ..crate::amounts::Inventory::of(total)
            };
            world.ok(Command::ChangeInventories(crate::command::ChangeInventories {
                provider: provider(1),
                generation: None,
                change: crate::command::InventoryChange::Update("VCPU".into(), inventory),
                may_reserve_all: true,
            }));
            assert_eq!(
                world.refused(put(1, holding(&[(1, &[("VCPU", fits + 1)])]))).cause,
                Cause::Capacity
            );
            world.ok(put(1, holding(&[(1, &[("VCPU", fits)])])));
        }
    }

    /// Launchpad bug 1778576, cases C2 and C6.
    #[test]
    fn generations_are_checked_and_a_refusal_leaves_no_consumer() {
        let mut world = World::new().host(1, &[("VCPU", 4)]);
        let mut with = |generation, amount| {
            let mut one = write(1, holding(&[(1, &[("VCPU", amount)])]));
            one.generation = GenerationCheck::Is(generation);
            let consumers = vec![one];
            world.try_(Command::ReplaceAllocations(ReplaceAllocations { via: Via::Put, consumers }))
        };
        assert_eq!(with(None, 40).unwrap_err().cause, Cause::Capacity);
        with(None, 2).unwrap();
        let conflict =
            |current, given| Cause::ConsumerGeneration { consumer: consumer(1), current, given };
        assert_eq!(with(None, 2).unwrap_err().cause, conflict(Some(1), None));
        assert_eq!(with(Some(3), 2).unwrap_err().cause, conflict(Some(1), Some(3)));
        with(Some(1), 3).unwrap();
    }

    #[test]
    fn constraints_say_which() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        let inventory = crate::amounts::Inventory {
            min_unit: 2,
            max_unit: 4,
            step_size: 2,
            ..crate::amounts::Inventory::of(8)
        };
        world.ok(Command::ChangeInventories(crate::command::ChangeInventories {
            provider: provider(1),
            generation: None,
            change: crate::command::InventoryChange::Update("VCPU".into(), inventory),
            may_reserve_all: true,
        }));
        let cases = [
            (1, ShortageCause::MinUnit(2)),
            (6, ShortageCause::MaxUnit(4)),
            (3, ShortageCause::StepSize(2)),
        ];
        for (amount, cause) in cases {
            let refusal = world.refused(put(1, holding(&[(1, &[("VCPU", amount)])])));
            assert_eq!((refusal.cause, refusal.shortages[0].cause), (Cause::Constraint, cause));
        }
        let refusal = world.refused(put(1, holding(&[(1, &[("VCPU", 2), ("VGPU", 1)])])));
        assert!(
            matches!(refusal.cause, Cause::NoInventory { ref classes, .. } if classes == &["VGPU"])
        );
        let unknown = world.refused(put(1, holding(&[(7, &[("NOPE", 2)])])));
        assert_eq!(unknown.cause, Cause::ProviderNotFound { provider: provider(7) });
    }
}
