//! The host of a holding: the root of the providers it names. A sharing provider, such as shared
//! storage, lends to many hosts and belongs to none.

use crate::amounts::Holding;
use crate::ids::ProviderUuid;
use crate::state::{ProviderId, State};
use std::collections::BTreeSet;

/// The trait of providers that lend their inventory to other trees.
const SHARING: &str = "MISC_SHARES_VIA_AGGREGATE";

/// Whether a provider lends its inventory to other trees.
pub(crate) fn is_sharing(state: &State, provider: ProviderId) -> bool {
    let Some(id) = state.traits().id(SHARING) else { return false };
    state.provider_row(provider).is_some_and(|row| row.has_trait(id))
}

/// The root of a provider's tree.
pub(crate) fn root(state: &State, provider: ProviderId) -> Option<ProviderId> {
    state.provider_row(provider).map(|row| row.root)
}

/// The roots of a holding's providers, sharing ones and those that do not exist aside.
pub(crate) fn hosts(state: &State, holding: &Holding) -> BTreeSet<ProviderId> {
    let ids = holding.keys().filter_map(|uuid| state.provider_id(*uuid));
    ids.filter(|&id| !is_sharing(state, id)).filter_map(|id| root(state, id)).collect()
}

/// The host of a holding: the root of its first provider that does not lend; if all do, of the
/// first.
pub(crate) fn host_of(state: &State, holding: &Holding) -> Option<ProviderUuid> {
    let mut ids = holding.keys().filter_map(|uuid| state.provider_id(*uuid));
    let first = ids.clone().find(|&id| !is_sharing(state, id)).or_else(|| ids.next())?;
    let root = root(state, first)?;
    state.provider_row(root).map(|row| row.uuid)
}

/// The roots of the trees that some providers are in; those that do not exist aside.
pub(crate) fn roots(state: &State, providers: &[ProviderUuid]) -> BTreeSet<ProviderId> {
    let ids = providers.iter().filter_map(|uuid| state.provider_id(*uuid));
    ids.filter_map(|id| root(state, id)).collect()
}
