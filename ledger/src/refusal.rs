//! Why a command is refused: one cause, and what was lacking where.

mod holders;

pub use holders::{Holder, Holders};

use crate::event::MoveState;
use crate::ids::{ConsumerUuid, MoveId, ProviderUuid};
use serde::{Deserialize, Serialize};

/// A refusal: nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Why.
    pub cause: Cause,
    /// What was lacking where, at most [`crate::limits::SHORTAGES`]; the first is the one that
    /// Placement would name.
    pub shortages: Vec<Shortage>,
    /// Options that were passed over, at most [`crate::limits::OPTIONS_TOLD`].
    pub passed_over: Vec<PassedOver>,
    /// How many options were tried; 0: it had none.
    pub options: u32,
    /// Who holds what stands in its way.
    pub held_by: Option<Box<Holders>>,
    /// The move it was about.
    pub move_id: Option<MoveId>,
    /// Which command of the list was refused, counted from 0.
    pub index: u32,
    /// How many names of classes, providers or traits the cause lacks, because the record of it has
    /// no room for them. Only a command with an id is answered a cause that was cut.
    pub left_out: u32,
}

impl Refusal {
    /// A refusal that needs no figures.
    pub fn because(cause: Cause) -> Self {
        Self {
            cause,
            shortages: Vec::new(),
            passed_over: Vec::new(),
            options: 0,
            held_by: None,
            move_id: None,
            index: 0,
            left_out: 0,
        }
    }

    /// The same with those who hold what stands in its way.
    #[must_use]
    pub fn held_by(self, holders: Holders) -> Self {
        Self { held_by: Some(Box::new(holders)), ..self }
    }
}

impl From<Cause> for Refusal {
    fn from(cause: Cause) -> Self {
        Self::because(cause)
    }
}

/// Why a command is refused. The names are stable: clients and stored events use them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Not enough left; see the shortages.
    Capacity,
    /// `min_unit`, `max_unit` or `step_size` forbids the amount; see the shortages.
    Constraint,
    /// A provider or inventory is to go once it is free, so that no more of it can be claimed; see
    /// the shortages.
    Retiring,
    /// A provider has no inventory of a class.
    NoInventory {
        /// The classes: all of the request if the providers have none of them, else the one.
        classes: Vec<String>,
        /// The providers.
        providers: Vec<ProviderUuid>,
    },
    /// None of the options fits; see what was passed over.
    NoOptionFits,
    /// A search found no candidate.
    NoCandidate {
        /// The query, cut to [`crate::limits::QUERY_TOLD_BYTES`].
        query: String,
        /// How many were left after each of its conditions, in words.
        steps: Vec<String>,
    },
    /// The server has to search, or search again: what was found does not fit, and since then
    /// there may be room elsewhere. Never recorded, and no client is answered this.
    SearchAgain,
    /// The option is on a host that is to be ignored.
    HostIgnored {
        /// The root of its tree.
        host: ProviderUuid,
    },
    /// The option is on the consumer's own host, and only a resize may stay there.
    SameHost {
        /// The root of its tree.
        host: ProviderUuid,
    },
    /// The host is on neither side of the move.
    NotOnMove {
        /// The host.
        host: ProviderUuid,
    },
    /// No such provider.
    ProviderNotFound {
        /// Its id.
        provider: ProviderUuid,
    },
    /// The id is taken.
    ProviderExists {
        /// The id.
        provider: ProviderUuid,
    },
    /// The name is taken.
    ProviderNameExists {
        /// The name.
        name: String,
    },
    /// A provider's name is empty or too long.
    ProviderNameInvalid,
    /// The parent does not exist.
    ParentNotFound {
        /// Its id.
        parent: ProviderUuid,
    },
    /// A new provider names itself as its parent.
    ParentIsSelf,
    /// The parent may not be changed at this microversion.
    ReparentForbidden,
    /// The parent may not be taken away at this microversion.
    UnparentForbidden,
    /// The new parent is the provider itself or below it.
    Loop,
    /// The provider has children.
    ProviderHasChildren,
    /// The provider has allocations.
    ProviderInUse,
    /// A project would hold more of a class than it may.
    Quota {
        /// Whose.
        project_id: String,
        /// Of what.
        class: String,
        /// How much it may hold, in the class's unit.
        limit: u64,
        /// How much it holds now.
        held: u64,
        /// How much it would hold.
        after: u64,
    },
    /// Providers that were to go all at once cannot: some have allocations, or children that stay.
    CannotRetire {
        /// How many were to go.
        total: u64,
        /// How many of them have allocations.
        in_use: u64,
        /// How many of them have children that stay.
        with_children: u64,
        /// The first of both, at most [`crate::limits::PROVIDERS_TOLD`].
        providers: Vec<ProviderUuid>,
    },
    /// The provider's generation is not what the caller thinks.
    ProviderGeneration {
        /// Whose.
        provider: ProviderUuid,
        /// What it is.
        current: u32,
        /// What the caller gave.
        given: u32,
    },
    /// The consumer's generation is not what the caller thinks.
    ConsumerGeneration {
        /// Whose.
        consumer: ConsumerUuid,
        /// What it is; none: it holds nothing, use null.
        current: Option<u32>,
        /// What the caller gave.
        given: Option<u32>,
    },
    /// The provider has an inventory of the class already.
    InventoryExists {
        /// The class.
        class: String,
    },
    /// The provider has no inventory of the class.
    InventoryNotFound {
        /// The class.
        class: String,
    },
    /// An inventory that consumers use would go.
    InventoryInUse {
        /// The classes, in the order of their ids.
        classes: Vec<String>,
    },
    /// `(total - reserved) * allocation_ratio` is below what is allowed.
    InventoryCapacity {
        /// The class.
        class: String,
    },
    /// An inventory's field is outside its limits.
    InventoryInvalid {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// No such resource class.
    ClassNotFound {
        /// Its name.
        class: String,
    },
    /// The class exists.
    ClassExists {
        /// Its name.
        class: String,
    },
    /// An inventory uses the class.
    ClassInUse {
        /// Its name.
        class: String,
    },
    /// Standard classes can be neither changed nor removed.
    ClassStandard {
        /// Its name.
        class: String,
    },
    /// No such traits.
    TraitsNotFound {
        /// Their names, sorted.
        traits: Vec<String>,
    },
    /// The trait exists.
    TraitExists {
        /// Its name.
        name: String,
    },
    /// A provider has the trait.
    TraitInUse {
        /// Its name.
        name: String,
    },
    /// Standard traits cannot be removed.
    TraitStandard {
        /// Its name.
        name: String,
    },
    /// A name does not have the form it needs.
    NameInvalid {
        /// The name.
        name: String,
    },
    /// The consumer holds nothing.
    HoldsNothing {
        /// Who.
        consumer: ConsumerUuid,
    },
    /// The consumer holds something already.
    HoldsAlready {
        /// Who.
        consumer: ConsumerUuid,
    },
    /// The consumer holds less of a class on a provider than it was to let go of.
    HoldsLess {
        /// Who.
        consumer: ConsumerUuid,
        /// Where.
        provider: ProviderUuid,
        /// Of what.
        class: String,
        /// What it holds there.
        held: u32,
        /// What it was to let go of.
        asked: u32,
    },
    /// The consumer holds nothing of the provider.
    HoldsNothingThere {
        /// Who.
        consumer: ConsumerUuid,
        /// Where.
        provider: ProviderUuid,
    },
    /// No move of that consumer is on record.
    MoveNotFound {
        /// Who.
        consumer: ConsumerUuid,
    },
    /// The move's state does not allow it.
    MoveState {
        /// The move.
        #[serde(rename = "move")]
        move_id: MoveId,
        /// Where it stands.
        state: MoveState,
        /// What was wanted of it.
        wanted: String,
    },
    /// The move cannot end on this side: nothing of it is held any more.
    NothingLeft {
        /// The move.
        #[serde(rename = "move")]
        move_id: MoveId,
        /// `source` or `destination`.
        side: String,
    },
    /// The command says nothing, or the same thing twice.
    Malformed {
        /// What is wrong.
        what: String,
    },
    /// A defect of this program: the command panicked while it was decided, and nothing of it was
    /// done.
    Internal {
        /// The log tells more beside it.
        id: uuid::Uuid,
    },
    /// The command id was used for another command.
    CommandIdReused {
        /// The sequence of the first event of that command.
        sequence: u64,
    },
    /// A limit of `limits.rs`.
    TooLarge {
        /// What is too large.
        what: String,
        /// The limit.
        limit: u64,
    },
}

impl Cause {
    /// Its name as it is stored and answered.
    pub fn name(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Makes it smaller for a record that has a limit: the longer half of a list of names goes, or
    /// of a text. Returns how many names went, and 1 for a text; 0: it cannot be made smaller.
    pub(crate) fn shorten(&mut self) -> u32 {
        fn halve<T>(list: &mut Vec<T>) -> u32 {
            let left_out = list.len() / 2;
            list.truncate(list.len() - left_out);
            u32::try_from(left_out).unwrap_or(u32::MAX)
        }
        match self {
            Self::NoInventory { classes, providers } => halve(classes) + halve(providers),
            Self::CannotRetire { providers, .. } => halve(providers),
            Self::InventoryInUse { classes } => halve(classes),
            Self::TraitsNotFound { traits } => halve(traits),
            Self::NoCandidate { steps, .. } => halve(steps),
            Self::Malformed { what } if what.len() > 256 => {
                let most = what.len() / 2;
                let cut = (0..=most).rev().find(|&at| what.is_char_boundary(at)).unwrap_or(0);
                what.truncate(cut);
                1
            }
            _ => 0,
        }
    }

    /// Whether it depends on the state in a way that is worth a record without a command id:
    /// capacity, constraints, a move's state. Not-found and generation conflicts only count.
    pub fn is_recorded(&self) -> bool {
        matches!(
            self,
            Self::Capacity
                | Self::Constraint
                | Self::Retiring
                | Self::CannotRetire { .. }
                | Self::Quota { .. }
                | Self::NoInventory { .. }
                | Self::NoOptionFits
                | Self::NoCandidate { .. }
                | Self::HostIgnored { .. }
                | Self::SameHost { .. }
                | Self::MoveState { .. }
                | Self::NothingLeft { .. }
                | Self::HoldsAlready { .. }
                | Self::HoldsLess { .. }
                | Self::HoldsNothingThere { .. }
        )
    }
}

/// What was lacking for one class on one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// Where.
    pub provider: ProviderUuid,
    /// Of what.
    pub class: String,
    /// What the command writes there in all, in the class's unit.
    pub needed: u64,
    /// What was free for it: the capacity less what all others hold; below 0 on an overcommitted
    /// provider.
    pub free: i64,
    /// What forbade it.
    pub cause: ShortageCause,
}

/// What forbade an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortageCause {
    /// More would be held than there is.
    Capacity,
    /// The amount is below this `min_unit`.
    MinUnit(u32),
    /// The amount is above this `max_unit`.
    MaxUnit(u32),
    /// The amount is no multiple of this `step_size`.
    StepSize(u32),
    /// The provider has no inventory of the class.
    NoInventory,
    /// The inventory, or its provider, is to go once it is free.
    Retiring,
}

/// An option that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// Which, counted from 0.
    pub option: u32,
    /// Why.
    pub cause: Cause,
    /// What was lacking where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortages: Vec<Shortage>,
}
