//! The state: who holds how much of which provider, folded from events.
//!
//! It is made of persistent collections (`imbl`): cloning it costs a few reference counts, and two
//! clones share what they have in common. So the writer decides on a clone that is ahead of the
//! disk (W), readers use the last durable one (V), neither waits for the other, and memory is paid
//! once. Providers and consumers have dense numbers; strings are looked up at the border only.

mod apply;
pub mod checkpoint;
pub mod consumer;
mod covered;
mod given_back;
mod held;
mod invariants;
mod moves;
mod names;
pub mod provider;
pub(crate) mod quotas;
mod room;
mod vocabulary;

pub use consumer::{Allocation, Allocations, Consumer, ConsumerId};
pub use covered::Covered;
pub use given_back::{GivenBack, given_back, given_back_to_request};
pub(crate) use held::link_of;
pub use held::{Demand, HeldChange, Write, held_after};
pub use moves::{MoveEntry, Moves};
pub use names::Names;
pub use provider::{AggregateId, ClassId, Provider, ProviderId, ProviderInventory, TraitId};
pub use vocabulary::{Entry, Vocabulary};

use crate::event::{Overlap, Settings};
use crate::ids::{ConsumerUuid, LedgerId, LinkId, ProviderUuid};
use crate::record::Hash;
use crate::time::Timestamp;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;
use uuid::Uuid;

type Map<K, V> = imbl::GenericHashMap<K, V, FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;

/// The state at one sequence. Cheap to clone.
#[derive(Clone, Default)]
pub struct State {
    position: Position,
    roomier: u64,
    settings: Settings,
    classes: Vocabulary,
    traits: Vocabulary,
    aggregates: Names,
    projects: Names,
    users: Names,
    consumer_types: Names,
    providers: Slots<Provider>,
    provider_names: Map<Arc<str>, ProviderId>,
    children: imbl::OrdSet<(ProviderId, ProviderId)>,
    /// Those of which something goes once it is free.
    retiring: imbl::OrdSet<ProviderId>,
    consumers: Slots<Consumer>,
    holders: imbl::OrdSet<(ProviderId, ConsumerId)>,
    moves: Moves,
    links: Map<LinkId, Arc<Group>>,
    quotas: quotas::Quotas,
}

/// Where in the ledger a state stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// The ledger.
    pub ledger_id: LedgerId,
    /// The sequence of the last event that is in the state.
    pub sequence: u64,
    /// The hash of that event's record.
    pub hash: Hash,
    /// When that event was recorded.
    pub recorded_at: Timestamp,
    /// The epoch of the writer that recorded it.
    pub epoch: u64,
}

/// A link group: of its members' amounts only the largest counts, for the classes it covers.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Group {
    /// The rule, decided when the group was made.
    pub covered: Covered,
    /// Its members: one is left when the other side of a move went.
    pub members: SmallVec<[ConsumerUuid; 4]>,
}

/// See [`State::provider_rows`].
pub struct ProviderRows<'a> {
    rows: imbl::vector::Focus<'a, Option<Arc<Provider>>, imbl::shared_ptr::DefaultSharedPtr>,
}

impl ProviderRows<'_> {
    /// A provider by its number.
    pub fn get(&mut self, id: ProviderId) -> Option<&Arc<Provider>> {
        self.rows.get(id as usize).and_then(Option::as_ref)
    }
}

/// Things with a UUID and a dense number that is used again. Each number in `ids` or `free` is that of
/// a row, so indexing by it cannot fail; the memory ends long before the numbers do.
#[derive(Clone)]
struct Slots<T> {
    rows: imbl::Vector<Option<Arc<T>>>,
    ids: Map<Uuid, u32>,
    free: imbl::Vector<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { rows: imbl::Vector::new(), ids: Map::default(), free: imbl::Vector::new() }
    }
}

impl<T: Clone> Slots<T> {
    fn id(&self, uuid: &Uuid) -> Option<u32> {
        self.ids.get(uuid).copied()
    }

    fn get(&self, id: u32) -> Option<&Arc<T>> {
        self.rows.get(id as usize).and_then(Option::as_ref)
    }

    fn by_uuid(&self, uuid: &Uuid) -> Option<(u32, &Arc<T>)> {
        let id = self.id(uuid)?;
        self.get(id).map(|row| (id, row))
    }

    fn insert(&mut self, uuid: Uuid, row: T) -> u32 {
        let id = match self.free.pop_back() {
            Some(id) => {
                assert!(self.rows[id as usize].is_none(), "a free slot is taken");
                self.rows[id as usize] = Some(Arc::new(row));
                id
            }
            None => {
                self.rows.push_back(Some(Arc::new(row)));
                u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
            }
        };
        assert!(id < u32::MAX, "more rows than numbers");
        let twice = self.ids.insert(uuid, id);
        assert!(twice.is_none(), "a uuid is inserted twice");
        id
    }

    fn remove(&mut self, uuid: &Uuid) -> Option<Arc<T>> {
        let id = self.ids.remove(uuid)?;
        self.free.push_back(id);
        self.rows[id as usize].take()
    }

    /// The row to change; it is copied first if another clone of the state shares it.
    fn change(&mut self, id: u32) -> Option<&mut T> {
        self.rows.get_mut(id as usize).and_then(Option::as_mut).map(Arc::make_mut)
    }

    /// Puts back a row under the number it had.
    fn push_row(&mut self, uuid: Option<Uuid>, row: Option<T>) {
        let id = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if let Some(uuid) = uuid {
            self.ids.insert(uuid, id);
        }
        self.rows.push_back(row.map(Arc::new));
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Arc<T>)> {
        (0u32..).zip(self.rows.iter()).filter_map(|(id, row)| row.as_ref().map(|row| (id, row)))
    }

    fn len(&self) -> usize {
        self.ids.len()
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("position", &self.position)
            .field("providers", &self.provider_count())
            .field("consumers", &self.consumer_count())
            .finish_non_exhaustive()
    }
}

impl State {
    /// Where in the ledger it stands.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The sequence of the last event in it.
    pub fn sequence(&self) -> u64 {
        self.position.sequence
    }

    /// The sequence of the last event after which something may fit that did not fit before it.
    pub fn roomier(&self) -> u64 {
        self.roomier
    }

    /// Options that decisions depend on.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Resource classes.
    pub fn classes(&self) -> &Vocabulary {
        &self.classes
    }

    /// Traits.
    pub fn traits(&self) -> &Vocabulary {
        &self.traits
    }

    /// Aggregates that some provider is or was in.
    pub fn aggregates(&self) -> &Names {
        &self.aggregates
    }

    /// Projects that ever had a consumer.
    pub fn projects(&self) -> &Names {
        &self.projects
    }

    /// Users that ever had a consumer.
    pub fn users(&self) -> &Names {
        &self.users
    }

    /// Consumer types that were ever used.
    pub fn consumer_types(&self) -> &Names {
        &self.consumer_types
    }

    /// How many providers there are.
    pub fn provider_count(&self) -> usize {
        self.providers.len()
    }

    /// How many provider numbers were ever given: all numbers are below it.
    pub fn provider_numbers(&self) -> usize {
        self.providers.rows.len()
    }

    /// How many consumers hold something.
    pub fn consumer_count(&self) -> usize {
        self.consumers.len()
    }

    /// The number of a provider.
    pub fn provider_id(&self, uuid: ProviderUuid) -> Option<ProviderId> {
        self.providers.id(&uuid.0)
    }

    /// A provider by its id.
    pub fn provider(&self, uuid: ProviderUuid) -> Option<&Arc<Provider>> {
        self.providers.by_uuid(&uuid.0).map(|(_, row)| row)
    }

    /// A provider by its number.
    pub fn provider_row(&self, id: ProviderId) -> Option<&Arc<Provider>> {
        self.providers.get(id)
    }

    /// Providers by their numbers, for whoever asks for many: numbers in ascending order cost less
    /// than each by itself.
    pub fn provider_rows(&self) -> ProviderRows<'_> {
        ProviderRows { rows: self.providers.rows.focus() }
    }

    /// The number of the provider with a name.
    pub fn provider_named(&self, name: &str) -> Option<ProviderId> {
        self.provider_names.get(name).copied()
    }

    /// All providers in the order of their numbers.
    pub fn providers(&self) -> impl Iterator<Item = (ProviderId, &Arc<Provider>)> {
        self.providers.iter()
    }

    /// The numbers of a provider's children.
    pub fn children(&self, parent: ProviderId) -> impl Iterator<Item = ProviderId> + '_ {
        self.children.range((parent, 0)..=(parent, u32::MAX)).map(|&(_, child)| child)
    }

    /// The providers that go, or some of whose inventories go, once nobody holds anything of them.
    pub fn retiring(&self) -> impl ExactSizeIterator<Item = ProviderId> + '_ {
        self.retiring.iter().copied()
    }

    /// A provider and everything below it.
    pub fn subtree(&self, top: ProviderId) -> Vec<ProviderId> {
        let mut found = vec![top];
        let mut next = 0;
        while next < found.len() {
            found.extend(self.children(found[next]));
            next += 1;
        }
        found
    }

    /// A consumer by its id.
    pub fn consumer(&self, uuid: ConsumerUuid) -> Option<&Arc<Consumer>> {
        self.consumers.by_uuid(&uuid.0).map(|(_, row)| row)
    }

    /// A consumer by its number.
    pub fn consumer_row(&self, id: ConsumerId) -> Option<&Arc<Consumer>> {
        self.consumers.get(id)
    }

    /// All consumers in the order of their numbers.
    pub fn consumers(&self) -> impl Iterator<Item = (ConsumerId, &Arc<Consumer>)> {
        self.consumers.iter()
    }

    /// The consumers that hold something of a provider.
    pub fn holders(&self, provider: ProviderId) -> impl Iterator<Item = &Arc<Consumer>> {
        self.holders
            .range((provider, 0)..=(provider, u32::MAX))
            .filter_map(|&(_, consumer)| self.consumers.get(consumer))
    }

    /// How many consumers hold something of a provider.
    pub fn holder_count(&self, provider: ProviderId) -> usize {
        self.holders.range((provider, 0)..=(provider, u32::MAX)).count()
    }

    /// Whether any consumer holds something of a provider.
    pub fn is_held(&self, provider: ProviderId) -> bool {
        self.holders.range((provider, 0)..=(provider, u32::MAX)).next().is_some()
    }

    /// Moves: the live ones and the latest that ended.
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// The rule that consumers linked from now on get, as events spell it.
    pub fn overlap_today(&self) -> Overlap {
        let setting = Overlap::Max(self.settings.overlap_classes.clone());
        self.covered(&setting).spelled(&self.classes)
    }

    /// A rule that an event or setting spells, by class numbers.
    pub(crate) fn covered(&self, overlap: &Overlap) -> Covered {
        Covered::resolve(overlap, |name| self.classes.id(name))
    }

    /// A link group.
    pub fn link(&self, id: LinkId) -> Option<&Arc<Group>> {
        self.links.get(&id)
    }

    /// A consumer's allocations as commands and events spell them.
    pub fn holding(&self, allocations: &[Allocation]) -> crate::amounts::Holding {
        let mut holding = crate::amounts::Holding::new();
        for allocation in allocations {
            let Some(provider) = self.providers.get(allocation.provider) else { continue };
            holding
                .entry(provider.uuid)
                .or_default()
                .insert(self.classes.name(allocation.class).to_string(), allocation.amount);
        }
        holding
    }

    /// What a consumer holds, as commands and events spell it; empty if it holds nothing.
    pub fn holding_of(&self, consumer: ConsumerUuid) -> crate::amounts::Holding {
        self.consumer(consumer).map(|row| self.holding(&row.allocations)).unwrap_or_default()
    }
}
