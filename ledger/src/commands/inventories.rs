//! `change_inventories` (Placement API reference, "Resource provider inventories"). Every write
//! that is accepted moves the provider's generation on by one, even if nothing changed.

use super::plan::provider_row;
use super::{Decision, holders, retire_when_free};
use crate::amounts::Inventory;
use crate::command::{ChangeInventories, InventoryChange};
use crate::decide::Draft;
use crate::event::{Event, InventoryBeforeAfter, InventoryChanged, Unchanged};
use crate::limits;
use crate::refusal::{Cause, Refusal};
use crate::state::{ClassId, Provider, State};
use std::collections::BTreeMap;

pub(super) fn change(draft: &mut Draft<'_>, command: &ChangeInventories) -> Decision {
    let state = &draft.state;
    let (_, row) = provider_row(state, command.provider)?;
    if let Some(given) = command.generation
        && given != row.generation
    {
        let current = row.generation;
        return Err(Cause::ProviderGeneration { provider: command.provider, current, given }.into());
    }
    let wishes = retire_when_free::wished(state, row, &command.change);
    let changes = changes(state, row, &command.change, command.may_reserve_all)?;
    // Where all that was to go is in use, the wishes alone change.
    let mut changed = wishes.is_none() || !changes.is_empty();
    let event = InventoryChanged {
        provider: command.provider,
        generation: row.generation.saturating_add(1),
        changes,
    };
    if changed {
        draft.emit(Event::InventoryChanged(event));
    }
    if let Some(wishes) = wishes {
        changed |= retire_when_free::wish(draft, command.provider, wishes, None);
    }
    Ok((!changed).then_some(Unchanged::NoChange))
}

fn changes(
    state: &State,
    row: &Provider,
    change: &InventoryChange,
    may_reserve_all: bool,
) -> Result<Vec<InventoryBeforeAfter>, Refusal> {
    match change {
        InventoryChange::ReplaceAll(new) => replaced(state, row, new, may_reserve_all),
        InventoryChange::Create(class, inventory) => {
            check(class, inventory, may_reserve_all)?;
            known_class(state, class)?;
            if before(state, row, class).is_some() {
                return Err(Cause::InventoryExists { class: class.clone() }.into());
            }
            Ok(vec![written(state, row, class, Some(*inventory))])
        }
        InventoryChange::Update(class, inventory) => {
            // The figures first, as in Placement (its test "modify inventory invalid data").
            check(class, inventory, may_reserve_all)?;
            known_class(state, class)?;
            if before(state, row, class).is_none() {
                return Err(Cause::InventoryNotFound { class: class.clone() }.into());
            }
            Ok(vec![written(state, row, class, Some(*inventory))])
        }
        InventoryChange::Delete(class) => {
            known_class(state, class)?;
            if before(state, row, class).is_none() {
                return Err(Cause::InventoryNotFound { class: class.clone() }.into());
            }
            refuse_in_use(state, row, |name| name == class)?;
            Ok(vec![written(state, row, class, None)])
        }
        InventoryChange::DeleteAll => {
            refuse_in_use(state, row, |_| true)?;
            Ok(classes(state, row).map(|class| written(state, row, &class, None)).collect())
        }
        InventoryChange::ReplaceWhenFree(new) => {
            check_all(state, new, may_reserve_all)?;
            let mut changes = set_to(state, row, new);
            changes.retain(|change| change.after.is_some() || !is_held(state, row, &change.class));
            Ok(changes)
        }
        InventoryChange::DeleteWhenFree(class) => {
            if before(state, row, class).is_none() {
                return Err(Cause::InventoryNotFound { class: class.clone() }.into());
            }
            let mut changes = vec![written(state, row, class, None)];
            changes.retain(|change| !is_held(state, row, &change.class));
            Ok(changes)
        }
    }
}

/// What a provider's inventories change by when `new` takes the place of all of them.
///
/// # Errors
/// An unknown class, a class in use that would go, or figures that are outside their limits.
pub(super) fn replaced(
    state: &State,
    row: &Provider,
    new: &BTreeMap<String, Inventory>,
    may_reserve_all: bool,
) -> Result<Vec<InventoryBeforeAfter>, Refusal> {
    check_all(state, new, may_reserve_all)?;
    refuse_in_use(state, row, |class| !new.contains_key(class))?;
    Ok(set_to(state, row, new))
}

fn check_all(
    state: &State,
    new: &BTreeMap<String, Inventory>,
    may_reserve_all: bool,
) -> Result<(), Cause> {
    new.iter().try_for_each(|(class, inventory)| check(class, inventory, may_reserve_all))?;
    new.keys().try_for_each(|class| known_class(state, class))
}

fn is_held(state: &State, row: &Provider, class: &str) -> bool {
    let id = state.classes().id(class);
    id.and_then(|id| row.inventory(id)).is_some_and(|row| row.held > 0)
}

/// The changes that lead to `new`, unchecked.
pub(super) fn set_to(
    state: &State,
    row: &Provider,
    new: &BTreeMap<String, Inventory>,
) -> Vec<InventoryBeforeAfter> {
    let gone = classes(state, row).filter(|class| !new.contains_key(class));
    let mut changes: Vec<_> = gone.map(|class| written(state, row, &class, None)).collect();
    changes
        .extend(new.iter().map(|(class, inventory)| written(state, row, class, Some(*inventory))));
    changes
}

fn classes<'a>(state: &'a State, row: &'a Provider) -> impl Iterator<Item = String> + 'a {
    row.inventories.iter().map(|inventory| state.classes().name(inventory.class).to_string())
}

fn before(state: &State, row: &Provider, class: &str) -> Option<Inventory> {
    let id = state.classes().id(class)?;
    row.inventory(id).map(|row| row.inventory)
}

pub(super) fn written(
    state: &State,
    row: &Provider,
    class: &str,
    after: Option<Inventory>,
) -> InventoryBeforeAfter {
    InventoryBeforeAfter { class: class.to_owned(), before: before(state, row, class), after }
}

pub(super) fn known_class(state: &State, class: &str) -> Result<(), Cause> {
    match state.classes().id(class) {
        Some(_) => Ok(()),
        None => Err(Cause::ClassNotFound { class: class.to_owned() }),
    }
}

pub(super) fn refuse_in_use(
    state: &State,
    row: &Provider,
    goes: impl Fn(&str) -> bool,
) -> Result<(), Refusal> {
    let name = |class: ClassId| state.classes().name(class).to_string();
    let held = row.inventories.iter().filter(|inventory| inventory.held > 0);
    let in_use: Vec<ClassId> =
        held.map(|inventory| inventory.class).filter(|&class| goes(&name(class))).collect();
    if in_use.is_empty() {
        return Ok(());
    }
    let classes = in_use.iter().map(|&class| name(class)).collect();
    let refusal = Refusal::because(Cause::InventoryInUse { classes });
    Err(match state.provider_id(row.uuid) {
        Some(id) => refusal.held_by(holders::of_classes(state, id, &in_use)),
        None => refusal,
    })
}

/// Checks an inventory's figures against Placement's limits.
///
/// # Errors
/// The field that is outside its limits, or a capacity below what is allowed.
pub(super) fn check(
    class: &str,
    inventory: &Inventory,
    may_reserve_all: bool,
) -> Result<(), Cause> {
    check_fields(class, inventory)?;
    let least = i64::from(!may_reserve_all);
    if inventory.capacity_shown() < least {
        return Err(Cause::InventoryCapacity { class: class.to_owned() });
    }
    Ok(())
}

/// Checks each field alone.
fn check_fields(class: &str, inventory: &Inventory) -> Result<(), Cause> {
    let fields = [
        ("total", inventory.total, 1),
        ("reserved", inventory.reserved, 0),
        ("min_unit", inventory.min_unit, 1),
        ("max_unit", inventory.max_unit, 1),
        ("step_size", inventory.step_size, 1),
    ];
    let outside = fields.iter().find(|(_, value, least)| value < least || *value > limits::AMOUNT);
    let field = match outside {
        Some((field, _, _)) => *field,
        // A 32-bit float in Placement's database.
        None if !inventory.allocation_ratio.is_finite()
            || inventory.allocation_ratio > 3.402_82e38 =>
        {
            "allocation_ratio"
        }
        None => return Ok(()),
    };
    Err(Cause::InventoryInvalid { class: class.to_owned(), field: field.into() })
}
