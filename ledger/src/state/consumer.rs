//! Consumers as the state keeps them. A consumer exists while it holds something.

use super::provider::{ClassId, ProviderId};
use crate::ids::{ConsumerUuid, LinkId};
use crate::time::Timestamp;
use smallvec::SmallVec;

/// A consumer's dense number; the number of one that is gone is used again.
pub type ConsumerId = u32;

/// Amounts in the order of (provider number, class number). Nova's server holds three.
pub type Allocations = SmallVec<[Allocation; 4]>;

/// What a consumer holds of one class on one provider.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Allocation {
    /// On which provider.
    pub provider: ProviderId,
    /// Of which class.
    pub class: ClassId,
    /// How much, in the class's unit.
    pub amount: u32,
}

/// A consumer.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Consumer {
    /// Its id.
    pub uuid: ConsumerUuid,
    /// Number of its project.
    pub project: u32,
    /// Number of its user.
    pub user: u32,
    /// Number of its type; none: unknown.
    pub consumer_type: Option<u32>,
    /// Counts writes, from 1.
    pub generation: u32,
    /// When it came into being.
    pub created_at: Timestamp,
    /// When it was last written. Placement makes its allocations anew with each write, so this is
    /// their creation time.
    pub updated_at: Timestamp,
    /// What it holds; never empty.
    pub allocations: Allocations,
    /// The link group it is in.
    pub link: Option<LinkId>,
}

impl Consumer {
    /// How much of `class` it holds on `provider`.
    pub fn amount(&self, provider: ProviderId, class: ClassId) -> u32 {
        amount_in(&self.allocations, provider, class)
    }
}

/// How much of `class` on `provider` is in `allocations`.
pub fn amount_in(allocations: &[Allocation], provider: ProviderId, class: ClassId) -> u32 {
    allocations
        .iter()
        .find(|allocation| allocation.provider == provider && allocation.class == class)
        .map_or(0, |allocation| allocation.amount)
}
