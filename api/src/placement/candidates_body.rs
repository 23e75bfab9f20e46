//! The answer to a candidates query, written straight to bytes: it can be half a megabyte.
//!
//! What many candidates share (all but the uuids of providers) is rendered once, see
//! [`super::candidate_forms`]; what many answers share (summaries of providers) is kept, see
//! [`super::summaries`].

use std::fmt::Write;

use ledger::state::{ClassId, Provider, ProviderId, State};
use projector::candidates::{CandidateIndex, Found, Query};
use serde::Serialize;
use uuid::Uuid;

use super::candidate_forms::Forms;
use super::summaries::Texts;
use crate::http::failure::Failure;
use crate::http::microversion::{
    CANDIDATES_REQUIRED, NESTED_CANDIDATES, SUMMARIES_ALL_CLASSES, Version,
};

/// Writes the body. Without `texts` nothing is kept of it.
#[must_use]
pub fn write(
    index: &CandidateIndex,
    found: &Found,
    query: &Query,
    version: Version,
    texts: Option<&Texts>,
) -> Vec<u8> {
    let view = index.state();
    let mut out = Vec::with_capacity(64 + 200 * found.len() + 400 * found.summaries.len());
    out.extend_from_slice(b"{\"allocation_requests\":[");
    let mut forms = Forms::new(view, found, version);
    for (n, candidate) in found.candidates().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        forms.write(&mut out, candidate);
    }
    out.extend_from_slice(b"],\"provider_summaries\":{");
    let summaries = Summaries { index, view, classes: requested(view, query), version };
    // From 1.29 on a summary is the same whatever is asked for.
    summaries.write(&mut out, &found.summaries, texts.filter(|_| version >= NESTED_CANDIDATES));
    out.extend_from_slice(b"}}");
    out
}

/// The body with one more member, for those who ask for it.
///
/// # Errors
/// 500 if the value cannot be JSON, which types of this crate always can.
pub fn with_member<T: Serialize>(
    mut body: Vec<u8>,
    name: &str,
    value: &T,
) -> Result<Vec<u8>, Failure> {
    let value =
        serde_json::to_string(value).map_err(|error| Failure::internal(error.to_string()))?;
    body.pop();
    body.extend_from_slice(format!(",\"{name}\":{value}}}").as_bytes());
    Ok(body)
}

fn requested(view: &State, query: &Query) -> Vec<ClassId> {
    let names = query.groups.iter().flat_map(|group| &group.resources);
    names.filter_map(|(name, _)| view.classes().id(name)).collect()
}

struct Summaries<'a> {
    index: &'a CandidateIndex,
    view: &'a State,
    /// The classes asked for.
    classes: Vec<ClassId>,
    version: Version,
}

impl Summaries<'_> {
    fn write(&self, out: &mut Vec<u8>, providers: &[ProviderId], texts: Option<&Texts>) {
        let mut rows = self.view.provider_rows();
        let mut first = true;
        for &id in providers {
            let Some(provider) = rows.get(id) else { continue };
            if !first {
                out.push(b',');
            }
            first = false;
            match texts {
                Some(texts) => texts.push(out, id, provider, || self.summary(id, provider)),
                None => out.extend_from_slice(self.summary(id, provider).as_bytes()),
            }
        }
    }

    fn summary(&self, id: ProviderId, provider: &Provider) -> String {
        let mut out = String::with_capacity(512);
        out.push('"');
        push_uuid(&mut out, provider.uuid.0);
        out.push_str("\":{\"resources\":{");
        self.resources(&mut out, id, provider);
        out.push('}');
        if self.version >= CANDIDATES_REQUIRED {
            self.traits(&mut out, provider);
        }
        if self.version >= NESTED_CANDIDATES {
            self.tree(&mut out, provider);
        }
        out.push('}');
        out
    }

    fn resources(&self, out: &mut String, id: ProviderId, provider: &Provider) {
        let all = self.version >= SUMMARIES_ALL_CLASSES;
        let shown =
            provider.inventories.iter().filter(|row| all || self.classes.contains(&row.class));
        for (n, row) in shown.enumerate() {
            let comma = if n > 0 { "," } else { "" };
            let name = self.view.classes().name(row.class);
            let (capacity, used) = (row.inventory.capacity_shown(), self.index.held(id, row));
            // Writing to a string cannot fail.
            let _ = write!(out, "{comma}\"{name}\":{{\"capacity\":{capacity},\"used\":{used}}}");
        }
    }

    fn traits(&self, out: &mut String, provider: &Provider) {
        out.push_str(",\"traits\":[");
        for (n, id) in provider.traits.iter().enumerate() {
            out.push_str(if n > 0 { ",\"" } else { "\"" });
            out.push_str(self.view.traits().name(*id));
            out.push('"');
        }
        out.push(']');
    }

    fn tree(&self, out: &mut String, provider: &Provider) {
        match provider.parent {
            Some(parent) => {
                out.push_str(",\"parent_provider_uuid\":\"");
                self.uuid(out, parent);
                out.push('"');
            }
            None => out.push_str(",\"parent_provider_uuid\":null"),
        }
        out.push_str(",\"root_provider_uuid\":\"");
        self.uuid(out, provider.root);
        out.push('"');
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
