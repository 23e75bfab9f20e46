//! How much a command may name. It is counted before anything of it is decided: what could not
//! fit into a group anyway is refused at once, however much of it there is.

use crate::command::{Command, ConsumerWrite, InventoryChange, WhichProviders};
use crate::decide::too_large;
use crate::limits;
use crate::refusal::Refusal;

/// # Errors
/// [`Cause::TooLarge`] for what is named too often.
///
/// [`Cause::TooLarge`]: crate::refusal::Cause::TooLarge
pub(super) fn check(command: &Command) -> Result<(), Refusal> {
    match command {
        Command::ReplaceAllocations(it) => {
            at_most(it.consumers.len(), "consumers of one write", limits::CONSUMERS)?;
            allocations(&it.consumers)
        }
        Command::Reshape(it) => {
            let classes: usize =
                it.inventories.values().map(|reshaped| 1 + reshaped.inventories.len()).sum();
            at_most(classes, "inventories of one write", limits::INVENTORIES)?;
            at_most(it.allocations.len(), "consumers of one reshape", limits::RESHAPED_CONSUMERS)?;
            allocations(&it.allocations)
        }
        Command::ChangeInventories(it) => match &it.change {
            InventoryChange::ReplaceAll(all) | InventoryChange::ReplaceWhenFree(all) => {
                at_most(all.len(), "inventories of one write", limits::INVENTORIES)
            }
            InventoryChange::Create(..)
            | InventoryChange::Update(..)
            | InventoryChange::Delete(_)
            | InventoryChange::DeleteAll
            | InventoryChange::DeleteWhenFree(_) => Ok(()),
        },
        Command::SetTraits(it) => at_most(it.traits.len(), "traits of one write", limits::NAMES),
        Command::SetAggregates(it) => {
            at_most(it.aggregates.len(), "aggregates of one write", limits::NAMES)
        }
        Command::SetQuota(it) => at_most(it.limits.len(), "limits of one write", limits::NAMES),
        Command::ReleaseAndReserve(it) => {
            let reserved = it.reserved.as_ref().map_or(0, |reserved| reserved.len());
            at_most(reserved, "classes of one write", limits::INVENTORIES)
        }
        Command::Retire(it) => match &it.which {
            WhichProviders::Providers(providers) => {
                at_most(providers.len(), "providers of one write", limits::EVENTS)
            }
            WhichProviders::Aggregate(_) | WhichProviders::Subtree(_) => Ok(()),
        },
        Command::Unretire(it) => at_most(it.classes.len(), "classes of one write", limits::NAMES),
        // Options are counted as they are tried: the first that fits ends the work.
        Command::Claim(_)
        | Command::DoubleUp(_)
        | Command::Reschedule(_)
        | Command::Resize(_)
        // These name a few things.
        | Command::CreateProvider(_)
        | Command::UpdateProvider(_)
        | Command::DeleteProvider(_)
        | Command::CreateTrait(_)
        | Command::DeleteTrait(_)
        | Command::CreateResourceClass(_)
        | Command::RenameResourceClass(_)
        | Command::DeleteResourceClass(_)
        | Command::MoveToMigration(_)
        | Command::Confirm(_)
        | Command::Revert(_)
        | Command::HostChanged(_)
        | Command::Fail(_)
        | Command::Release(_)
        | Command::ReleasePart(_)
        // It ends by itself where its events fill half a group.
        | Command::ReleaseAll(_)
        | Command::AddInventory(_)
        | Command::ChangeSettings(_)
        | Command::SkipEvent(_)
        | Command::NoteFailedSearch(_) => Ok(()),
    }
}

fn allocations(writes: &[ConsumerWrite]) -> Result<(), Refusal> {
    let amounts = writes.iter().flat_map(|write| write.allocations.values());
    let amounts = amounts.map(|resources| resources.len()).sum();
    at_most(amounts, "allocations of one write", limits::ALLOCATIONS)
}

fn at_most(count: usize, what: &str, limit: usize) -> Result<(), Refusal> {
    if count > limit { Err(too_large(what, limit)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{Command, SetTraits};
    use crate::commands::testing::*;
    use crate::limits;
    use crate::refusal::Cause;

    fn on(host: u128, amount: u32) -> Holding {
        holding(&[(host, &[("VCPU", amount)])])
    }

    #[test]
    fn what_is_named_too_often_is_refused_before_it_is_looked_at() {
        let mut world = World::new().host(1, &[("VCPU", 4)]);
        let of_nobody = |count: usize| -> Vec<(u128, Holding)> {
            // None of them exists, nor what they ask for: that is not even seen.
            (0..count as u128).map(|number| (number, on(77, 1))).collect()
        };
        let refusal = world.refused(post(&of_nobody(limits::CONSUMERS + 1)));
        let limit = limits::CONSUMERS as u64;
        assert_eq!(refusal.cause, Cause::TooLarge { what: "consumers of one write".into(), limit });
        let refusal = world.refused(post(&of_nobody(limits::CONSUMERS)));
        assert_eq!(refusal.cause, Cause::ProviderNotFound { provider: provider(77) });
        let traits = vec!["CUSTOM_A".to_owned(); limits::NAMES + 1];
        let set = SetTraits { provider: provider(1), generation: None, traits };
        assert!(matches!(world.refused(Command::SetTraits(set)).cause, Cause::TooLarge { .. }));
    }

    /// Options that do not fit cost the writer time, and of all of a list together there is so
    /// much of it.
    #[test]
    fn a_list_has_so_many_steps() {
        let mut world = World::new().host(1, &[("VCPU", 4)]).host(2, &[("VCPU", 99)]);
        let mut options = vec![on(1, 5); limits::OPTIONS - 1];
        options.push(on(2, 1));
        let one = |number: u128| claim(number, &options);
        assert!(world.list(&[one(1)]).is_ok());
        let list: Vec<Command> = (2..30).map(one).collect();
        let refusal = world.list(&list).unwrap_err();
        let limit = limits::STEPS;
        assert_eq!(refusal.cause, Cause::TooLarge { what: "steps of the list".into(), limit });
        assert!(refusal.index < 6, "{}", refusal.index);
    }

    /// A list ends with the event that is too many, not after all of its commands.
    #[test]
    fn a_list_ends_with_the_event_that_is_too_many() {
        let mut world = World::new();
        let made = |number: usize| {
            Command::CreateTrait(crate::command::Named { name: format!("CUSTOM_{number}") })
        };
        let list: Vec<Command> = (0..limits::LIST_COMMANDS).map(made).collect();
        let refusal = world.list(&list).unwrap_err();
        assert!(matches!(refusal.cause, Cause::TooLarge { .. }));
        assert_eq!(refusal.index as usize, limits::EVENTS);
    }
}
