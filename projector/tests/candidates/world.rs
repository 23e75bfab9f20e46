//! A ledger state made of events, and an index that follows them. The benchmark uses it too.
#![allow(dead_code)]

use ledger::amounts::Inventory;
use ledger::command::Via;
use ledger::event::{
    AggregatesChanged, AllocationEvent, AmountChange, ConsumerChange, Event, Genesis,
    HoldingChange, InventoryBeforeAfter, InventoryChanged, Name, ProviderChange, ProviderCreated,
    ProviderDeleted, ProviderUpdated, RetirementChanged, TraitsChanged, Wishes,
};
use ledger::ids::{ConsumerUuid, LedgerId, ProviderUuid};
use ledger::state::State;
use ledger::time::Timestamp;
use projector::candidates::{CandidateIndex, Found, Group, Query, TraitCondition, search};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

pub const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";

/// A candidate spelled out: amounts by (provider, class), and who serves which group.
pub type Plain = (BTreeMap<(String, String), u64>, Vec<(String, BTreeSet<String>)>);

pub struct World {
    pub state: State,
    pub index: CandidateIndex,
    waiting: Vec<Event>,
    consumers: u128,
}

pub fn uuid(name: &str) -> ProviderUuid {
    let mut bytes = [0u8; 16];
    for (at, byte) in name.bytes().enumerate() {
        bytes[at % 16] = bytes[at % 16].wrapping_mul(31).wrapping_add(byte);
    }
    ProviderUuid(Uuid::from_bytes(bytes))
}

impl World {
    pub fn new() -> Self {
        let mut state = State::default();
        let classes = ["VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "FPGA", "VGPU", "X"];
        let traits = [SHARES, "T1", "T2", "T3", "COMPUTE_STATUS_DISABLED"];
        let genesis = Event::Genesis(Genesis {
            ledger_id: LedgerId::default(),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: classes.map(String::from).to_vec(),
            standard_traits: traits.map(String::from).to_vec(),
        });
        state.apply(1, Timestamp::from_micros(1), &genesis);
        let index = CandidateIndex::from_state(&state);
        Self { state, index, waiting: Vec::new(), consumers: 0 }
    }

    fn apply(&mut self, event: Event) {
        let next = self.state.sequence() + 1;
        self.state.apply(next, Timestamp::from_micros(next as i64), &event);
        self.waiting.push(event);
    }

    /// Ends a batch: the index takes in what happened since the last one.
    pub fn commit(&mut self) {
        let events = self.take_events();
        self.index.follow(&self.state, &events);
    }

    /// What happened since the last batch; the index will not hear of it.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.waiting)
    }

    fn generation(&self, name: &str) -> u32 {
        self.state.provider(uuid(name)).map_or(0, |row| row.generation) + 1
    }

    pub fn provider(&mut self, name: &str, parent: Option<&str>) {
        self.apply(Event::ProviderCreated(ProviderCreated {
            provider: uuid(name),
            name: name.into(),
            parent: parent.map(uuid),
            root: None,
            generation: 0,
        }));
    }

    pub fn remove(&mut self, name: &str) {
        self.apply(Event::ProviderDeleted(ProviderDeleted {
            provider: uuid(name),
            name: name.into(),
        }));
    }

    pub fn hang(&mut self, name: &str, parent: Option<&str>) {
        let row = self.state.provider(uuid(name)).expect("it exists");
        let before = row.parent.and_then(|id| self.state.provider_row(id)).map(|row| row.uuid);
        let generation = row.generation;
        self.apply(Event::ProviderUpdated(ProviderUpdated {
            provider: uuid(name),
            name_before: name.into(),
            name: name.into(),
            parent_before: before,
            parent: parent.map(uuid),
            root: None,
            generation,
        }));
    }

    pub fn inventory(&mut self, name: &str, class: &str, after: Option<Inventory>) {
        let generation = self.generation(name);
        self.apply(Event::InventoryChanged(InventoryChanged {
            provider: uuid(name),
            generation,
            changes: vec![InventoryBeforeAfter { class: class.into(), before: None, after }],
        }));
    }

    pub fn has(&mut self, name: &str, amounts: &[(&str, u32)]) {
        for &(class, total) in amounts {
            self.inventory(name, class, Some(Inventory::of(total)));
        }
    }

    pub fn traits(&mut self, name: &str, wanted: &[&str]) {
        for one in wanted {
            if self.state.traits().id(one).is_none() {
                self.apply(Event::TraitCreated(Name { name: one.to_string() }));
            }
        }
        let row = self.state.provider(uuid(name)).expect("it exists").clone();
        let before = row.traits.iter().map(|&id| self.state.traits().name(id).to_string());
        let (added, removed) = difference(before.collect(), wanted);
        let generation = self.generation(name);
        self.apply(Event::TraitsChanged(TraitsChanged {
            provider: uuid(name),
            generation,
            added,
            removed,
        }));
    }

    pub fn aggregates(&mut self, name: &str, wanted: &[&str]) {
        let row = self.state.provider(uuid(name)).expect("it exists").clone();
        let before = row.aggregates.iter().map(|&id| self.state.aggregates().name(id).to_string());
        let (added, removed) = difference(before.collect(), wanted);
        let generation = self.generation(name);
        self.apply(Event::AggregatesChanged(AggregatesChanged {
            provider: uuid(name),
            generation,
            added,
            removed,
        }));
    }

    /// A new consumer takes something.
    pub fn hold(&mut self, name: &str, class: &str, amount: u32) {
        self.consumers += 1;
        let class_id = self.state.classes().id(class).expect("it exists");
        let row = self.state.provider(uuid(name)).expect("it exists");
        let before = row.inventory(class_id).expect("there is inventory").held;
        let change = |before, after| AmountChange { class: class.into(), before, after };
        let generation = self.generation(name);
        self.apply(Event::Claimed(AllocationEvent {
            consumers: vec![ConsumerChange {
                consumer: ConsumerUuid(Uuid::from_u128(self.consumers)),
                project_id: "p".into(),
                user_id: "u".into(),
                consumer_type: None,
                owner_before: None,
                generation: Some(1),
                holdings: vec![HoldingChange {
                    provider: uuid(name),
                    amounts: vec![change(0, u64::from(amount))],
                }],
                link: None,
            }],
            providers: vec![ProviderChange {
                provider: uuid(name),
                generation,
                held: vec![change(before, before + u64::from(amount))],
            }],
            moves: Vec::new(),
            via: Via::Command,
            reason: None,
            finding: None,
            option: None,
            passed_over: Vec::new(),
            host: None,
            left: None,
        }));
    }

    /// What of a provider goes once it is free: itself, or these classes.
    pub fn retire(&mut self, name: &str, whole: bool, classes: &[&str]) {
        let after = Wishes { whole, classes: strings(classes) };
        self.apply(Event::RetirementChanged(RetirementChanged {
            provider: uuid(name),
            before: Wishes::default(),
            after,
            reason: None,
        }));
    }

    pub fn search(&mut self, query: &Query) -> Found {
        self.commit();
        search(&self.index, query).expect("all names exist")
    }

    /// How many candidates there are.
    pub fn count(&mut self, query: &Query) -> usize {
        self.plain(query).len()
    }

    /// The candidates, spelled out; that none comes twice is checked.
    pub fn plain(&mut self, query: &Query) -> Vec<Plain> {
        let found = self.search(query);
        let plain = self.spell(&found);
        let distinct: BTreeSet<_> = plain.iter().collect();
        assert_eq!(distinct.len(), plain.len(), "a candidate comes twice");
        plain
    }

    pub fn name(&self, id: u32) -> String {
        self.state.provider_row(id).expect("it exists").name.to_string()
    }

    pub fn spell(&self, found: &Found) -> Vec<Plain> {
        let mut all = Vec::new();
        for candidate in found.candidates() {
            let mut amounts = BTreeMap::new();
            for (provider, of_classes) in candidate.allocations() {
                for &(class, amount) in of_classes {
                    let class = self.state.classes().name(class).to_string();
                    let twice = amounts.insert((self.name(provider), class), amount);
                    assert_eq!(twice, None);
                }
            }
            let mapping = candidate.mappings().map(|(suffix, providers)| {
                (suffix.to_string(), providers.iter().map(|&id| self.name(id)).collect())
            });
            all.push((amounts, mapping.collect()));
        }
        all
    }
}

fn difference(before: BTreeSet<String>, wanted: &[&str]) -> (Vec<String>, Vec<String>) {
    let now: BTreeSet<String> = wanted.iter().map(|name| name.to_string()).collect();
    (now.difference(&before).cloned().collect(), before.difference(&now).cloned().collect())
}

/// A query of one group for each `(suffix, resources)`; resources as in `VCPU:1,DISK_GB:2`.
pub fn query(groups: &[(&str, &str)]) -> Query {
    Query {
        groups: groups.iter().map(|&(suffix, resources)| group(suffix, resources)).collect(),
        nested_allowed: true,
        ..Query::default()
    }
}

pub fn group(suffix: &str, resources: &str) -> Group {
    let pair = |text: &str| {
        let (class, amount) = text.split_once(':').expect("class and amount");
        (class.to_string(), amount.parse().expect("a number"))
    };
    Group {
        suffix: suffix.into(),
        resources: resources.split(',').filter(|text| !text.is_empty()).map(pair).collect(),
        ..Group::default()
    }
}

pub fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

pub fn all_of(names: &[&str]) -> TraitCondition {
    TraitCondition::AllOf(strings(names))
}
