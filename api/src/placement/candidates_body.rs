//! The answer to a candidates query, written straight to bytes: it can be half a megabyte.
//!
//! What many candidates share (amounts of a group on a provider) is rendered once, and what many
//! answers share (summaries of providers) is kept (see [`super::summaries`]).

use std::fmt::Write;

use ledger::state::{ClassId, Provider, ProviderId, State};
use projector::candidates::{Candidate, CandidateIndex, Found, Query};
use serde::Serialize;
use uuid::Uuid;

use super::summaries::Texts;
use crate::http::failure::Failure;
use crate::http::microversion::{
    ALLOCATIONS_BY_PROVIDER, CANDIDATES_REQUIRED, MAPPINGS, NESTED_CANDIDATES,
    SUMMARIES_ALL_CLASSES, Version,
};

/// Writes the body. Without `texts` nothing is kept of it.
#[must_use]
pub fn write(
    index: &CandidateIndex,
    found: &Found,
    query: &Query,
    version: Version,
    texts: Option<&Texts>,
) -> String {
    let view = index.state();
    let amounts = found.amount_sets().iter().map(|set| rendered(view, set)).collect();
    let mut out = String::with_capacity(64 + 200 * found.len() + 400 * found.summaries.len());
    let writer = Writer { view, amounts, version };
    out.push_str("{\"allocation_requests\":[");
    for (n, candidate) in found.candidates().enumerate() {
        if n > 0 {
            out.push(',');
        }
        writer.candidate(&mut out, candidate);
    }
    out.push_str("],\"provider_summaries\":{");
    let classes = requested(view, query);
    let mut first = true;
    for id in &found.summaries {
        let Some(provider) = view.provider_row(*id) else { continue };
        if !first {
            out.push(',');
        }
        first = false;
        let make = |out: &mut String| writer.summary(out, provider, &classes);
        // From 1.29 on a summary is the same whatever is asked for.
        match texts.filter(|_| version >= NESTED_CANDIDATES) {
            Some(texts) => texts.push(&mut out, *id, provider, make),
            None => make(&mut out),
        }
    }
    out.push_str("}}");
    out
}

/// The body with one more member, for those who ask for it.
///
/// # Errors
/// 500 if the value cannot be JSON, which types of this crate always can.
pub fn with_member<T: Serialize>(
    mut body: String,
    name: &str,
    value: &T,
) -> Result<String, Failure> {
    let value =
        serde_json::to_string(value).map_err(|error| Failure::internal(error.to_string()))?;
    body.pop();
    let _ = write!(body, ",\"{name}\":{value}}}");
    Ok(body)
}

/// `{"VCPU":1}`
fn rendered(view: &State, amounts: &[(ClassId, u64)]) -> String {
    let mut out = String::from("{");
    for (n, (class, amount)) in amounts.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "{comma}\"{}\":{amount}", view.classes().name(*class));
    }
    out.push('}');
    out
}

fn requested(view: &State, query: &Query) -> Vec<ClassId> {
    let names = query.groups.iter().flat_map(|group| &group.resources);
    names.filter_map(|(name, _)| view.classes().id(name)).collect()
}

struct Writer<'a> {
    view: &'a State,
    amounts: Vec<String>,
    version: Version,
}

impl Writer<'_> {
    fn candidate(&self, out: &mut String, candidate: Candidate<'_>) {
        if self.version >= ALLOCATIONS_BY_PROVIDER {
            self.by_provider(out, candidate);
        } else {
            self.listed(out, candidate);
        }
        if self.version >= MAPPINGS {
            self.mappings(out, candidate);
        }
        out.push('}');
    }

    fn by_provider(&self, out: &mut String, candidate: Candidate<'_>) {
        out.push_str("{\"allocations\":{");
        for (n, (provider, amounts)) in candidate.parts().iter().enumerate() {
            out.push_str(if n > 0 { ",\"" } else { "\"" });
            self.uuid(out, *provider);
            out.push_str("\":{\"resources\":");
            out.push_str(&self.amounts[*amounts as usize]);
            out.push('}');
        }
        out.push('}');
    }

    /// The form before 1.12.
    fn listed(&self, out: &mut String, candidate: Candidate<'_>) {
        out.push_str("{\"allocations\":[");
        for (n, (provider, amounts)) in candidate.parts().iter().enumerate() {
            out.push_str(if n > 0 {
                ",{\"resource_provider\":{\"uuid\":\""
            } else {
                "{\"resource_provider\":{\"uuid\":\""
            });
            self.uuid(out, *provider);
            out.push_str("\"},\"resources\":");
            out.push_str(&self.amounts[*amounts as usize]);
            out.push('}');
        }
        out.push(']');
    }

    fn mappings(&self, out: &mut String, candidate: Candidate<'_>) {
        out.push_str(",\"mappings\":{");
        for (n, (suffix, providers)) in candidate.mappings().enumerate() {
            out.push_str(if n > 0 { ",\"" } else { "\"" });
            // Suffixes have letters, digits, hyphens and underscores only.
            out.push_str(suffix);
            out.push_str("\":[");
            for (n, provider) in providers.iter().enumerate() {
                out.push_str(if n > 0 { ",\"" } else { "\"" });
                self.uuid(out, *provider);
                out.push('"');
            }
            out.push(']');
        }
        out.push('}');
    }

    fn summary(&self, out: &mut String, provider: &Provider, requested: &[ClassId]) {
        out.push('"');
        push_uuid(out, provider.uuid.0);
        out.push_str("\":{\"resources\":{");
        self.resources(out, provider, requested);
        out.push('}');
        if self.version >= CANDIDATES_REQUIRED {
            out.push_str(",\"traits\":[");
            for (n, id) in provider.traits.iter().enumerate() {
                out.push_str(if n > 0 { ",\"" } else { "\"" });
                out.push_str(self.view.traits().name(*id));
                out.push('"');
            }
            out.push(']');
        }
        if self.version >= NESTED_CANDIDATES {
            out.push_str(",\"parent_provider_uuid\":");
            match provider.parent {
                Some(parent) => {
                    out.push('"');
                    self.uuid(out, parent);
                    out.push('"');
                }
                None => out.push_str("null"),
            }
            out.push_str(",\"root_provider_uuid\":\"");
            self.uuid(out, provider.root);
            out.push('"');
        }
        out.push('}');
    }

    fn resources(&self, out: &mut String, provider: &Provider, requested: &[ClassId]) {
        let all = self.version >= SUMMARIES_ALL_CLASSES;
        let shown = provider.inventories.iter().filter(|row| all || requested.contains(&row.class));
        for (n, row) in shown.enumerate() {
            let comma = if n > 0 { "," } else { "" };
            let name = self.view.classes().name(row.class);
            let (capacity, used) = (row.inventory.capacity_shown(), row.held);
            let _ = write!(out, "{comma}\"{name}\":{{\"capacity\":{capacity},\"used\":{used}}}");
        }
    }

    fn uuid(&self, out: &mut String, id: ProviderId) {
        if let Some(provider) = self.view.provider_row(id) {
            push_uuid(out, provider.uuid.0);
        }
    }
}

fn push_uuid(out: &mut String, uuid: Uuid) {
    out.push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
}
