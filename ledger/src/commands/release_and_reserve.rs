//! `release_and_reserve`: a consumer lets go of everything and the provider is kept back from
//! others, as one group, so that nobody is offered it in between (Launchpad bug 1974070: a
//! bare-metal node between its release and its cleaning). The reserve comes first, so that who
//! follows event by event never sees it free either.

use super::Decision;
use super::inventories::{check, known_class, written};
use super::plan::provider_row;
use super::release;
use crate::command::{Release, ReleaseAndReserve};
use crate::decide::Draft;
use crate::event::{Event, InventoryBeforeAfter, InventoryChanged};
use crate::refusal::{Cause, Refusal};
use crate::state::{Provider, State};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReleaseAndReserve) -> Decision {
    let (consumer, provider) = (command.consumer, command.provider);
    let state = &draft.state;
    let (id, row) = provider_row(state, provider)?;
    let holder = state.consumer(consumer).ok_or(Cause::HoldsNothing { consumer })?;
    if !holder.allocations.iter().any(|held| held.provider == id) {
        return Err(Cause::HoldsNothingThere { consumer, provider }.into());
    }
    let changes = reserved(state, row, command)?;
    let generation = row.generation.saturating_add(1);
    let mut trial = draft.trial();
    trial.emit(Event::InventoryChanged(InventoryChanged { provider, generation, changes }));
    let release = Release { consumer, ended: command.ended, reason: command.reason.clone() };
    release::decide(&mut trial, &release)?;
    draft.accept(trial);
    Ok(None)
}

/// What the provider's inventories change by.
fn reserved(
    state: &State,
    row: &Provider,
    command: &ReleaseAndReserve,
) -> Result<Vec<InventoryBeforeAfter>, Refusal> {
    let wanted: Vec<(String, Option<u32>)> = match &command.reserved {
        Some(stated) => {
            stated.iter().map(|(class, &amount)| (class.clone(), Some(amount))).collect()
        }
        None => row
            .inventories
            .iter()
            .map(|row| (state.classes().name(row.class).to_string(), None))
            .collect(),
    };
    let mut changes = Vec::with_capacity(wanted.len());
    for (class, amount) in wanted {
        known_class(state, &class)?;
        let mut change = written(state, row, &class, None);
        let mut after =
            change.before.ok_or_else(|| Cause::InventoryNotFound { class: class.clone() })?;
        after.reserved = amount.unwrap_or(after.total);
        check(&class, &after, true)?;
        change.after = Some(after);
        changes.push(change);
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, ReleaseAndReserve};
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    fn both(who: u128, host: u128, reserved: Option<&[(&str, u32)]>) -> Command {
        Command::ReleaseAndReserve(ReleaseAndReserve {
            consumer: consumer(who),
            provider: provider(host),
            reserved: reserved.map(|list| {
                list.iter().map(|(class, amount)| ((*class).to_owned(), *amount)).collect()
            }),
            ended: false,
            reason: Some("to be cleaned".into()),
        })
    }

    /// Launchpad bug 1974070, case C10.
    #[test]
    fn the_provider_is_kept_back_before_it_is_let_go_of() {
        let mut world = World::new().host(1, &[("VGPU", 1)]);
        world.ok(claim(1, &[holding(&[(1, &[("VGPU", 1)])])]));
        assert_eq!(world.kinds(both(1, 1, None)), ["InventoryChanged", "Released"]);
        assert_eq!(world.last_body().reason.as_deref(), Some("to be cleaned"));
        assert_eq!((world.held(1, "VGPU"), world.holds(1)), (0, holding(&[])));
        let row = world.state.provider(provider(1)).unwrap();
        assert_eq!(row.inventories[0].free(), 0);
        assert_eq!(
            world.refused(claim(2, &[holding(&[(1, &[("VGPU", 1)])])])).cause,
            Cause::Capacity
        );
    }

    #[test]
    fn a_stated_amount_is_kept_back_of_the_classes_named() {
        let mut world = World::new().host(1, &[("VCPU", 8), ("DISK_GB", 10)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(both(1, 1, Some(&[("VCPU", 5)])));
        let row = world.state.provider(provider(1)).unwrap();
        let free: Vec<i64> = row.inventories.iter().map(|row| row.free()).collect();
        assert_eq!(free, [3, 10]);
    }

    #[test]
    fn a_wrong_consumer_or_amount_changes_nothing() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        let nobody = world.refused(both(1, 1, None)).cause;
        assert_eq!(nobody, Cause::HoldsNothing { consumer: consumer(1) });
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 2)])])]));
        let elsewhere = world.refused(both(1, 1, None)).cause;
        let (consumer, provider) = (consumer(1), provider(1));
        assert_eq!(elsewhere, Cause::HoldsNothingThere { consumer, provider });
        let much = world.refused(both(1, 2, Some(&[("VCPU", 9)]))).cause;
        assert_eq!(much, Cause::InventoryCapacity { class: "VCPU".into() });
        let none = world.refused(both(1, 2, Some(&[("VGPU", 1)]))).cause;
        assert_eq!(none, Cause::InventoryNotFound { class: "VGPU".into() });
        assert_eq!(world.held(2, "VCPU"), 2);
    }
}
