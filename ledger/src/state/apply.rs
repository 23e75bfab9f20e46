//! Folding events into the state. `apply` is deterministic and cannot fail: an event says what
//! became of everything it touched, so nothing is decided here. It asserts what must hold.
//!
//! What is asserted here cannot be reached by a request: events come from `decide`, which has checked
//! it on this very state, or from a log whose chain was checked. A log that an older version wrote
//! wrongly is refused where it is folded, with the event and what is wrong
//! ([`crate::fold::FoldError::Contradiction`]); a defect of `decide` costs the one command.

use super::consumer::{Allocation, Allocations, Consumer, ConsumerId};
use super::provider::{Provider, ProviderInventory};
use super::quotas::Touched;
use super::{Group, State};
use crate::allocation_event;
use crate::event::{
    AllocationEvent, ConsumerChange, Event, Genesis, InventoryChanged, ProviderChange,
    ProviderCreated, ProviderDeleted, ProviderUpdated, RetirementChanged,
};
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::time::Timestamp;
use smallvec::SmallVec;
use std::sync::Arc;

impl State {
    /// Folds the event with `sequence`, recorded at `now`, into the state.
    ///
    /// # Panics
    /// If the event does not follow on what the state holds: the log would be damaged, or written
    /// by a program that decides differently. Going on would make two processes disagree.
    pub fn apply(&mut self, sequence: u64, now: Timestamp, event: &Event) {
        assert!(
            sequence == self.position.sequence + 1 || matches!(event, Event::Genesis(_)),
            "event {sequence} cannot follow on {}",
            self.position.sequence
        );
        self.position.sequence = sequence;
        self.position.recorded_at = now;
        if super::room::may_make_room(event) {
            self.roomier = sequence;
        }
        match event {
            Event::Genesis(body) => self.apply_genesis(body, now),
            allocation_event!(body) => self.apply_allocations(body, now),
            Event::ProviderCreated(body) => self.apply_provider_created(body, now),
            Event::ProviderUpdated(body) => self.apply_provider_updated(body, now),
            Event::ProviderDeleted(body) => self.apply_provider_deleted(body),
            Event::InventoryChanged(body) => self.apply_inventory(body, now),
            Event::QuotaChanged(body) => self.apply_quota(body),
            Event::RetirementChanged(body) => self.apply_retirement(body),
            Event::TraitsChanged(body) => {
                let id = self.known(body.provider);
                self.change_traits(id, &body.added, &body.removed);
                self.set_generation(id, body.generation, now);
            }
            Event::AggregatesChanged(body) => {
                let id = self.known(body.provider);
                self.change_aggregates(id, &body.added, &body.removed);
                self.set_generation(id, body.generation, now);
            }
            Event::Reshaped(body) => self.apply_reshaped(body, now),
            Event::TraitCreated(body) => {
                self.traits.create(&body.name, false, now);
            }
            Event::TraitDeleted(body) => {
                let id = self.trait_known(&body.name);
                self.traits.remove(id);
            }
            Event::ResourceClassCreated(body) => {
                self.classes.create(&body.name, false, now);
            }
            Event::ResourceClassRenamed(body) => {
                let id = self.class_known(&body.name_before);
                self.classes.rename(id, &body.name, now);
                self.settings.overlap_classes.rename(&body.name_before, &body.name);
                self.moves.rename_class(&body.name_before, &body.name);
            }
            Event::ResourceClassDeleted(body) => {
                let id = self.class_known(&body.name);
                self.classes.remove(id);
            }
            Event::SettingsChanged(body) => self.settings = body.clone(),
            Event::Rejected(_)
            | Event::RefusalsSuppressed(_)
            | Event::SearchFailed(_)
            | Event::Answered(_)
            | Event::EventSkipped(_)
            | Event::Erased(_) => {}
        }
    }

    /// Notes the hash of the record that was folded last, and its writer's epoch.
    pub fn seal(&mut self, hash: crate::record::Hash, epoch: u64) {
        self.position.hash = hash;
        self.position.epoch = epoch;
    }

    fn apply_genesis(&mut self, body: &Genesis, now: Timestamp) {
        assert_eq!(self.providers.len() + self.consumers.len(), 0, "a genesis comes first");
        self.position.ledger_id = body.ledger_id;
        for name in &body.standard_classes {
            self.classes.create(name, true, now);
        }
        for name in &body.standard_traits {
            self.traits.create(name, true, now);
        }
    }

    fn apply_reshaped(&mut self, body: &crate::event::Reshaped, now: Timestamp) {
        // Classes come before the allocations that use them and go after those that used them.
        for change in &body.inventories {
            self.put_inventories(change, now);
        }
        self.apply_allocations(&body.allocations, now);
        for change in &body.inventories {
            self.drop_inventories(change);
            let id = self.known(change.provider);
            self.set_generation(id, change.generation, now);
        }
    }

    fn apply_allocations(&mut self, body: &AllocationEvent, now: Timestamp) {
        let touched = self.has_quotas().then(|| Touched::by(self, body));
        let before = touched.as_ref().map(|touched| self.part_of(touched));
        for change in &body.consumers {
            self.apply_consumer(change, now);
        }
        if let (Some(touched), Some(before)) = (touched, before) {
            self.recount(&before, &self.part_of(&touched));
        }
        for change in &body.providers {
            self.apply_usage(change, now);
        }
        for this in &body.moves {
            self.moves.put(this, now, self.position.sequence);
        }
    }

    fn apply_consumer(&mut self, change: &ConsumerChange, now: Timestamp) {
        let after = self.allocations_after(change);
        let id = self.consumers.id(&change.consumer.0);
        let (created_at, written_at) = match id.and_then(|id| self.consumers.get(id)) {
            Some(row) if Some(row.generation) == change.generation => {
                (row.created_at, row.updated_at)
            }
            Some(row) => (row.created_at, now),
            None => (now, now),
        };
        self.leave_link(change.consumer);
        let Some(generation) = change.generation else {
            assert!(after.is_empty(), "a consumer that is gone holds something");
            self.remove_consumer(change.consumer);
            return;
        };
        assert!(!after.is_empty(), "a consumer exists while it holds something");
        let consumer = Consumer {
            uuid: change.consumer,
            project: self.projects.intern(&change.project_id),
            user: self.users.intern(&change.user_id),
            consumer_type: change
                .consumer_type
                .as_deref()
                .map(|name| self.consumer_types.intern(name)),
            generation,
            created_at,
            updated_at: written_at,
            allocations: after,
            link: None,
        };
        self.put_consumer(id, consumer);
        if let Some(link) = &change.link {
            self.join_link(change.consumer, link);
        }
    }

    fn allocations_after(&self, change: &ConsumerChange) -> Allocations {
        let mut after = Allocations::new();
        for holding in &change.holdings {
            let provider = self.known(holding.provider);
            for amount in holding.amounts.iter().filter(|amount| amount.after > 0) {
                after.push(Allocation {
                    provider,
                    class: self.class_known(&amount.class),
                    amount: u32::try_from(amount.after).unwrap_or(u32::MAX),
                });
            }
        }
        after.sort_unstable();
        after
    }

    fn put_consumer(&mut self, id: Option<ConsumerId>, consumer: Consumer) {
        let now: SmallVec<[u32; 4]> =
            consumer.allocations.iter().map(|held| held.provider).collect();
        let before: SmallVec<[u32; 4]> = id
            .and_then(|id| self.consumers.get(id))
            .map(|row| row.allocations.iter().map(|held| held.provider).collect())
            .unwrap_or_default();
        let id = match id {
            Some(id) => {
                if let Some(row) = self.consumers.change(id) {
                    *row = consumer;
                }
                id
            }
            None => {
                let uuid = consumer.uuid.0;
                self.consumers.insert(uuid, consumer)
            }
        };
        for provider in before.iter().filter(|provider| !now.contains(provider)) {
            self.holders.remove(&(*provider, id));
        }
        for provider in now.iter().filter(|provider| !before.contains(provider)) {
            self.holders.insert((*provider, id));
        }
    }

    fn remove_consumer(&mut self, uuid: ConsumerUuid) {
        let Some(id) = self.consumers.id(&uuid.0) else { return };
        if let Some(row) = self.consumers.remove(&uuid.0) {
            for held in &row.allocations {
                self.holders.remove(&(held.provider, id));
            }
        }
    }

    fn apply_usage(&mut self, change: &ProviderChange, now: Timestamp) {
        let id = self.known(change.provider);
        for amount in &change.held {
            let class = self.class_known(&amount.class);
            let provider = self.providers.change(id).expect("known providers have rows");
            match provider.inventory_mut(class) {
                Some(inventory) => {
                    assert_eq!(inventory.held, amount.before, "usage does not follow on");
                    inventory.held = amount.after;
                }
                None => {
                    assert_eq!(amount.after, 0, "something is held of a class without inventory")
                }
            }
        }
        self.set_generation(id, change.generation, now);
    }

    fn apply_provider_created(&mut self, body: &ProviderCreated, now: Timestamp) {
        let parent = body.parent.map(|parent| self.known(parent));
        let name: Arc<str> = body.name.as_str().into();
        let id = self.providers.insert(
            body.provider.0,
            Provider {
                uuid: body.provider,
                name: Arc::clone(&name),
                generation: body.generation,
                parent,
                root: 0,
                created_at: now,
                updated_at: None,
                inventories: Vec::new(),
                traits: Arc::new([]),
                aggregates: Arc::new([]),
                retiring: false,
            },
        );
        let twice = self.provider_names.insert(name, id);
        assert!(twice.is_none(), "two providers have one name");
        self.hang(id, parent);
    }

    fn apply_provider_updated(&mut self, body: &ProviderUpdated, now: Timestamp) {
        let id = self.known(body.provider);
        let parent = body.parent.map(|parent| self.known(parent));
        let name: Arc<str> = body.name.as_str().into();
        self.provider_names.remove(body.name_before.as_str());
        self.provider_names.insert(Arc::clone(&name), id);
        let before = body.parent_before.map(|parent| self.known(parent));
        if let Some(before) = before {
            self.children.remove(&(before, id));
        }
        let provider = self.providers.change(id).expect("known providers have rows");
        provider.name = name;
        provider.parent = parent;
        provider.updated_at = Some(now);
        self.hang(id, parent);
    }

    /// Puts a provider under its parent: everything below it gets the parent's root.
    fn hang(&mut self, id: u32, parent: Option<u32>) {
        let root = match parent {
            None => id,
            Some(parent) => {
                self.children.insert((parent, id));
                self.providers.get(parent).map_or(parent, |row| row.root)
            }
        };
        for below in self.subtree(id) {
            if let Some(row) = self.providers.change(below) {
                row.root = root;
            }
        }
    }

    fn apply_provider_deleted(&mut self, body: &ProviderDeleted) {
        let id = self.known(body.provider);
        assert!(!self.is_held(id), "a provider in use is deleted");
        let row = self.providers.remove(&body.provider.0).expect("known providers have rows");
        self.retiring.remove(&id);
        self.provider_names.remove(&*row.name);
        if let Some(parent) = row.parent {
            self.children.remove(&(parent, id));
        }
        for inventory in &row.inventories {
            self.classes.drop_user(inventory.class);
        }
        for &id in row.traits.iter() {
            self.traits.drop_user(id);
        }
    }

    fn apply_inventory(&mut self, body: &InventoryChanged, now: Timestamp) {
        self.put_inventories(body, now);
        self.drop_inventories(body);
        let id = self.known(body.provider);
        self.set_generation(id, body.generation, now);
    }

    fn put_inventories(&mut self, body: &InventoryChanged, now: Timestamp) {
        let id = self.known(body.provider);
        for change in &body.changes {
            let Some(after) = change.after else { continue };
            let class = self.class_known(&change.class);
            let provider = self.providers.change(id).expect("known providers have rows");
            if let Some(row) = provider.inventory_mut(class) {
                row.inventory = after;
                row.updated_at = Some(now);
                continue;
            }
            provider.inventories.push(ProviderInventory {
                class,
                inventory: after,
                held: 0,
                created_at: now,
                updated_at: None,
                retiring: false,
                closed: provider.retiring,
            });
            provider.inventories.sort_unstable_by_key(|row| row.class);
            self.classes.add_user(class);
        }
    }

    fn drop_inventories(&mut self, body: &InventoryChanged) {
        let id = self.known(body.provider);
        for change in body.changes.iter().filter(|change| change.after.is_none()) {
            let class = self.class_known(&change.class);
            let provider = self.providers.change(id).expect("known providers have rows");
            let Some(at) = provider.inventories.iter().position(|row| row.class == class) else {
                continue;
            };
            let gone = provider.inventories.remove(at);
            assert_eq!(gone.held, 0, "an inventory in use is removed");
            if gone.retiring && !provider.has_wishes() {
                self.retiring.remove(&id);
            }
            self.classes.drop_user(class);
        }
    }

    fn apply_retirement(&mut self, body: &RetirementChanged) {
        let id = self.known(body.provider);
        let wished: Vec<u32> =
            body.after.classes.iter().map(|name| self.class_known(name)).collect();
        let provider = self.providers.change(id).expect("known providers have rows");
        provider.retiring = body.after.whole;
        for row in &mut provider.inventories {
            row.retiring = wished.contains(&row.class);
            row.closed = row.retiring || body.after.whole;
        }
        if provider.has_wishes() {
            self.retiring.insert(id);
        } else {
            self.retiring.remove(&id);
        }
    }

    fn change_traits(&mut self, id: u32, added: &[String], removed: &[String]) {
        let add: Vec<u32> = added.iter().map(|name| self.trait_known(name)).collect();
        let remove: Vec<u32> = removed.iter().map(|name| self.trait_known(name)).collect();
        for &one in &add {
            self.traits.add_user(one);
        }
        for &one in &remove {
            self.traits.drop_user(one);
        }
        let provider = self.providers.change(id).expect("known providers have rows");
        provider.traits = changed(&provider.traits, &add, &remove);
    }

    fn change_aggregates(&mut self, id: u32, added: &[String], removed: &[String]) {
        let add: Vec<u32> = added.iter().map(|name| self.aggregates.intern(name)).collect();
        let remove: Vec<u32> = removed.iter().map(|name| self.aggregates.intern(name)).collect();
        let provider = self.providers.change(id).expect("known providers have rows");
        provider.aggregates = changed(&provider.aggregates, &add, &remove);
    }

    fn set_generation(&mut self, id: u32, generation: u32, now: Timestamp) {
        let provider = self.providers.change(id).expect("known providers have rows");
        assert!(generation >= provider.generation, "a generation goes back");
        if provider.generation != generation {
            provider.updated_at = Some(now);
        }
        provider.generation = generation;
    }

    fn leave_link(&mut self, consumer: ConsumerUuid) {
        let Some(id) = self.consumers.id(&consumer.0) else { return };
        let Some(link) = self.consumers.get(id).and_then(|row| row.link) else { return };
        if let Some(row) = self.consumers.change(id) {
            row.link = None;
        }
        let Some(group) = self.links.get_mut(&link) else { return };
        let group = Arc::make_mut(group);
        group.members.retain(|member| *member != consumer);
        if group.members.is_empty() {
            self.links.remove(&link);
        }
    }

    fn join_link(&mut self, consumer: ConsumerUuid, link: &crate::event::Link) {
        let id = self.consumers.id(&consumer.0).expect("a consumer that is linked exists");
        if let Some(row) = self.consumers.change(id) {
            row.link = Some(link.group);
        }
        match self.links.get_mut(&link.group) {
            Some(group) => {
                // The group's rule was decided once; a record may spell it with older names.
                Arc::make_mut(group).members.push(consumer);
            }
            None => {
                let covered = self.covered(&link.overlap);
                let members = SmallVec::from_slice(&[consumer]);
                self.links.insert(link.group, Arc::new(Group { covered, members }));
            }
        }
    }

    fn known(&self, provider: ProviderUuid) -> u32 {
        match self.providers.id(&provider.0) {
            Some(id) => id,
            None => {
                panic!("event {} names provider {provider}, which does not exist", self.sequence())
            }
        }
    }

    pub(super) fn class_known(&self, name: &str) -> u32 {
        match self.classes.id(name) {
            Some(id) => id,
            None => panic!("event {} names class {name}, which does not exist", self.sequence()),
        }
    }

    fn trait_known(&self, name: &str) -> u32 {
        match self.traits.id(name) {
            Some(id) => id,
            None => panic!("event {} names trait {name}, which does not exist", self.sequence()),
        }
    }
}

/// A sorted set of numbers with some added and some removed.
fn changed(before: &[u32], add: &[u32], remove: &[u32]) -> Arc<[u32]> {
    let mut after: Vec<u32> = before
        .iter()
        .copied()
        .filter(|id| !remove.contains(id))
        .chain(add.iter().copied())
        .collect();
    after.sort_unstable();
    after.dedup();
    after.into()
}
