//! A small cloud: three hosts, each with a child for devices, a storage that lends to all, a
//! network card that is a tree of its own; and a ledger in the hand.

use crate::amounts::Inventory;
use crate::command::*;
use crate::decide::decide;
use crate::event::Event;
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::stamp::{Actor, Stamp};
use crate::state::State;
use crate::time::Timestamp;
use uuid::Uuid;

pub(super) const SERVERS: u128 = 4;
pub(super) const HOSTS: u128 = 3;
/// Lends its disk to all hosts.
pub(super) const STORAGE: u128 = 3;
/// Bandwidth for ports.
pub(super) const CARD: u128 = 4;
/// The device provider of host 0; the others follow.
pub(super) const DEVICES: u128 = 5;
/// Migration consumers of each server, so that moves can follow on moves.
pub(super) const MIGRATIONS: u128 = 2;
pub(super) const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";
pub(super) const BANDWIDTH: &str = "NET_BW_EGR_KILOBIT_PER_SEC";

pub(super) fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xa0 + number))
}

pub(super) fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xc000 + number))
}

pub(super) fn migration(who: u128, which: u128) -> u128 {
    SERVERS * (1 + which) + who
}

/// A state, and commands that are decided on it one after the other.
pub(super) struct World {
    pub(super) state: State,
    number: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let classes = ["VCPU", "DISK_GB", "VGPU", BANDWIDTH];
        let genesis = crate::event::Genesis {
            ledger_id: Default::default(),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: classes.map(str::to_owned).to_vec(),
            standard_traits: vec![SHARES.to_owned()],
        };
        let mut state = State::default();
        state.apply(1, Timestamp::from_micros(1), &Event::Genesis(genesis));
        let mut world = Self { state, number: 1 };
        world.begin(Command::CreateResourceClass(Named { name: "CUSTOM_A".into() }));
        for host in 0..HOSTS {
            world.provider(host, None, &["VCPU"]);
        }
        world.provider(STORAGE, None, &["DISK_GB"]);
        world.provider(CARD, None, &[BANDWIDTH]);
        for host in 0..HOSTS {
            world.provider(DEVICES + host, Some(host), &["VGPU", "CUSTOM_A"]);
        }
        let traits = vec![SHARES.to_owned()];
        let storage = provider(STORAGE);
        world.begin(Command::SetTraits(SetTraits { provider: storage, generation: None, traits }));
        world
    }

    fn provider(&mut self, number: u128, parent: Option<u128>, classes: &[&str]) {
        let (uuid, parent) = (provider(number), parent.map(provider));
        self.begin(Command::CreateProvider(CreateProvider {
            uuid,
            name: format!("{number}"),
            parent,
        }));
        let all = classes.iter().map(|class| ((*class).to_owned(), Inventory::of(6)));
        self.begin(Command::ChangeInventories(ChangeInventories {
            provider: uuid,
            generation: None,
            change: InventoryChange::ReplaceAll(all.collect()),
            may_reserve_all: true,
        }));
    }

    fn begin(&mut self, command: Command) {
        self.decide(&command, None).expect("a beginning");
    }

    /// Decides a command and takes its events in; none: it is refused.
    pub(super) fn decide(
        &mut self,
        command: &Command,
        request_id: Option<&str>,
    ) -> Option<Decided> {
        self.number += 1;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.number.to_be_bytes());
        let now = Timestamp::from_micros(self.number as i64);
        let stamp = Stamp {
            seed,
            received_at: now,
            actor: Actor::default(),
            request_id: request_id.map(str::to_owned),
            command_id: None,
        };
        let decided = decide(&self.state, std::slice::from_ref(command), &stamp, now).ok()?;
        let before = std::mem::replace(&mut self.state, decided.state);
        Some(Decided { before, events: decided.events, now })
    }

    /// The same world, to try something on.
    pub(super) fn copy(&self) -> Self {
        Self { state: self.state.clone(), number: self.number }
    }

    /// The world after a command, if that is accepted.
    pub(super) fn accepts(&self, command: &Command) -> Option<Self> {
        let mut trial = self.copy();
        trial.decide(command, None).map(|_| trial)
    }
}

/// A command that was accepted.
pub(super) struct Decided {
    pub(super) before: State,
    pub(super) events: Vec<Event>,
    now: Timestamp,
}

impl Decided {
    /// The state that a replay of the events as stored leads to.
    pub(super) fn replayed(&self) -> State {
        let mut state = self.before.clone();
        for event in &self.events {
            let body = event.encode_body().expect("it can be stored");
            let event = Event::decode(event.kind(), event.schema(), &body).expect("it is an event");
            state.apply(state.sequence() + 1, self.now, &event);
        }
        state
    }
}
