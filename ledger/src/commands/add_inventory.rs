//! `add_inventory`: an inventory changes by so much, whatever it is by then. Such changes commute,
//! so they need no generation and never conflict (two leases that edit one provider's inventory at
//! once). What it leads to obeys the rules for a written inventory: a total of at least 1, no more
//! reserved than there is; less than what is held is allowed, as Placement does.

use super::Decision;
use super::inventories::{check, known_class, written};
use super::plan::{malformed, provider_row};
use crate::command::AddInventory;
use crate::decide::Draft;
use crate::event::{Event, InventoryChanged};
use crate::refusal::Cause;

pub(super) fn decide(draft: &mut Draft<'_>, command: &AddInventory) -> Decision {
    let AddInventory { provider, ref class, total, reserved } = *command;
    if total == 0 && reserved == 0 {
        return Err(malformed("it adds nothing to total and nothing to reserved".into()).into());
    }
    let state = &draft.state;
    let (_, row) = provider_row(state, provider)?;
    known_class(state, class)?;
    let mut change = written(state, row, class, None);
    let before = change.before.ok_or_else(|| Cause::InventoryNotFound { class: class.clone() })?;
    let mut after = before;
    after.total = sum(class, "total", before.total, total)?;
    after.reserved = sum(class, "reserved", before.reserved, reserved)?;
    check(class, &after, true)?;
    change.after = Some(after);
    let generation = row.generation.saturating_add(1);
    draft.emit(Event::InventoryChanged(InventoryChanged {
        provider,
        generation,
        changes: vec![change],
    }));
    Ok(None)
}

fn sum(class: &str, field: &str, before: u32, by: i64) -> Result<u32, Cause> {
    i64::from(before)
        .checked_add(by)
        .and_then(|after| u32::try_from(after).ok())
        .ok_or_else(|| Cause::InventoryInvalid { class: class.to_owned(), field: field.to_owned() })
}

#[cfg(test)]
mod tests {
    use crate::command::{AddInventory, Command};
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    fn add(host: u128, class: &str, total: i64, reserved: i64) -> Command {
        let (provider, class) = (provider(host), class.to_owned());
        Command::AddInventory(AddInventory { provider, class, total, reserved })
    }

    fn figures(world: &World) -> (u32, u32, u32) {
        let row = world.state.provider(provider(1)).unwrap();
        let inventory = row.inventories[0].inventory;
        (inventory.total, inventory.reserved, row.generation)
    }

    /// Case C12.
    #[test]
    fn it_changes_by_so_much_and_the_generation_moves_on() {
        let mut world = World::new().host(1, &[("VCPU", 10)]);
        for _ in 0..20 {
            assert_eq!(world.kinds(add(1, "VCPU", 1, 0)), ["InventoryChanged"]);
        }
        assert_eq!(figures(&world), (30, 0, 21));
        world.ok(add(1, "VCPU", -5, 4));
        assert_eq!(figures(&world), (25, 4, 22));
    }

    #[test]
    fn less_than_what_is_held_is_allowed_as_for_a_written_inventory() {
        let mut world = World::new().host(1, &[("VCPU", 10)]);
        world.ok(put(1, holding(&[(1, &[("VCPU", 8)])])));
        world.ok(add(1, "VCPU", -5, 0));
        assert_eq!(world.held(1, "VCPU"), 8);
        assert_eq!(world.refused(put(2, holding(&[(1, &[("VCPU", 1)])]))).cause, Cause::Capacity);
    }

    #[test]
    fn what_no_inventory_may_be_is_refused() {
        let mut world = World::new().host(1, &[("VCPU", 10)]);
        for (total, reserved, field) in [
            (-10, 0, "total"),
            (-11, 0, "total"),
            (i64::MIN, 0, "total"),
            (i64::MAX, 0, "total"),
            (i64::from(crate::limits::AMOUNT), 0, "total"),
            (0, -1, "reserved"),
        ] {
            let told = world.refused(add(1, "VCPU", total, reserved)).cause;
            assert_eq!(told, Cause::InventoryInvalid { class: "VCPU".into(), field: field.into() });
        }
        let all = world.refused(add(1, "VCPU", 0, 11)).cause;
        assert_eq!(all, Cause::InventoryCapacity { class: "VCPU".into() });
        let none = world.refused(add(1, "DISK_GB", 1, 0)).cause;
        assert_eq!(none, Cause::InventoryNotFound { class: "DISK_GB".into() });
        assert!(matches!(world.refused(add(1, "VCPU", 0, 0)).cause, Cause::Malformed { .. }));
        assert!(matches!(world.refused(add(1, "NOPE", 1, 0)).cause, Cause::ClassNotFound { .. }));
        assert!(matches!(
            world.refused(add(7, "VCPU", 1, 0)).cause,
            Cause::ProviderNotFound { .. }
        ));
        assert_eq!(figures(&world), (10, 0, 1));
    }
}
