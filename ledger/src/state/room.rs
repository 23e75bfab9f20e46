//! Which events make room: after them something may fit that did not fit before.

use crate::event::{AllocationEvent, Event};

/// Whether something may fit after an event that did not before it. If in doubt, yes.
pub(super) fn may_make_room(event: &Event) -> bool {
    match event {
        Event::Claimed(body)
        | Event::DoubledUp(body)
        | Event::MovedToMigration(body)
        | Event::DestinationReleased(body)
        | Event::HostChanged(body)
        | Event::Reverted(body)
        | Event::Confirmed(body)
        | Event::Released(body) => lets_go(body),
        // Notes of what happened, and names that go.
        Event::Rejected(_)
        | Event::RefusalsSuppressed(_)
        | Event::SearchFailed(_)
        | Event::Answered(_)
        | Event::Erased(_)
        | Event::ProviderDeleted(_)
        | Event::TraitDeleted(_)
        | Event::ResourceClassDeleted(_) => false,
        // A reallocation may change what a move gives back to its destination, too.
        _ => true,
    }
}

fn lets_go(body: &AllocationEvent) -> bool {
    let mut amounts = body.providers.iter().flat_map(|change| &change.held);
    amounts.any(|amount| amount.after < amount.before)
}
