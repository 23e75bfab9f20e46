//! What counts as free for the destination of one move alone: what the source's link group holds,
//! since only the larger of both sides counts.

use super::State;
use super::consumer::Allocation;
use super::provider::{ClassId, ProviderId};
use crate::event::MoveState;
use crate::ids::ConsumerUuid;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// An amount by which less is held of a (provider, class), seen from one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// Of which provider.
    pub provider: ProviderId,
    /// Of which class.
    pub class: ClassId,
    /// How much, in the class's unit.
    pub amount: u64,
}

/// What is given back to a destination that will be linked with `source`, by (provider, class).
/// `gives_up`: who lets go of all it holds before that destination is claimed.
pub fn given_back(
    state: &State,
    source: ConsumerUuid,
    gives_up: Option<ConsumerUuid>,
) -> Vec<GivenBack> {
    let group = state.consumer(source).and_then(|row| state.link(row.link?));
    let (covered, members) = match group {
        Some(group) => (group.covered.clone(), group.members.clone()),
        None => (state.covered(&state.overlap_today()), SmallVec::from_slice(&[source])),
    };
    let of = |consumer: ConsumerUuid| -> &[Allocation] {
        state.consumer(consumer).map_or(&[], |row| &row.allocations)
    };
    let is_member = gives_up.is_some_and(|consumer| members.contains(&consumer));
    let mut found: BTreeMap<(ProviderId, ClassId), u64> = BTreeMap::new();
    for held in members.iter().flat_map(|&member| of(member)) {
        if covered.covers(held.class) {
            let most = found.entry((held.provider, held.class)).or_default();
            *most = u64::from(held.amount).max(*most);
        }
    }
    for held in gives_up.map(of).unwrap_or_default() {
        let is_covered = covered.covers(held.class);
        if !(is_member && is_covered) {
            let sum = found.entry((held.provider, held.class)).or_default();
            *sum = sum.saturating_add(held.amount.into());
        }
    }
    listed(found)
}

/// What a search with a request id is given back (DESIGN, "max() for unmodified clients"): what
/// the link group of the source holds, for the moves that this request opened and that are open.
/// Of several the largest counts for each (provider, class), never the sum.
pub fn given_back_to_request(state: &State, request_id: &str) -> Vec<GivenBack> {
    let mut found: BTreeMap<(ProviderId, ClassId), u64> = BTreeMap::new();
    for entry in state.moves().opened_by(request_id) {
        let Some(migration) = entry.this.migration else { continue };
        debug_assert_eq!(entry.this.state, MoveState::Open);
        for given in given_back(state, migration, None) {
            let most = found.entry((given.provider, given.class)).or_default();
            *most = given.amount.max(*most);
        }
    }
    listed(found)
}

fn listed(found: BTreeMap<(ProviderId, ClassId), u64>) -> Vec<GivenBack> {
    let given = |((provider, class), amount)| GivenBack { provider, class, amount };
    found.into_iter().map(given).collect()
}
