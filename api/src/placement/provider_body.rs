//! A resource provider as JSON.

use std::fmt::Write;

use ledger::event::ProviderAsAnswered;
use ledger::ids::ProviderUuid;
use ledger::state::{Provider, State};
use serde_json::Value;

use crate::http::microversion::{ALLOCATIONS_LINK, PROVIDER_AGGREGATES, TRAITS, TREES, Version};

/// What is shown of a provider.
struct Shown<'a> {
    uuid: ProviderUuid,
    name: &'a str,
    generation: u32,
    parent: Option<ProviderUuid>,
    root: ProviderUuid,
}

/// Writes a provider.
pub fn write(out: &mut String, view: &State, provider: &Provider, version: Version) {
    let shown = Shown {
        uuid: provider.uuid,
        name: &provider.name,
        generation: provider.generation,
        parent: provider.parent.and_then(|parent| uuid_of(view, parent)),
        root: uuid_of(view, provider.root).unwrap_or(provider.uuid),
    };
    write_shown(out, &shown, version);
}

/// Writes a provider as the answer to a write shows it.
pub fn write_as_answered(out: &mut String, provider: &ProviderAsAnswered, version: Version) {
    let shown = Shown {
        uuid: provider.provider,
        name: &provider.name,
        generation: provider.generation,
        parent: provider.parent,
        root: provider.root,
    };
    write_shown(out, &shown, version);
}

fn write_shown(out: &mut String, provider: &Shown<'_>, version: Version) {
    let uuid = provider.uuid;
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{{\"uuid\":\"{uuid}\",\"name\":{},\"generation\":{},",
        Value::from(provider.name),
        provider.generation
    );
    if version >= TREES {
        out.push_str("\"parent_provider_uuid\":");
        match provider.parent {
            Some(parent) => {
                let _ = write!(out, "\"{parent}\"");
            }
            None => out.push_str("null"),
        }
        let root = provider.root;
        let _ = write!(out, ",\"root_provider_uuid\":\"{root}\",");
    }
    let _ = write!(out, "\"links\":[{{\"rel\":\"self\",\"href\":\"/resource_providers/{uuid}\"}}");
    for rel in links(version) {
        let _ = write!(out, ",{{\"rel\":\"{rel}\",\"href\":\"/resource_providers/{uuid}/{rel}\"}}");
    }
    out.push_str("]}");
}

fn links(version: Version) -> impl Iterator<Item = &'static str> {
    let all = [
        ("inventories", true),
        ("usages", true),
        ("aggregates", version >= PROVIDER_AGGREGATES),
        ("traits", version >= TRAITS),
        ("allocations", version >= ALLOCATIONS_LINK),
    ];
    all.into_iter().filter_map(|(rel, there)| there.then_some(rel))
}

fn uuid_of(view: &State, id: u32) -> Option<ProviderUuid> {
    view.provider_row(id).map(|row| row.uuid)
}

/// When a provider last changed, its generation alone included, in microseconds since the epoch.
#[must_use]
pub fn modified(provider: &Provider) -> i64 {
    provider.updated_at.unwrap_or(provider.created_at).micros()
}
