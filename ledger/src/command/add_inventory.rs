//! A change of an inventory by so much: such changes commute.

use crate::ids::ProviderUuid;
use serde::{Deserialize, Serialize};

/// See [`super::Command::AddInventory`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddInventory {
    /// Whose inventory.
    pub provider: ProviderUuid,
    /// Of which class; the provider has it already.
    pub class: String,
    /// How much `total` grows, in the class's unit; below 0 it shrinks.
    #[serde(default)]
    pub total: i64,
    /// How much `reserved` grows, likewise.
    #[serde(default)]
    pub reserved: i64,
}
