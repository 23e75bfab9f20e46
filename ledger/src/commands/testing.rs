//! `check(given, when, then)` for the tests of commands: given a state, when a command, then
//! events or a refusal.

use crate::amounts::{Holding, Inventory};
use crate::command::*;
use crate::decide::{Decided, decide};
use crate::event::{Event, Move};
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::refusal::Refusal;
use crate::stamp::{Actor, Stamp};
use crate::state::State;
use crate::time::Timestamp;
use uuid::Uuid;

pub(crate) fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xa000_0000 + number))
}

pub(crate) fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xc000_0000 + number))
}

/// `[(provider number, [(class, amount)])]`
pub(crate) fn holding(parts: &[(u128, &[(&str, u32)])]) -> Holding {
    let mut holding = Holding::new();
    for (number, amounts) in parts {
        for (class, amount) in *amounts {
            holding.entry(provider(*number)).or_default().insert((*class).to_owned(), *amount);
        }
    }
    holding
}

/// A ledger in the hand: a state, and commands decided on it one after the other.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
    pub(crate) request_id: Option<String>,
    pub(crate) stamps: u8,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut state = State::default();
        let genesis = crate::event::Genesis {
            ledger_id: Default::default(),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: ["VCPU", "MEMORY_MB", "DISK_GB", "VGPU"].map(str::to_owned).to_vec(),
            standard_traits: ["MISC_SHARES_VIA_AGGREGATE", "HW_X"].map(str::to_owned).to_vec(),
        };
        state.apply(1, Timestamp::from_micros(1), &Event::Genesis(genesis));
        Self { state, events: Vec::new(), request_id: None, stamps: 0 }
    }

    /// A provider with inventories of these totals, ratio 1.
    pub(crate) fn host(mut self, number: u128, totals: &[(&str, u32)]) -> Self {
        let uuid = provider(number);
        let name = format!("host{number}");
        self.ok(Command::CreateProvider(CreateProvider { uuid, name, parent: None }));
        let all = totals.iter().map(|(class, total)| ((*class).into(), Inventory::of(*total)));
        self.ok(Command::ChangeInventories(ChangeInventories {
            provider: uuid,
            generation: None,
            change: InventoryChange::ReplaceAll(all.collect()),
            may_reserve_all: true,
        }));
        self
    }

    pub(crate) fn stamp(&mut self) -> Stamp {
        self.stamps = self.stamps.wrapping_add(1);
        Stamp {
            seed: [self.stamps; 16],
            received_at: Timestamp::from_micros(i64::from(self.stamps) * 1_000_000),
            actor: Actor::default(),
            request_id: self.request_id.clone(),
            command_id: None,
        }
    }

    pub(crate) fn list(&mut self, commands: &[Command]) -> Result<Decided, Refusal> {
        let stamp = self.stamp();
        let before = self.state.digest();
        let decided = decide(&self.state, commands, &stamp, stamp.received_at);
        assert_eq!(self.state.digest(), before, "deciding changes nothing");
        let decided = decided?;
        // Replay equals live.
        let mut replayed = self.state.clone();
        for event in &decided.events {
            let body = event.encode_body().unwrap();
            let event = Event::decode(event.kind(), event.schema(), &body).unwrap();
            replayed.apply(replayed.sequence() + 1, stamp.received_at, &event);
        }
        assert_eq!(replayed.digest(), decided.state.digest(), "replay equals live");
        decided.state.check_invariants().unwrap();
        self.state = decided.state.clone();
        self.events.extend(decided.events.iter().cloned());
        Ok(decided)
    }

    pub(crate) fn try_(&mut self, command: Command) -> Result<Decided, Refusal> {
        self.list(&[command])
    }

    pub(crate) fn ok(&mut self, command: Command) -> Decided {
        self.try_(command.clone()).unwrap_or_else(|refusal| panic!("{command:?}: {refusal:?}"))
    }

    /// The kinds of events that a command leads to.
    pub(crate) fn kinds(&mut self, command: Command) -> Vec<&'static str> {
        self.ok(command).events.iter().map(Event::kind).collect()
    }

    pub(crate) fn refused(&mut self, command: Command) -> Refusal {
        match self.try_(command.clone()) {
            Ok(decided) => panic!("{command:?} gave {:?}", decided.events),
            Err(refusal) => refusal,
        }
    }

    /// What is held of a class on a host.
    pub(crate) fn held(&self, host: u128, class: &str) -> u64 {
        let class = self.state.classes().id(class).unwrap();
        self.state.provider(provider(host)).unwrap().inventory(class).unwrap().held
    }

    pub(crate) fn holds(&self, number: u128) -> Holding {
        self.state.holding_of(consumer(number))
    }

    /// The latest move of an instance.
    pub(crate) fn latest_move(&self, instance: u128) -> Move {
        let moves = self.state.moves().of(consumer(instance));
        moves.max_by_key(|entry| entry.changed_sequence).expect("a move").this.clone()
    }

    pub(crate) fn last_body(&self) -> crate::event::AllocationEvent {
        let event = self.events.last().unwrap();
        event.allocations().unwrap_or_else(|| panic!("{event:?} is no allocation event")).clone()
    }
}

pub(crate) fn claim(number: u128, options: &[Holding]) -> Command {
    Command::Claim(Claim {
        consumer: consumer(number),
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type: Some("INSTANCE".into()),
        options: options.to_vec(),
        candidates: None,
        searched: None,
    })
}

pub(crate) fn to_migration(instance: u128, migration: u128) -> Command {
    Command::MoveToMigration(MoveToMigration {
        consumer: consumer(instance),
        migration: consumer(migration),
        kind: MoveKind::Resize,
    })
}

pub(crate) fn double_up(instance: u128, options: &[Holding]) -> Command {
    Command::DoubleUp(DoubleUp {
        consumer: consumer(instance),
        kind: MoveKind::Evacuation,
        options: options.to_vec(),
    })
}

pub(crate) fn reschedule(instance: u128, reason: &str, options: &[Holding]) -> Command {
    Command::Reschedule(Reschedule {
        consumer: consumer(instance),
        move_id: None,
        reason: reason.into(),
        options: options.to_vec(),
        candidates: None,
        searched: None,
    })
}

pub(crate) fn resize(instance: u128, migration: u128, options: &[Holding]) -> Command {
    Command::Resize(Resize {
        consumer: consumer(instance),
        migration: consumer(migration),
        kind: MoveKind::Resize,
        options: options.to_vec(),
        candidates: None,
        searched: None,
        ignore_hosts: Vec::new(),
        max_attempts: 3,
    })
}

pub(crate) fn host_changed(instance: u128, host: u128) -> Command {
    let host = provider(host);
    Command::HostChanged(HostChanged { consumer: consumer(instance), move_id: None, host })
}

pub(crate) fn fail(instance: u128, reason: &str) -> Command {
    let reason = reason.into();
    Command::Fail(Fail { consumer: consumer(instance), move_id: None, reason })
}

pub(crate) fn confirm(instance: u128) -> Command {
    Command::Confirm(Confirm { consumer: consumer(instance), move_id: None })
}

pub(crate) fn revert(instance: u128) -> Command {
    Command::Revert(Revert { consumer: consumer(instance), move_id: None, reason: None })
}

pub(crate) fn release(number: u128, ended: bool) -> Command {
    Command::Release(Release { consumer: consumer(number), ended, reason: None })
}

pub(crate) fn write(number: u128, allocations: Holding) -> ConsumerWrite {
    ConsumerWrite {
        consumer: consumer(number),
        allocations,
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type: None,
        generation: GenerationCheck::Unchecked,
    }
}

pub(crate) fn put(number: u128, allocations: Holding) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        via: Via::Put,
        consumers: vec![write(number, allocations)],
    })
}

pub(crate) fn post(writes: &[(u128, Holding)]) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        via: Via::Post,
        consumers: writes.iter().map(|(number, after)| write(*number, after.clone())).collect(),
    })
}

pub(crate) fn delete(number: u128) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        via: Via::Delete,
        consumers: vec![write(number, Holding::new())],
    })
}

/// An inventory gets another total, whatever is held of it.
pub(crate) fn shrink(host: u128, class: &str, total: u32) -> Command {
    Command::ChangeInventories(ChangeInventories {
        provider: provider(host),
        generation: None,
        change: InventoryChange::Update(class.into(), Inventory::of(total)),
        may_reserve_all: true,
    })
}

/// An inventory gets another total and other units: smallest and largest amount, and step.
pub(crate) fn units(host: u128, class: &str, total: u32, units: (u32, u32, u32)) -> Command {
    let (min_unit, max_unit, step_size) = units;
    let inventory = Inventory { min_unit, max_unit, step_size, ..Inventory::of(total) };
    Command::ChangeInventories(ChangeInventories {
        provider: provider(host),
        generation: None,
        change: InventoryChange::Update(class.into(), inventory),
        may_reserve_all: true,
    })
}
