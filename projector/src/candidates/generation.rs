//! How the candidates of an answer are generated: how many at most, from which hosts first, and
//! whether by chance. None of it changes what can be found, only what an answer that is cut off
//! holds, and its order.

use ledger::state::ProviderId;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// From which hosts candidates are generated first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// All candidates of one host, then those of the next.
    #[default]
    DepthFirst,
    /// One candidate of each host, then a second one of each.
    BreadthFirst,
}

/// How the candidates of an answer are generated. The default is Placement's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// The most that are generated, whatever the query's limit; none: all.
    pub most: Option<usize>,
    /// Which are generated if `most` cuts them off. A query's own limit is always spread over hosts.
    pub strategy: Strategy,
    /// Draws the hosts, and the providers within them, in an order that follows from this number;
    /// none: in the order of provider numbers.
    pub seed: Option<u64>,
}

impl Generation {
    /// The most candidates of an answer to a query with this limit.
    pub(super) fn limit(&self, of_query: usize) -> usize {
        self.most.map_or(of_query, |most| most.min(of_query))
    }

    /// Whether all candidates of a host come before those of the next.
    pub(super) fn is_by_host(&self, of_query: usize) -> bool {
        let cut_off = self.most.is_some_and(|most| most < of_query);
        let whole = of_query == usize::MAX && self.seed.is_none();
        self.strategy == Strategy::DepthFirst && (cut_off || whole)
    }

    /// Brings hosts, or the providers of one host, into an order by chance if that is wanted: always
    /// the same one for the same `place`.
    pub(super) fn shuffle(&self, place: ProviderId, providers: &mut [ProviderId]) {
        if let Some(seed) = self.seed {
            let mut chance = SmallRng::seed_from_u64(seed ^ u64::from(place).rotate_left(32));
            providers.shuffle(&mut chance);
        }
    }
}
