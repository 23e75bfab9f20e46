//! `set_aggregates` (Placement API reference, "Resource provider aggregates").

use super::Decision;
use super::plan::{malformed, provider_row};
use crate::command::SetAggregates;
use crate::decide::Draft;
use crate::event::{AggregatesChanged, Event, Unchanged};
use crate::limits;
use crate::refusal::Cause;
use std::collections::BTreeSet;

pub(super) fn set(draft: &mut Draft<'_>, command: &SetAggregates) -> Decision {
    let state = &draft.state;
    let (_, row) = provider_row(state, command.provider)?;
    if let Some(given) = command.generation
        && given != row.generation
    {
        let current = row.generation;
        return Err(Cause::ProviderGeneration { provider: command.provider, current, given }.into());
    }
    if command.aggregates.iter().any(|name| name.is_empty() || name.len() > limits::NAME_CHARS) {
        return Err(malformed("an aggregate's id is empty or too long".into()).into());
    }
    let wanted: BTreeSet<&str> = command.aggregates.iter().map(String::as_str).collect();
    let has: BTreeSet<&str> =
        row.aggregates.iter().map(|&id| &**state.aggregates().name(id)).collect();
    let bumped = command.generation.is_some();
    if has == wanted && !bumped {
        return Ok(Some(Unchanged::NoChange));
    }
    let event = AggregatesChanged {
        provider: command.provider,
        generation: row.generation.saturating_add(u32::from(bumped)),
        added: wanted.difference(&has).map(|name| name.to_string()).collect(),
        removed: has.difference(&wanted).map(|name| name.to_string()).collect(),
    };
    draft.emit(Event::AggregatesChanged(event));
    Ok(None)
}
