//! Resource providers as the state keeps them.

use super::vocabulary::Vocabulary;
use crate::amounts::Inventory;
use crate::event::Wishes;
use crate::ids::ProviderUuid;
use crate::time::Timestamp;
use std::sync::Arc;

/// A provider's dense number; the number of a removed provider is used again.
pub type ProviderId = u32;
/// A resource class's dense number.
pub type ClassId = u32;
/// A trait's dense number.
pub type TraitId = u32;
/// An aggregate's dense number.
pub type AggregateId = u32;

/// A resource provider.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Provider {
    /// Its id.
    pub uuid: ProviderUuid,
    /// Its unique name.
    pub name: Arc<str>,
    /// Counts changes; clients use it to notice that they know an older state. After 2^32 - 1
    /// changes it stays there.
    pub generation: u32,
    /// Its parent in the tree.
    pub parent: Option<ProviderId>,
    /// The root of its tree: itself if it has no parent.
    pub root: ProviderId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed, its generation alone included.
    pub updated_at: Option<Timestamp>,
    /// What it has, in the order of class numbers.
    pub inventories: Vec<ProviderInventory>,
    /// Its traits, sorted by number.
    pub traits: Arc<[TraitId]>,
    /// Its aggregates, sorted by number.
    pub aggregates: Arc<[AggregateId]>,
    /// It goes once nobody holds anything of it, and nothing of it is offered any more.
    pub retiring: bool,
}

/// The inventory of one class on one provider, and what is held of it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProviderInventory {
    /// Which class.
    pub class: ClassId,
    /// Its figures.
    pub inventory: Inventory,
    /// `held`: what all consumers hold of it, link groups counted by their rule.
    pub held: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Option<Timestamp>,
    /// It goes once nobody holds anything of it.
    pub retiring: bool,
    /// Nothing of it is offered any more: it is retiring, or its provider is.
    pub closed: bool,
}

impl Provider {
    /// The inventory of `class`, if there is one.
    pub fn inventory(&self, class: ClassId) -> Option<&ProviderInventory> {
        self.inventories.iter().find(|inventory| inventory.class == class)
    }

    pub(super) fn inventory_mut(&mut self, class: ClassId) -> Option<&mut ProviderInventory> {
        self.inventories.iter_mut().find(|inventory| inventory.class == class)
    }

    /// Whether it, or an inventory of it, goes once nobody holds anything of it.
    pub fn has_wishes(&self) -> bool {
        self.retiring || self.inventories.iter().any(|row| row.retiring)
    }

    /// What of it goes once nobody holds anything of it.
    pub(crate) fn wishes(&self, classes: &Vocabulary) -> Wishes {
        let retiring = self.inventories.iter().filter(|row| row.retiring);
        Wishes {
            whole: self.retiring,
            classes: retiring.map(|row| classes.name(row.class).to_string()).collect(),
        }
    }

    /// Whether the provider has the trait.
    pub fn has_trait(&self, id: TraitId) -> bool {
        self.traits.binary_search(&id).is_ok()
    }

    /// Whether the provider is in the aggregate.
    pub fn is_in(&self, aggregate: AggregateId) -> bool {
        self.aggregates.binary_search(&aggregate).is_ok()
    }
}

impl ProviderInventory {
    /// What can still be claimed, cut off towards zero; below 0 if overcommitted, 0 at most if it
    /// is closed.
    pub fn free(&self) -> i64 {
        // A capacity may be as far from 0 as the type goes: a ratio has no useful bound.
        let held = i64::try_from(self.held).unwrap_or(i64::MAX);
        let free = self.inventory.capacity_shown().saturating_sub(held);
        if self.closed { free.min(0) } else { free }
    }

    /// When it was last written, or made.
    pub fn touched_at(&self) -> Timestamp {
        self.updated_at.unwrap_or(self.created_at)
    }
}
