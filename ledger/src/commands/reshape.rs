//! `reshape`: inventories and allocations of whole trees at once, as one event, so that nobody can
//! claim in between (Launchpad bug 1783130; Placement API reference, "Reshaper").

use super::Decision;
use super::inventories::{check, known_class, set_to};
use super::plan::{Planned, check_fits, event_body, generations_after, provider_row};
use super::replace_allocations::plain_writes;
use crate::command::{Reshape, Via};
use crate::decide::Draft;
use crate::event::{Event, InventoryBeforeAfter, InventoryChanged, Reshaped};
use crate::ids::ProviderUuid;
use crate::refusal::{Cause, Refusal};
use crate::state::{State, link_of};
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
    let plan: Vec<Planned> = writes
        .iter()
        .filter(|write| !(write.before.is_empty() && write.after.is_empty()))
        .map(|write| Planned {
            consumer: write.consumer,
            after: write.after.clone(),
            owner: write.owner.clone(),
            link: link_of(state, write.consumer).filter(|_| write.before == write.after),
            untouched: false,
            generation: None,
        })
        .collect();
    check_fits(&united.state, &plan)?;
    let mut generations = generations_after(&united.state, &plan);
    let allocations = event_body(&united.state, &plan, &generations, Vec::new(), Via::Reshaper);
    refuse_in_use(&united.state, command, &plan)?;
    let mut inventories = Vec::with_capacity(command.inventories.len());
    for (&provider, wanted) in &command.inventories {
        let (id, row) = provider_row(state, provider)?;
        // One for the union if it is not empty, one if it is among the allocations' providers, and
        // one for the final set.
        let base = row.generation + u32::from(!wanted.inventories.is_empty());
        let bumped = generations.remove(&id).map_or(base, |_| base + 1);
        inventories.push(InventoryChanged {
            provider,
            generation: bumped + 1,
            changes: set_to(state, row, &wanted.inventories),
        });
    }
    drop(united);
    draft.emit(Event::Reshaped(Reshaped { inventories, allocations }));
    Ok(None)
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
        events.push(InventoryChanged { provider, generation: row.generation + 1, changes });
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
    let mut left: BTreeMap<ProviderUuid, Vec<String>> = BTreeMap::new();
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
                left.entry(provider).or_default().push(name);
            }
        }
    }
    match left.into_values().next() {
        Some(classes) => Err(Cause::InventoryInUse { classes }.into()),
        None => Ok(()),
    }
}
