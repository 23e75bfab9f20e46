//! What is to go once it is free (Launchpad bug 2115905: a device that is removed while in use).
//! Wishes are part of the state: what they name is not offered any more, what is held of it stays
//! and may shrink, and with the last allocation it is removed, by the group that frees it.

use super::Decision;
use super::inventories::{known_class, written};
use super::plan::provider_row;
use crate::command::{InventoryChange, Unretire};
use crate::decide::Draft;
use crate::event::{
    Event, InventoryBeforeAfter, InventoryChanged, ProviderDeleted, RetirementChanged, Unchanged,
    Wishes,
};
use crate::ids::ProviderUuid;
use crate::state::{Provider, ProviderId, State};
use std::collections::BTreeSet;

/// `unretire`: takes wishes back. What was removed already stays so.
pub(super) fn withdraw(draft: &mut Draft<'_>, command: &Unretire) -> Decision {
    let state = &draft.state;
    let (_, row) = provider_row(state, command.provider)?;
    let mut wishes = Wishes::default();
    if !command.classes.is_empty() {
        command.classes.iter().try_for_each(|class| known_class(state, class))?;
        wishes = row.wishes(state.classes());
        wishes.classes.retain(|class| !command.classes.contains(class));
    }
    let changed = wish(draft, command.provider, wishes, command.reason.clone());
    Ok((!changed).then_some(Unchanged::NoChange))
}

/// Sets what of a provider goes once it is free; false: that is so already.
pub(super) fn wish(
    draft: &mut Draft<'_>,
    provider: ProviderUuid,
    after: Wishes,
    reason: Option<String>,
) -> bool {
    let Some(row) = draft.state.provider(provider) else { return false };
    let before = row.wishes(draft.state.classes());
    if before == after {
        return false;
    }
    draft.emit(Event::RetirementChanged(RetirementChanged { provider, before, after, reason }));
    true
}

/// The wishes that a change of inventories leads to; none: it is no change that has any.
pub(super) fn wished(state: &State, row: &Provider, change: &InventoryChange) -> Option<Wishes> {
    let goes = |class: &str, retiring: bool| match change {
        InventoryChange::ReplaceWhenFree(new) => Some(!new.contains_key(class)),
        InventoryChange::DeleteWhenFree(gone) => Some(retiring || gone == class),
        _ => None,
    };
    let mut wishes = Wishes { whole: row.retiring, classes: Vec::new() };
    goes("", false)?;
    for inventory in row.inventories.iter().filter(|inventory| inventory.held > 0) {
        let class = state.classes().name(inventory.class);
        if goes(class, inventory.retiring)? {
            wishes.classes.push(class.to_string());
        }
    }
    Some(wishes)
}

/// Removes what was to go and is free since the events from `first` on.
pub(super) fn sweep(draft: &mut Draft<'_>, first: usize) {
    if draft.state.retiring().len() == 0 {
        return;
    }
    let mut freed = may_be_free(&draft.state, &draft.events[first..]);
    while let Some(id) = freed.pop_first() {
        let Some(row) = draft.state.provider_row(id).cloned() else { continue };
        if row.retiring && is_free(&draft.state, id) {
            let event = ProviderDeleted { provider: row.uuid, name: row.name.to_string() };
            draft.emit(Event::ProviderDeleted(event));
            freed.extend(row.parent);
            continue;
        }
        let changes = free_inventories(&draft.state, &row);
        if !changes.is_empty() {
            draft.emit(Event::InventoryChanged(InventoryChanged {
                provider: row.uuid,
                generation: row.generation.saturating_add(1),
                changes,
            }));
        }
    }
}

/// Whether a provider can go: nobody holds anything of it, and nothing hangs below it.
pub(super) fn is_free(state: &State, provider: ProviderId) -> bool {
    !state.is_held(provider) && state.children(provider).next().is_none()
}

/// The providers that may have become free by some events.
fn may_be_free(state: &State, events: &[Event]) -> BTreeSet<ProviderId> {
    // Which parent a provider had that is gone is not in its event. Such events are rare.
    let is_of_trees =
        |event: &Event| matches!(event, Event::ProviderDeleted(_) | Event::ProviderUpdated(_));
    if events.iter().any(is_of_trees) {
        return state.retiring().collect();
    }
    let named = events.iter().flat_map(Event::providers);
    named.filter_map(|uuid| state.provider_id(uuid)).collect()
}

fn free_inventories(state: &State, row: &Provider) -> Vec<InventoryBeforeAfter> {
    let free = row.inventories.iter().filter(|inventory| inventory.retiring && inventory.held == 0);
    free.map(|inventory| written(state, row, state.classes().name(inventory.class), None)).collect()
}

#[cfg(test)]
mod tests {
    use crate::amounts::Inventory;
    use crate::command::{ChangeInventories, Command, InventoryChange, Unretire};
    use crate::commands::retire::tests::retire;
    use crate::commands::testing::*;
    use crate::refusal::{Cause, ShortageCause};

    fn change(host: u128, change: InventoryChange) -> Command {
        Command::ChangeInventories(ChangeInventories {
            provider: provider(host),
            generation: None,
            change,
            may_reserve_all: true,
        })
    }

    fn report(host: u128, totals: &[(&str, u32)]) -> Command {
        let all = totals.iter().map(|(class, total)| ((*class).into(), Inventory::of(*total)));
        change(host, InventoryChange::ReplaceWhenFree(all.collect()))
    }

    fn unretire(host: u128, classes: &[&str]) -> Command {
        Command::Unretire(Unretire {
            provider: provider(host),
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            reason: None,
        })
    }

    fn on(host: u128, class: &str, amount: u32) -> crate::amounts::Holding {
        holding(&[(host, &[(class, amount)])])
    }

    fn classes(world: &World, host: u128) -> Vec<String> {
        let row = world.state.provider(provider(host)).unwrap();
        row.inventories.iter().map(|it| world.state.classes().name(it.class).to_string()).collect()
    }

    /// Launchpad bug 2115905, case H7: two devices, one of them in use and gone from the report.
    #[test]
    fn a_device_in_use_is_not_offered_and_goes_with_its_last_allocation() {
        let mut world = World::new().host(1, &[("VGPU", 2)]).host(2, &[("VGPU", 1)]);
        world.ok(claim(1, &[on(1, "VGPU", 1)]));
        let decided = world.list(&[report(2, &[("VGPU", 4)]), retire(&[1], true)]).unwrap();
        assert_eq!(decided.events.len(), 2, "the rest of the report passes");
        let refusal = world.refused(claim(2, &[on(1, "VGPU", 1)]));
        assert_eq!(refusal.cause, Cause::Retiring);
        assert_eq!(refusal.shortages[0].cause, ShortageCause::Retiring);
        assert_eq!(world.state.provider(provider(1)).unwrap().inventories[0].free(), 0);
        assert_eq!(world.kinds(release(1, false)), ["Released", "ProviderDeleted"]);
        assert!(world.state.provider(provider(1)).is_none());
        assert_eq!(world.state.retiring().len(), 0);
    }

    #[test]
    fn a_class_in_use_that_a_report_lacks_stays_until_it_is_free() {
        let mut world = World::new().host(1, &[("VCPU", 8), ("VGPU", 2), ("DISK_GB", 5)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 1), ("VGPU", 2)])])]));
        let kinds = world.kinds(report(1, &[("VCPU", 16)]));
        assert_eq!(kinds, ["InventoryChanged", "RetirementChanged"]);
        assert_eq!(classes(&world, 1), ["VCPU", "VGPU"], "what is free goes at once");
        assert_eq!(world.refused(claim(2, &[on(1, "VGPU", 1)])).cause, Cause::Retiring);
        world.ok(claim(2, &[on(1, "VCPU", 15)]));
        // It may shrink, and not grow again.
        world.ok(put(1, holding(&[(1, &[("VCPU", 1), ("VGPU", 1)])])));
        let again = put(1, holding(&[(1, &[("VCPU", 1), ("VGPU", 2)])]));
        assert_eq!(world.refused(again).cause, Cause::Retiring);
        assert_eq!(world.kinds(put(1, on(1, "VCPU", 1))), ["Reallocated", "InventoryChanged"]);
        assert_eq!(classes(&world, 1), ["VCPU"]);
        assert_eq!(world.state.retiring().len(), 0);
    }

    #[test]
    fn moves_of_what_is_there_go_on_and_end() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[on(1, "VCPU", 2)]));
        assert_eq!(world.kinds(retire(&[1], true)), ["RetirementChanged"]);
        world.ok(to_migration(1, 9));
        let refusal = world.refused(claim(1, &[on(1, "VCPU", 3)]));
        assert_eq!(refusal.cause, Cause::Retiring);
        world.ok(claim(1, &[on(1, "VCPU", 1), on(2, "VCPU", 1)]));
        world.ok(revert(1));
        world.ok(to_migration(1, 9));
        world.ok(claim(1, &[on(2, "VCPU", 3)]));
        assert_eq!(world.kinds(confirm(1)), ["Confirmed", "ProviderDeleted"]);
    }

    #[test]
    fn a_wish_can_be_withdrawn() {
        let mut world = World::new().host(1, &[("VCPU", 8), ("VGPU", 2)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 1), ("VGPU", 1)])])]));
        let gone = InventoryChange::DeleteWhenFree("VGPU".into());
        assert_eq!(world.kinds(change(1, gone.clone())), ["RetirementChanged"]);
        assert!(world.kinds(change(1, gone.clone())).is_empty(), "it is wished already");
        assert_eq!(world.kinds(unretire(1, &["VGPU"])), ["RetirementChanged"]);
        assert!(world.kinds(unretire(1, &[])).is_empty());
        world.ok(claim(2, &[on(1, "VGPU", 1)]));
        world.ok(change(1, gone));
        world.ok(retire(&[1], true));
        // One that a report has again stays; the wish for the provider is another one.
        world.ok(report(1, &[("VCPU", 8), ("VGPU", 3)]));
        assert_eq!(world.refused(claim(3, &[on(1, "VGPU", 1)])).cause, Cause::Retiring);
        world.ok(unretire(1, &[]));
        world.ok(claim(3, &[on(1, "VGPU", 1)]));
        assert_eq!(world.kinds(release(1, false)), ["Released"]);
        assert!(matches!(world.refused(unretire(1, &["NOPE"])).cause, Cause::ClassNotFound { .. }));
    }

    #[test]
    fn a_tree_goes_from_below() {
        let mut world = World::new().host(1, &[]).host(2, &[("VGPU", 1)]).host(3, &[("VGPU", 1)]);
        for child in [2, 3] {
            world.ok(crate::commands::providers::tests::under(child, Some(1)));
        }
        world.ok(claim(1, &[on(2, "VGPU", 1)]));
        let decided = world.ok(retire(&[1, 2, 3], true));
        let kinds: Vec<&str> = decided.events.iter().map(crate::event::Event::kind).collect();
        assert_eq!(kinds, ["RetirementChanged", "ProviderDeleted", "RetirementChanged"]);
        let kinds = world.kinds(release(1, false));
        assert_eq!(kinds, ["Released", "ProviderDeleted", "ProviderDeleted"]);
        assert_eq!(world.state.provider_count(), 0);
    }

    #[test]
    fn wishes_are_in_a_checkpoint() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(claim(1, &[on(1, "VCPU", 1)]));
        world.ok(retire(&[1], true));
        let dir = tempfile::tempdir().unwrap();
        let path = world.state.write_checkpoint(dir.path()).unwrap();
        let read = crate::state::checkpoint::read_checkpoint(&path).unwrap();
        assert_eq!(read.digest(), world.state.digest());
        world.state = read;
        assert_eq!(world.kinds(release(1, false)), ["Released", "ProviderDeleted"]);
    }
}
