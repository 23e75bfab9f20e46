//! Allocation candidates: which providers together could serve a request.
//!
//! [`CandidateIndex`] is kept up to date by events: for each resource class a column of the room
//! that is left on each provider, for each trait, aggregate and class the set of its providers,
//! and the trees. A snapshot of it is cheap, so a query runs on one and blocks nobody. [`search`]
//! intersects sets first, then looks at the trees that are left, one after the other, and stops
//! as soon as it has what the query's limit asks for.

mod anchors;
mod class;
mod column;
pub mod explain;
mod found;
mod generation;
mod index;
mod lines;
mod order;
mod plan;
mod problem;
mod query;
mod search;
mod sets;
mod trees;
mod walk;

pub use found::{AmountsId, Candidate, Found};
pub use generation::{Generation, Strategy};
pub use index::CandidateIndex;
pub use order::HostOrder;
pub use query::{Group, GroupPolicy, NameError, Query, RootTraits, TraitCondition};
pub use search::{search, search_giving_back, search_in_order, search_with};

/// How many combinations one search looks at in vain before it gives up ([`Found::complete`] is
/// then false): some requests, such as many groups on as many devices of differing traits, have
/// more combinations than anybody could wait for.
pub const MAX_STEPS: u64 = 4_000_000;

/// How many candidates one answer holds at most, whatever its limit.
pub const MAX_CANDIDATES: usize = 1_000_000;

/// How many bytes the candidates of one search take at most, whatever its limit: 400,000 candidates
/// of one provider each, 60,000 of eight groups on eight providers. An answer made of them is some
/// five times as large, so that a search stays below 50 MB with it.
pub const MAX_FOUND_BYTES: usize = 8 * 1024 * 1024;
