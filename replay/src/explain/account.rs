//! One (provider, class) at one moment: what there is, what is held, and by whom.

use crate::roles::{self, Role, kind_word};
use crate::shown::shown;
use crate::units::{amount, ratio, span};
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use ledger::state::{ClassId, MoveEntry, ProviderId, State};
use ledger::time::Timestamp;
use serde::Serialize;

/// How many holders are named one by one.
const NAMED: usize = 8;

/// What there is and what is held of a class on a provider.
#[derive(Clone, Serialize)]
pub(super) struct Account {
    /// Where.
    pub provider: ProviderUuid,
    /// The provider's name then.
    pub provider_name: String,
    /// Of what.
    pub class: String,
    /// Units there are.
    pub total: u32,
    /// Units kept back.
    pub reserved: u32,
    /// Overcommit.
    pub allocation_ratio: f64,
    /// (total - reserved) * ratio.
    pub capacity: f64,
    /// What is held.
    pub held: u64,
}

impl Account {
    /// The account; none if the provider or its inventory is not there.
    pub fn of(state: &State, provider: ProviderUuid, class: &str) -> Option<Self> {
        let row = state.provider(provider)?;
        let inventory = row.inventory(state.classes().id(class)?)?;
        Some(Self {
            provider,
            provider_name: shown(&row.name),
            class: class.to_owned(),
            total: inventory.inventory.total,
            reserved: inventory.inventory.reserved,
            allocation_ratio: inventory.inventory.allocation_ratio,
            capacity: inventory.inventory.capacity(),
            held: inventory.held,
        })
    }

    /// Capacity cut off to whole units.
    pub fn capacity_shown(&self) -> i128 {
        self.capacity as i128
    }

    /// What is free; below 0 on an overcommitted provider.
    pub fn free(&self) -> i128 {
        self.capacity_shown() - i128::from(self.held)
    }

    /// `1028 GB = (total 1028 - reserved 0) x ratio 1.0`
    pub fn capacity_words(&self) -> String {
        format!(
            "{} = (total {} - reserved {}) x ratio {}",
            amount(&self.class, self.capacity_shown()),
            self.total,
            self.reserved,
            ratio(self.allocation_ratio)
        )
    }
}

/// Who holds something of a (provider, class), the biggest first.
#[derive(Serialize)]
pub(super) struct Holders {
    /// The biggest ones.
    pub biggest: Vec<Holder>,
    /// How many more there are ...
    pub others: usize,
    /// ... and what they have together.
    pub others_amount: u64,
}

/// One who holds something.
#[derive(Serialize)]
pub(super) struct Holder {
    /// Who.
    pub consumer: ConsumerUuid,
    /// What it is.
    pub role: Role,
    /// How much it has.
    pub amount: u64,
    /// The move in flight that it is part of.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// What it holds it for, if a move in flight tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Only the larger side of its move counts.
    pub overlap_max: bool,
}

impl Holders {
    /// The holders at the moment `now`.
    pub fn of(state: &State, provider: ProviderUuid, class: &str, now: Timestamp) -> Self {
        let mut all = amounts(state, provider, class).unwrap_or_default();
        all.sort_by_key(|&(consumer, amount)| (std::cmp::Reverse(amount), consumer));
        let others = all.split_off(all.len().min(NAMED));
        Self {
            biggest: all
                .into_iter()
                .map(|(consumer, amount)| holder(state, provider, consumer, amount, now))
                .collect(),
            others: others.len(),
            others_amount: others.iter().map(|(_, amount)| amount).sum(),
        }
    }
}

fn amounts(state: &State, provider: ProviderUuid, class: &str) -> Option<Vec<(ConsumerUuid, u64)>> {
    let (provider, class): (ProviderId, ClassId) =
        (state.provider_id(provider)?, state.classes().id(class)?);
    let amounts =
        state.holders(provider).map(|row| (row.uuid, u64::from(row.amount(provider, class))));
    Some(amounts.filter(|&(_, amount)| amount > 0).collect())
}

fn holder(
    state: &State,
    provider: ProviderUuid,
    consumer: ConsumerUuid,
    amount: u64,
    now: Timestamp,
) -> Holder {
    let (role, entry) = roles::role(state, consumer);
    let live = entry.filter(|entry| entry.this.state.is_live());
    Holder {
        consumer,
        role,
        amount,
        move_id: live.map(|entry| entry.this.id),
        purpose: live.map(|entry| purpose(entry, role, provider, now)),
        overlap_max: state.consumer(consumer).is_some_and(|row| row.link.is_some()),
    }
}

/// `source of the resize of instance I, in flight for 3 min 2 s`
fn purpose(entry: &MoveEntry, role: Role, provider: ProviderUuid, now: Timestamp) -> String {
    let this = &entry.this;
    let (source, destination) =
        (this.source.contains_key(&provider), this.destination.contains_key(&provider));
    let side = match role {
        Role::Migration => "source",
        _ if this.migration.is_some() => "destination",
        _ if source && destination => "source and destination",
        _ if source => "source",
        _ => "destination",
    };
    let whose = match role {
        Role::Migration => format!("the {} of instance {}", kind_word(this.kind), this.instance),
        _ => format!("its {}", kind_word(this.kind)),
    };
    format!("{side} of {whose}, move {}, in flight for {}", this.id, span(entry.opened_at, now))
}
