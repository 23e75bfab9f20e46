//! `create_provider`, `update_provider`, `delete_provider` (Placement API reference, "Resource
//! providers"). A provider that is never its own ancestor, and a root that follows for the whole
//! subtree: Launchpad bugs 1779635 and 1779818.

use super::plan::provider_row;
use super::{Decision, holders};
use crate::command::{CreateProvider, DeleteProvider, ParentChange, UpdateProvider};
use crate::decide::Draft;
use crate::event::{Event, ProviderCreated, ProviderDeleted, ProviderUpdated, Unchanged};
use crate::ids::ProviderUuid;
use crate::limits;
use crate::refusal::{Cause, Refusal};
use crate::state::{Provider, ProviderId, State};

pub(super) fn create(draft: &mut Draft<'_>, command: &CreateProvider) -> Decision {
    let state = &draft.state;
    check_name(&command.name)?;
    // As Placement: the parent first.
    if command.parent == Some(command.uuid) {
        return Err(Cause::ParentIsSelf.into());
    }
    if let Some(parent) = command.parent {
        known_parent(state, parent)?;
    }
    if state.provider_id(command.uuid).is_some() {
        return Err(Cause::ProviderExists { provider: command.uuid }.into());
    }
    if state.provider_named(&command.name).is_some() {
        return Err(Cause::ProviderNameExists { name: command.name.clone() }.into());
    }
    let root = root_under(state, command.parent).unwrap_or(command.uuid);
    draft.emit(Event::ProviderCreated(ProviderCreated {
        provider: command.uuid,
        name: command.name.clone(),
        parent: command.parent,
        root: Some(root),
        generation: 0,
    }));
    Ok(None)
}

fn check_name(name: &str) -> Result<(), Cause> {
    let length = name.chars().count();
    if length == 0 || length > limits::PROVIDER_NAME_CHARS {
        return Err(Cause::ProviderNameInvalid);
    }
    Ok(())
}

fn known_parent(state: &State, parent: ProviderUuid) -> Result<ProviderId, Cause> {
    state.provider_id(parent).ok_or(Cause::ParentNotFound { parent })
}

/// The root of the tree that a parent is in.
fn root_under(state: &State, parent: Option<ProviderUuid>) -> Option<ProviderUuid> {
    let root = state.provider(parent?)?.root;
    state.provider_row(root).map(|row| row.uuid)
}

pub(super) fn update(draft: &mut Draft<'_>, command: &UpdateProvider) -> Decision {
    let state = &draft.state;
    let (id, row) = provider_row(state, command.uuid)?;
    if command.name.chars().count() > limits::PROVIDER_NAME_CHARS {
        return Err(Cause::ProviderNameInvalid.into());
    }
    let parent_before =
        row.parent.and_then(|parent| state.provider_row(parent)).map(|row| row.uuid);
    let parent = parent_after(state, id, row, parent_before, command)?;
    if state.provider_named(&command.name).is_some_and(|taken| taken != id) {
        return Err(Cause::ProviderNameExists { name: command.name.clone() }.into());
    }
    if *row.name == *command.name && parent == parent_before {
        return Ok(Some(Unchanged::NoChange));
    }
    let event = ProviderUpdated {
        provider: command.uuid,
        name_before: row.name.to_string(),
        name: command.name.clone(),
        parent_before,
        parent,
        root: Some(root_under(state, parent).unwrap_or(command.uuid)),
        generation: row.generation,
    };
    draft.emit(Event::ProviderUpdated(event));
    Ok(None)
}

fn parent_after(
    state: &State,
    id: ProviderId,
    row: &Provider,
    before: Option<ProviderUuid>,
    command: &UpdateProvider,
) -> Result<Option<ProviderUuid>, Refusal> {
    let ParentChange::Set(wanted) = command.parent else { return Ok(before) };
    let Some(parent) = wanted else {
        if row.parent.is_some() && !command.may_reparent {
            return Err(Cause::UnparentForbidden.into());
        }
        return Ok(None);
    };
    let parent_id = known_parent(state, parent)?;
    if row.parent.is_some() && before != wanted && !command.may_reparent {
        return Err(Cause::ReparentForbidden.into());
    }
    if state.subtree(id).contains(&parent_id) {
        return Err(Cause::Loop.into());
    }
    Ok(wanted)
}

pub(super) fn delete(draft: &mut Draft<'_>, command: &DeleteProvider) -> Decision {
    let (id, row) = provider_row(&draft.state, command.uuid)?;
    if draft.state.children(id).next().is_some() {
        return Err(Cause::ProviderHasChildren.into());
    }
    if draft.state.is_held(id) {
        let holders = holders::of_providers(&draft.state, &[id]);
        return Err(Refusal::because(Cause::ProviderInUse).held_by(holders));
    }
    let event = ProviderDeleted { provider: command.uuid, name: row.name.to_string() };
    draft.emit(Event::ProviderDeleted(event));
    Ok(None)
}

#[cfg(test)]
pub(super) mod tests {
    use crate::command::*;
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    pub(crate) fn under(number: u128, parent: Option<u128>) -> Command {
        Command::UpdateProvider(UpdateProvider {
            uuid: provider(number),
            name: format!("host{number}"),
            parent: ParentChange::Set(parent.map(provider)),
            may_reparent: true,
        })
    }

    /// Launchpad bugs 1779635 and 1779818, case D12.
    #[test]
    fn no_loops_and_the_root_follows_for_the_whole_subtree() {
        let mut world = (1..=4).fold(World::new(), |world, host| world.host(host, &[]));
        world.ok(under(2, Some(1)));
        world.ok(under(3, Some(2)));
        assert_eq!(world.refused(under(1, Some(1))).cause, Cause::Loop);
        assert_eq!(world.refused(under(1, Some(3))).cause, Cause::Loop);
        world.ok(under(1, Some(4)));
        let root = world.state.provider_id(provider(4)).unwrap();
        for number in 1..=3 {
            assert_eq!(world.state.provider(provider(number)).unwrap().root, root);
        }
        world.ok(under(2, None));
        let two = world.state.provider_id(provider(2)).unwrap();
        assert_eq!(world.state.provider(provider(3)).unwrap().root, two);
    }

    #[test]
    fn a_provider_goes_only_when_nothing_hangs_on_it() {
        let mut world = World::new().host(1, &[("VCPU", 2)]).host(2, &[]);
        let gone = |number| Command::DeleteProvider(DeleteProvider { uuid: provider(number) });
        world.ok(under(2, Some(1)));
        assert_eq!(world.refused(gone(1)).cause, Cause::ProviderHasChildren);
        world.ok(gone(2));
        world.ok(put(1, holding(&[(1, &[("VCPU", 2)])])));
        assert_eq!(world.refused(gone(1)).cause, Cause::ProviderInUse);
        world.ok(delete(1));
        world.ok(gone(1));
        assert_eq!(world.state.provider_count(), 0);
    }
}
