//! Who came closest.

use super::condition::Lack;
use crate::candidates::index::CandidateIndex;
use ledger::state::ProviderId;
use serde::Serialize;
use std::cmp::Reverse;

/// A provider (or host) that satisfies all conditions but few.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// Its id.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// What it lacks, in the order of the conditions.
    pub lacks: Vec<Lack>,
}

/// The closest so far.
pub(super) struct Nearest {
    most: usize,
    kept: Vec<(Rank, Vec<Lack>)>,
}

/// Few faults first, then who got further, then the number.
type Rank = (usize, Reverse<usize>, ProviderId);

impl Nearest {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Vec::with_capacity(most + 1) }
    }

    /// Considers one who passed the first `passed` conditions.
    pub(super) fn offer(&mut self, subject: ProviderId, passed: usize, lacks: Vec<(usize, Lack)>) {
        if lacks.is_empty() {
            return;
        }
        let rank = (lacks.len(), Reverse(passed), subject);
        let at = self.kept.partition_point(|(other, _)| *other < rank);
        if at < self.most {
            self.kept.insert(at, (rank, lacks.into_iter().map(|(_, lack)| lack).collect()));
            self.kept.truncate(self.most);
        }
    }

    pub(super) fn into_misses(self, index: &CandidateIndex) -> Vec<NearMiss> {
        let spell = |((_, _, subject), lacks): (Rank, _)| {
            let row = index.row(subject)?;
            let (provider, name) = (row.uuid.to_string(), row.name.to_string());
            Some(NearMiss { provider, name, lacks })
        };
        self.kept.into_iter().filter_map(spell).collect()
    }
}
