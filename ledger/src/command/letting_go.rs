//! Commands that let go of a part, or of everything under a condition.

use crate::ids::{ConsumerUuid, ProviderUuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// See [`super::Command::ReleasePart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleasePart {
    /// Who lets go.
    pub consumer: ConsumerUuid,
    /// Of which provider.
    pub provider: ProviderUuid,
    /// Of which class.
    pub class: String,
    /// How much, in the class's unit: at least 1, and no more than is held.
    pub amount: u32,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// See [`super::Command::ReleaseAll`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseAll {
    /// Which provider; those below it and what it shares are other providers.
    pub provider: ProviderUuid,
    /// Of about this many consumers, and no more than fit into one group: both sides of a move on
    /// the provider go together. The last event says how many are left. None: of all consumers as
    /// one group, or of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// See [`super::Command::ReleaseAndReserve`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseAndReserve {
    /// Who lets go of everything. It holds something of the provider.
    pub consumer: ConsumerUuid,
    /// What is kept back from others.
    pub provider: ProviderUuid,
    /// `reserved` from now on, by class; none: the whole `total` of every class the provider has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<BTreeMap<String, u32>>,
    /// The consumer is gone for good, as in [`super::Release`].
    #[serde(default)]
    pub ended: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
