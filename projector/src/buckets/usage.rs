//! `alloc_usage`: what a provider has, what is held of it, and what is free.

use ledger::ids::ProviderUuid;
use ledger::state::{Provider, ProviderInventory, State};
use serde_json::{Map, Value, json};

/// The value of a provider; none: there is no such provider.
pub(super) fn value(state: &State, provider: ProviderUuid) -> Option<Value> {
    state.provider(provider).map(|row| shown(state, row))
}

/// The values of all providers.
pub(super) fn all(state: &State) -> impl Iterator<Item = (String, Value)> + '_ {
    state.providers().map(|(_, row)| (row.uuid.to_string(), shown(state, row)))
}

fn shown(state: &State, row: &Provider) -> Value {
    let uuid_of = |id| state.provider_row(id).map(|row| row.uuid);
    let classes: Map<String, Value> = row
        .inventories
        .iter()
        .map(|inventory| (state.classes().name(inventory.class).to_string(), figures(inventory)))
        .collect();
    let aggregates: Vec<&str> =
        row.aggregates.iter().map(|&id| &**state.aggregates().name(id)).collect();
    json!({
        "provider": row.uuid,
        "name": row.name,
        "generation": row.generation,
        "parent": row.parent.and_then(uuid_of),
        "root": uuid_of(row.root),
        "aggregates": aggregates,
        "classes": classes,
    })
}

/// In the class's unit. What is free is below 0 on an overcommitted provider.
fn figures(inventory: &ProviderInventory) -> Value {
    json!({
        "total": inventory.inventory.total,
        "reserved": inventory.inventory.reserved,
        "allocation_ratio": inventory.inventory.allocation_ratio,
        "capacity": inventory.inventory.capacity_shown(),
        "held": inventory.held,
        "free": inventory.free(),
    })
}
