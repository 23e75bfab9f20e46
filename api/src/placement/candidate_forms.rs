//! Candidates as bytes. Most candidates of an answer are alike but for the uuids of their
//! providers: same amounts, same groups. Such a form is rendered once, with holes where the uuids
//! go; each candidate is a copy of its form with the holes filled in.

use std::fmt::Write;

use ledger::state::{ClassId, ProviderId, ProviderRows, State};
use projector::candidates::{Candidate, Found};
use smallvec::SmallVec;
use uuid::fmt::Hyphenated;

use crate::http::microversion::{ALLOCATIONS_BY_PROVIDER, MAPPINGS, Version};

/// Forms that are kept while an answer is written; beyond that the oldest makes way.
const KEPT: usize = 16;
/// What stands in a hole until it is filled.
const HOLE: &str = "00000000-0000-0000-0000-000000000000";

/// The forms of one answer's candidates.
pub struct Forms<'a> {
    rows: ProviderRows<'a>,
    amounts: Vec<String>,
    version: Version,
    forms: Vec<Form>,
    /// The form of the candidate before: most often the next one has it too.
    last: usize,
    shape: Shape,
}

/// What a candidate is apart from its uuids.
#[derive(Clone, Default, PartialEq)]
struct Shape {
    /// The providers it names, each once; a form knows them by their position here.
    providers: SmallVec<[ProviderId; 8]>,
    /// How many parts, the amounts of each, and for each group how many providers and which.
    key: SmallVec<[u32; 16]>,
}

struct Form {
    key: SmallVec<[u32; 16]>,
    text: Vec<u8>,
    /// Where a uuid goes, and which.
    holes: Vec<(usize, usize)>,
}

impl<'a> Forms<'a> {
    /// No forms yet.
    #[must_use]
    pub fn new(view: &'a State, found: &Found, version: Version) -> Self {
        Self {
            rows: view.provider_rows(),
            amounts: found.amount_sets().iter().map(|set| rendered(view, set)).collect(),
            version,
            forms: Vec::new(),
            last: 0,
            shape: Shape::default(),
        }
    }

    /// Writes a candidate.
    pub fn write(&mut self, out: &mut Vec<u8>, candidate: Candidate<'_>) {
        self.shape.take(candidate);
        let at = self.find(candidate);
        self.last = at;
        let form = &self.forms[at];
        let start = out.len();
        out.extend_from_slice(&form.text);
        let copy = &mut out[start..];
        let mut buffer = [0; Hyphenated::LENGTH];
        for (number, id) in self.shape.providers.iter().enumerate() {
            let Some(row) = self.rows.get(*id) else { continue };
            row.uuid.0.hyphenated().encode_lower(&mut buffer);
            for &(hole, _) in form.holes.iter().filter(|(_, of)| *of == number) {
                copy[hole..hole + Hyphenated::LENGTH].copy_from_slice(&buffer);
            }
        }
    }

    fn find(&mut self, candidate: Candidate<'_>) -> usize {
        let same = |form: &Form| form.key == self.shape.key;
        if self.forms.get(self.last).is_some_and(same) {
            return self.last;
        }
        if let Some(at) = self.forms.iter().position(same) {
            return at;
        }
        if self.forms.len() == KEPT {
            self.forms.remove(0);
        }
        self.forms.push(self.made(candidate));
        self.forms.len() - 1
    }

    fn made(&self, candidate: Candidate<'_>) -> Form {
        let mut pen = Pen { out: String::new(), holes: Vec::new(), shape: &self.shape };
        pen.out.push_str("{\"allocations\":");
        if self.version >= ALLOCATIONS_BY_PROVIDER {
            self.by_provider(&mut pen, candidate);
        } else {
            self.listed(&mut pen, candidate);
        }
        if self.version >= MAPPINGS {
            mappings(&mut pen, candidate);
        }
        pen.out.push('}');
        Form { key: self.shape.key.clone(), text: pen.out.into_bytes(), holes: pen.holes }
    }

    fn by_provider(&self, pen: &mut Pen<'_>, candidate: Candidate<'_>) {
        pen.out.push('{');
        for (n, (provider, amounts)) in candidate.parts().iter().enumerate() {
            pen.out.push_str(if n > 0 { ",\"" } else { "\"" });
            pen.uuid(*provider);
            pen.out.push_str("\":{\"resources\":");
            pen.out.push_str(&self.amounts[*amounts as usize]);
            pen.out.push('}');
        }
        pen.out.push('}');
    }

    /// The form before 1.12.
    fn listed(&self, pen: &mut Pen<'_>, candidate: Candidate<'_>) {
        pen.out.push('[');
        for (n, (provider, amounts)) in candidate.parts().iter().enumerate() {
            pen.out.push_str(if n > 0 { "," } else { "" });
            pen.out.push_str("{\"resource_provider\":{\"uuid\":\"");
            pen.uuid(*provider);
            pen.out.push_str("\"},\"resources\":");
            pen.out.push_str(&self.amounts[*amounts as usize]);
            pen.out.push('}');
        }
        pen.out.push(']');
    }
}

fn mappings(pen: &mut Pen<'_>, candidate: Candidate<'_>) {
    pen.out.push_str(",\"mappings\":{");
    for (n, (suffix, providers)) in candidate.mappings().enumerate() {
        pen.out.push_str(if n > 0 { ",\"" } else { "\"" });
        // Suffixes have letters, digits, hyphens and underscores only.
        pen.out.push_str(suffix);
        pen.out.push_str("\":[");
        for (n, provider) in providers.iter().enumerate() {
            pen.out.push_str(if n > 0 { ",\"" } else { "\"" });
            pen.uuid(*provider);
            pen.out.push('"');
        }
        pen.out.push(']');
    }
    pen.out.push('}');
}

/// `{"VCPU":1}`
fn rendered(view: &State, amounts: &[(ClassId, u64)]) -> String {
    let mut out = String::from("{");
    for (n, (class, amount)) in amounts.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{comma}\"{}\":{amount}", view.classes().name(*class));
    }
    out.push('}');
    out
}

impl Shape {
    fn take(&mut self, candidate: Candidate<'_>) {
        self.providers.clear();
        self.key.clear();
        let parts = candidate.parts();
        self.key.push(parts.len() as u32);
        for &(provider, amounts) in parts {
            self.providers.push(provider);
            self.key.push(amounts);
        }
        for (_, providers) in candidate.mappings() {
            self.key.push(providers.len() as u32);
            for &provider in providers {
                let number = self.number_of(provider);
                self.key.push(number as u32);
            }
        }
    }

    /// The position of a provider; a group that asks for no amounts can bring in a new one.
    fn number_of(&mut self, provider: ProviderId) -> usize {
        match self.providers.iter().position(|&other| other == provider) {
            Some(number) => number,
            None => {
                self.providers.push(provider);
                self.providers.len() - 1
            }
        }
    }
}

/// What a form is written with.
struct Pen<'a> {
    out: String,
    holes: Vec<(usize, usize)>,
    shape: &'a Shape,
}

impl Pen<'_> {
    fn uuid(&mut self, provider: ProviderId) {
        let number = self.shape.providers.iter().position(|&other| other == provider);
        self.holes.extend(number.map(|number| (self.out.len(), number)));
        self.out.push_str(HOLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_hole_is_as_long_as_a_uuid() {
        assert_eq!(HOLE.len(), Hyphenated::LENGTH);
        assert_eq!(HOLE, Uuid::nil().to_string());
    }
}
