//! `reshape`: inventories and allocations of whole trees at once, as one event, so that nobody can
//! claim in between (Launchpad bug 1783130; Placement API reference, "Reshaper").

use super::inventories::{check, known_class, set_to};
use super::naming::{self, Step};
use super::plan::{Planned, check_fits, event_body, generations_after, provider_row};
use super::replace_allocations::plain_writes;
use super::{Decision, holders};
use crate::command::{Reshape, Via};
use crate::decide::Draft;
use crate::event::{Event, Finding, InventoryBeforeAfter, InventoryChanged, Move, Reshaped};
use crate::ids::ProviderUuid;
use crate::refusal::{Cause, Refusal};
use crate::state::{ClassId, ProviderId, State};
use std::collections::BTreeMap;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Reshape) -> Decision {
    let state = &draft.state;
    check_providers(state, command)?;
    let writes = plain_writes(state, &command.allocations)?;
    check_classes(state, command)?;
    // Decided on a state that has the union of old and new inventories.
    let mut united = draft.trial();
    for event in union(&united.state, command)? {
        united.emit(Event::InventoryChanged(event));
    }
    let mut ids = draft.trial();
    let request_id = draft.stamp.request_id.as_deref();
    let steps = naming::steps(state, request_id, Via::Reshaper, &writes, &mut || ids.new_id());
    let Named { plan, moves, finding } = Named::of(steps);
    check_fits(&united.state, &plan)?;
    let mut generations = generations_after(&united.state, &plan);
    let mut allocations = event_body(&united.state, &plan, &generations, moves, Via::Reshaper);
    allocations.finding = finding;
    refuse_in_use(&united.state, command, &plan)?;
    let mut inventories = Vec::with_capacity(command.inventories.len());
    for (&provider, wanted) in &command.inventories {
        let (id, row) = provider_row(state, provider)?;
        // One for the union if it is not empty, one if it is among the allocations' providers, and
        // one for the final set.
        let base = row.generation.saturating_add(u32::from(!wanted.inventories.is_empty()));
        let bumped = generations.remove(&id).map_or(base, |_| base.saturating_add(1));
        inventories.push(InventoryChanged {
            provider,
            generation: bumped.saturating_add(1),
            changes: set_to(state, row, &wanted.inventories),
        });
    }
    drop(united);
    // The ids drawn for moves are not to be drawn again by the next command of the list.
    draft.accept(ids);
    draft.emit(Event::Reshaped(Reshaped { inventories, allocations }));
    Ok(None)
}

/// What a reshape's writes are by the rules for any write, as the parts of its one event.
struct Named {
    plan: Vec<Planned>,
    moves: Vec<Move>,
    finding: Option<Finding>,
}

impl Named {
    /// Of a consumer or move that several steps name, the last says how it ends.
    fn of(steps: Vec<Step>) -> Self {
        let mut named = Self { plan: Vec::new(), moves: Vec::new(), finding: None };
        let mut places = BTreeMap::new();
        for step in steps {
            for planned in step.plan {
                let place = *places.entry(planned.consumer).or_insert(named.plan.len());
                match named.plan.get_mut(place) {
                    Some(earlier) => *earlier = planned,
                    None => named.plan.push(planned),
                }
            }
            for this in step.moves {
                named.moves.retain(|earlier| earlier.id != this.id);
                named.moves.push(this);
            }
            named.finding = named.finding.or(step.finding);
        }
        named
    }
}

/// Each provider's new inventories added to its old ones; the new ones win.
fn union(state: &State, command: &Reshape) -> Result<Vec<InventoryChanged>, Refusal> {
    let mut events = Vec::new();
    for (&provider, wanted) in &command.inventories {
        if wanted.inventories.is_empty() {
            continue;
        }
        let (_, row) = provider_row(state, provider)?;
        let mut changes = set_to(state, row, &wanted.inventories);
        changes.retain(|change: &InventoryBeforeAfter| change.after.is_some());
        events.push(InventoryChanged {
            provider,
            generation: row.generation.saturating_add(1),
            changes,
        });
    }
    Ok(events)
}

fn check_providers(state: &State, command: &Reshape) -> Result<(), Refusal> {
    let named = command.order.iter().filter_map(|uuid| command.inventories.get_key_value(uuid));
    for (&provider, wanted) in named.chain(&command.inventories) {
        let (_, row) = provider_row(state, provider)?;
        if row.generation != wanted.generation {
            let (current, given) = (row.generation, wanted.generation);
            return Err(Cause::ProviderGeneration { provider, current, given }.into());
        }
    }
    Ok(())
}

fn check_classes(state: &State, command: &Reshape) -> Result<(), Refusal> {
    for wanted in command.inventories.values() {
        for (class, inventory) in &wanted.inventories {
            known_class(state, class)?;
            // All may be reserved, as at the microversions that have the reshaper.
            check(class, inventory, true)?;
        }
    }
    Ok(())
}

/// A class that goes must be held by nobody once the allocations are replaced.
fn refuse_in_use(united: &State, command: &Reshape, plan: &[Planned]) -> Result<(), Refusal> {
    let mut left: BTreeMap<ProviderUuid, (ProviderId, Vec<ClassId>)> = BTreeMap::new();
    for (&provider, wanted) in &command.inventories {
        let (id, row) = provider_row(united, provider)?;
        for inventory in &row.inventories {
            let name = united.classes().name(inventory.class).to_string();
            if wanted.inventories.contains_key(&name) {
                continue;
            }
            let planned = plan.iter().any(|planned| {
                crate::state::consumer::amount_in(&planned.after, id, inventory.class) > 0
            });
            let others = united.holders(id).any(|holder| {
                holder.amount(id, inventory.class) > 0
                    && !plan.iter().any(|planned| planned.consumer == holder.uuid)
            });
            if planned || others {
                left.entry(provider).or_insert((id, Vec::new())).1.push(inventory.class);
            }
        }
    }
    match left.into_values().next() {
        Some((id, classes)) => {
            let names = classes.iter().map(|&class| united.classes().name(class).to_string());
            let cause = Cause::InventoryInUse { classes: names.collect() };
            Err(Refusal::because(cause).held_by(holders::of_classes(united, id, &classes)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::amounts::{Holding, Inventory};
    use crate::command::{Command, Reshape, ReshapedInventories};
    use crate::commands::providers::tests::under;
    use crate::commands::testing::*;
    use crate::event::{Finding, MoveState};
    use crate::refusal::Cause;

    type Totals<'a> = &'a [(&'a str, u32)];

    /// Inventories and holdings by the numbers of providers and consumers.
    fn reshape(world: &World, hosts: &[(u128, Totals<'_>)], held: &[(u128, Holding)]) -> Command {
        let inventories = hosts.iter().map(|(host, totals)| {
            let all = totals.iter().map(|(class, total)| ((*class).into(), Inventory::of(*total)));
            let generation = world.state.provider(provider(*host)).unwrap().generation;
            (provider(*host), ReshapedInventories { generation, inventories: all.collect() })
        });
        let allocations = held.iter().map(|(number, after)| write(*number, after.clone()));
        Command::Reshape(Reshape {
            inventories: inventories.collect(),
            allocations: allocations.collect(),
            order: Vec::new(),
        })
    }

    fn on(host: u128, class: &str, amount: u32) -> Holding {
        holding(&[(host, &[(class, amount)])])
    }

    /// Host 1 with a child 11 that has nothing yet.
    fn nested(totals: Totals<'_>) -> World {
        let mut world = World::new().host(1, totals).host(2, &[("VGPU", 8)]).host(11, &[]);
        world.ok(under(11, Some(1)));
        world
    }

    /// A compute service that starts with an unconfirmed resize on its full host: what is held is
    /// on the child then, and of both sides still only the larger counts.
    #[test]
    fn a_full_host_with_both_sides_of_a_move_can_be_reshaped() {
        for (end, left) in [(confirm(1), 3), (revert(1), 4)] {
            let mut world = nested(&[("VGPU", 4)]);
            world.ok(claim(1, &[on(1, "VGPU", 4)]));
            world.ok(resize(1, 9, &[on(1, "VGPU", 3)]));
            assert_eq!(world.held(1, "VGPU"), 4);
            let held = [(1, on(11, "VGPU", 3)), (9, on(11, "VGPU", 4))];
            assert_eq!(
                world.kinds(reshape(&world, &[(1, &[]), (11, &[("VGPU", 4)])], &held)),
                ["Reshaped"]
            );
            assert_eq!(world.held(11, "VGPU"), 4);
            let this = world.latest_move(1);
            assert_eq!((this.state, this.source), (MoveState::Claimed, on(11, "VGPU", 4)));
            world.ok(end);
            assert_eq!(
                (world.holds(1), world.held(11, "VGPU")),
                (on(11, "VGPU", left), left.into())
            );
        }
    }

    /// Who holds more after a reshape is no longer only one side of the move.
    #[test]
    fn a_reshape_that_adds_something_counts_it() {
        let mut world = nested(&[("VGPU", 4)]);
        world.ok(claim(1, &[on(1, "VGPU", 3)]));
        world.ok(resize(1, 9, &[on(1, "VGPU", 3)]));
        let held = [(1, on(11, "VGPU", 4)), (9, on(11, "VGPU", 3))];
        let refused = world.refused(reshape(&world, &[(1, &[]), (11, &[("VGPU", 4)])], &held));
        assert_eq!(refused.cause, Cause::Capacity);
    }

    #[test]
    fn a_double_up_whose_host_is_reshaped_keeps_its_sides() {
        for (end, left) in [
            (confirm(1), on(2, "VGPU", 2)),
            (revert(1), on(11, "VGPU", 2)),
            (fail(1, "x"), on(11, "VGPU", 2)),
            (reschedule(1, "x", &[]), on(11, "VGPU", 2)),
        ] {
            let mut world = nested(&[("VGPU", 4)]);
            world.ok(claim(1, &[on(1, "VGPU", 2)]));
            world.ok(double_up(1, &[on(2, "VGPU", 2)]));
            let held = holding(&[(11, &[("VGPU", 2)]), (2, &[("VGPU", 2)])]);
            world.ok(reshape(&world, &[(1, &[]), (11, &[("VGPU", 4)])], &[(1, held)]));
            assert_eq!(world.latest_move(1).source, on(11, "VGPU", 2));
            world.ok(end);
            assert_eq!(world.holds(1), left);
        }
    }

    /// Both sides on one provider, of which the larger is stored, go on as what they were; also to
    /// another tree.
    #[test]
    fn a_double_up_on_one_host_is_reshaped_with_both_its_sides() {
        for to in [11, 3] {
            for (end, left) in [(confirm(1), 3), (revert(1), 1)] {
                let mut world = nested(&[("VGPU", 4)]).host(3, &[]);
                world.ok(claim(1, &[on(1, "VGPU", 1)]));
                world.ok(double_up(1, &[on(1, "VGPU", 3)]));
                let held = [(1, on(to, "VGPU", 3))];
                world.ok(reshape(&world, &[(1, &[]), (to, &[("VGPU", 4)])], &held));
                world.ok(end);
                assert_eq!(world.holds(1), on(to, "VGPU", left));
            }
        }
    }

    /// Reshapes are named by the same rules as other writes, so that no move is left behind.
    #[test]
    fn a_reshape_that_empties_a_migration_ends_its_move() {
        let mut world = nested(&[("VGPU", 8)]);
        world.ok(claim(1, &[on(1, "VGPU", 2)]));
        world.ok(resize(1, 9, &[on(2, "VGPU", 2)]));
        world.ok(reshape(&world, &[(1, &[("VGPU", 8)])], &[(9, Holding::new())]));
        assert_eq!(world.latest_move(1).state, MoveState::Confirmed);
        let mut world = nested(&[("VGPU", 8)]);
        world.ok(claim(1, &[on(1, "VGPU", 2)]));
        world.ok(to_migration(1, 9));
        world.ok(reshape(&world, &[(1, &[("VGPU", 8)])], &[(9, Holding::new())]));
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
        assert_eq!(world.last_body().finding, Some(Finding::RunsWithoutAllocation));
        let mut world = nested(&[("VGPU", 8)]);
        world.ok(claim(1, &[on(1, "VGPU", 2)]));
        world.ok(resize(1, 9, &[on(2, "VGPU", 1)]));
        let back = [(9, Holding::new()), (1, on(1, "VGPU", 2))];
        world.ok(reshape(&world, &[(1, &[("VGPU", 8)])], &back));
        assert_eq!(world.latest_move(1).state, MoveState::Reverted);
    }
}
