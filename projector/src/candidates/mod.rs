//! Allocation candidates: which providers together could serve a request.
//!
//! [`CandidateIndex`] is kept up to date by events: for each resource class a column of the room
//! that is left on each provider, for each trait, aggregate and class the set of its providers,
//! and the trees. A snapshot of it is cheap, so a query runs on one and blocks nobody. [`search`]
//! intersects sets first, then looks at the trees that are left, one after the other, and stops
//! as soon as it has what the query's limit asks for.

mod found;
mod query;

pub use found::{AmountsId, Candidate, Found};
pub use query::{Group, GroupPolicy, NameError, Query, RootTraits, TraitCondition};

/// How many combinations one search looks at before it gives up (`Found::complete` is then
/// false): some requests, such as twenty groups on nineteen devices of differing traits, have
/// more combinations than anybody could wait for.
pub const MAX_STEPS: u64 = 4_000_000;
