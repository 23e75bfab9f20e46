//! Amounts of resource classes on resource providers, as commands and events spell them.

use crate::ids::ProviderUuid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts by resource class on one provider. An amount is 1 to 2,147,483,647 in the class's unit.
pub type Resources = BTreeMap<String, u32>;

/// What a consumer holds or asks for: provider, class, amount. In order, so that the same
/// command is decided the same way and digests alike.
pub type Holding = BTreeMap<ProviderUuid, Resources>;

/// The inventory of one resource class on one provider (Placement API reference, "Inventories").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Units there are, 1 to 2,147,483,647.
    pub total: u32,
    /// Units kept back from consumers.
    #[serde(default)]
    pub reserved: u32,
    /// The smallest amount of one allocation.
    #[serde(default = "one")]
    pub min_unit: u32,
    /// The largest amount of one allocation.
    #[serde(default = "most")]
    pub max_unit: u32,
    /// Each amount is a multiple of this.
    #[serde(default = "one")]
    pub step_size: u32,
    /// Overcommit: capacity is (total - reserved) times this.
    #[serde(default = "exact")]
    pub allocation_ratio: f64,
}

fn one() -> u32 {
    1
}

fn most() -> u32 {
    crate::limits::AMOUNT
}

fn exact() -> f64 {
    1.0
}

impl Inventory {
    /// An inventory of `total` units with Placement's defaults for the rest.
    pub fn of(total: u32) -> Self {
        Self {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: crate::limits::AMOUNT,
            step_size: 1,
            allocation_ratio: 1.0,
        }
    }

    /// `(total - reserved) * allocation_ratio` as an IEEE double, as Placement computes it.
    pub fn capacity(&self) -> f64 {
        (f64::from(self.total) - f64::from(self.reserved)) * self.allocation_ratio
    }

    /// [`Self::capacity`] cut off towards zero, as Placement shows it; where it is beyond 64 bits,
    /// the nearest number that is not.
    pub fn capacity_shown(&self) -> i64 {
        self.capacity() as i64
    }
}
