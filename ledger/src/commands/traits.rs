//! `create_trait`, `delete_trait`, `set_traits` (Placement API reference, "Traits").

use super::Decision;
use super::plan::provider_row;
use crate::command::{Named, SetTraits};
use crate::decide::Draft;
use crate::event::{Event, Name, TraitsChanged, Unchanged};
use crate::limits;
use crate::refusal::Cause;
use std::collections::BTreeSet;

pub(super) fn create(draft: &mut Draft<'_>, command: &Named) -> Decision {
    if !is_custom_name(&command.name) {
        return Err(Cause::NameInvalid { name: command.name.clone() }.into());
    }
    if draft.state.traits().id(&command.name).is_some() {
        return Ok(Some(Unchanged::NoChange));
    }
    draft.emit(Event::TraitCreated(Name { name: command.name.clone() }));
    Ok(None)
}

pub(super) fn delete(draft: &mut Draft<'_>, command: &Named) -> Decision {
    let name = command.name.clone();
    let Some(id) = draft.state.traits().id(&name) else {
        return Err(Cause::TraitsNotFound { traits: vec![name] }.into());
    };
    let entry = draft.state.traits().entry(id);
    if entry.standard {
        return Err(Cause::TraitStandard { name }.into());
    }
    if entry.users > 0 {
        return Err(Cause::TraitInUse { name }.into());
    }
    draft.emit(Event::TraitDeleted(Name { name }));
    Ok(None)
}

/// The generation moves on only if the set changes.
pub(super) fn set(draft: &mut Draft<'_>, command: &SetTraits) -> Decision {
    let state = &draft.state;
    let (_, row) = provider_row(state, command.provider)?;
    if let Some(given) = command.generation
        && given != row.generation
    {
        let current = row.generation;
        return Err(Cause::ProviderGeneration { provider: command.provider, current, given }.into());
    }
    let wanted: BTreeSet<&str> = command.traits.iter().map(String::as_str).collect();
    let unknown: Vec<String> = wanted
        .iter()
        .filter(|name| state.traits().id(name).is_none())
        .map(|name| name.to_string())
        .collect();
    if !unknown.is_empty() {
        return Err(Cause::TraitsNotFound { traits: unknown }.into());
    }
    let has: BTreeSet<&str> = row.traits.iter().map(|&id| &**state.traits().name(id)).collect();
    if has == wanted {
        return Ok(Some(Unchanged::NoChange));
    }
    let event = TraitsChanged {
        provider: command.provider,
        generation: row.generation.saturating_add(1),
        added: wanted.difference(&has).map(|name| name.to_string()).collect(),
        removed: has.difference(&wanted).map(|name| name.to_string()).collect(),
    };
    draft.emit(Event::TraitsChanged(event));
    Ok(None)
}

/// Whether a name has the form that custom classes and traits need: `^CUSTOM_[A-Z0-9_]+$`, at most
/// 255 characters.
pub(super) fn is_custom_name(name: &str) -> bool {
    let rest = name.strip_prefix("CUSTOM_").unwrap_or_default();
    !rest.is_empty()
        && name.len() <= limits::NAME_CHARS
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}
