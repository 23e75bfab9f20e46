//! Events: facts in the past tense, never changed. Each carries what it changed before and after,
//! so that a view can be folded from events alone and history reads by itself.
//!
//! Bodies are named-field MessagePack. A field may be added with `#[serde(default)]`; anything
//! else needs a new schema version and an upcaster. No `flatten`, `untagged` or internal tags:
//! they make MessagePack ambiguous.

use crate::amounts::{Holding, Inventory};
use crate::command::{Limit, MoveKind, OverlapClasses, SameHostMoves, Via};
use crate::ids::{ConsumerUuid, LedgerId, LinkId, MoveId, ProviderUuid};
use crate::record::Hash;
use crate::refusal::{Cause, Holders, PassedOver, Shortage};
use serde::{Deserialize, Serialize};

/// Declares the event enum, its kinds as they stand in headers, and their schema versions.
macro_rules! events {
    ($($(#[$doc:meta])* $kind:ident($body:ty) = $schema:literal,)*) => {
        /// A fact. The variant's name is the `kind` in its record's header.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $kind($body),)*
        }

        impl Event {
            /// The kind, as it stands in the header.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => stringify!($kind),)*
                }
            }

            /// The version of this kind's body.
            pub fn schema(&self) -> u16 {
                match self {
                    $(Self::$kind(_) => $schema,)*
                }
            }

            /// The body as stored.
            pub fn encode_body(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
                match self {
                    $(Self::$kind(body) => rmp_serde::to_vec_named(body),)*
                }
            }

            /// The event of a stored body.
            ///
            /// # Errors
            /// [`DecodeError`] if this program does not know the kind or its schema, or if the
            /// bytes are no body of it.
            pub fn decode(kind: &str, schema: u16, body: &[u8]) -> Result<Self, DecodeError> {
                match kind {
                    $(stringify!($kind) if schema <= $schema => rmp_serde::from_slice(body)
                        .map(Self::$kind)
                        .map_err(|error| DecodeError::Body { kind: kind.into(), schema, error: error.to_string() }),)*
                    _ => Err(DecodeError::Unknown { kind: kind.into(), schema }),
                }
            }

            /// The body as JSON, for people and for HTTP.
            pub fn body_json(&self) -> serde_json::Value {
                match self {
                    $(Self::$kind(body) => serde_json::to_value(body).unwrap_or(serde_json::Value::Null),)*
                }
            }

            /// All kinds this program knows, with their schema versions.
            pub const KINDS: &'static [(&'static str, u16)] = &[$((stringify!($kind), $schema),)*];
        }
    };
}

/// Why a stored body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer program: a fold stops here, history and verify go on.
    #[error("event kind {kind} with schema {schema} is not known to this version")]
    Unknown {
        /// The kind in the header.
        kind: String,
        /// The schema in the header.
        schema: u16,
    },
    /// The bytes are damaged.
    #[error("the body of a {kind} event (schema {schema}) is damaged: {error}")]
    Body {
        /// The kind in the header.
        kind: String,
        /// The schema in the header.
        schema: u16,
        /// What the decoder said.
        error: String,
    },
}

events! {
    /// The first record of every ledger.
    Genesis(Genesis) = 1,
    /// A consumer without allocations got some; also the destination of a move.
    Claimed(AllocationEvent) = 1,
    /// A consumer holds a destination beside its source.
    DoubledUp(AllocationEvent) = 1,
    /// The source went to a migration consumer: a move opened.
    MovedToMigration(AllocationEvent) = 1,
    /// A destination was given up: the move is open again.
    DestinationReleased(AllocationEvent) = 1,
    /// The server of a move is on its destination, or back on its source: which half goes if the
    /// move fails is decided by this.
    HostChanged(AllocationEvent) = 1,
    /// The source came back.
    Reverted(AllocationEvent) = 1,
    /// The source went, the destination stays.
    Confirmed(AllocationEvent) = 1,
    /// A consumer let go of everything.
    Released(AllocationEvent) = 1,
    /// Any other replacement.
    Reallocated(AllocationEvent) = 1,
    /// A resource provider was made.
    ProviderCreated(ProviderCreated) = 1,
    /// A provider's name or parent changed.
    ProviderUpdated(ProviderUpdated) = 1,
    /// A provider was removed, with its inventories and associations.
    ProviderDeleted(ProviderDeleted) = 1,
    /// A provider's inventories changed.
    InventoryChanged(InventoryChanged) = 1,
    /// A provider, or some of what it has, is to go once nobody holds anything of it, or no longer.
    RetirementChanged(RetirementChanged) = 1,
    /// Limits of what a project, or each project, holds changed.
    QuotaChanged(QuotaChanged) = 1,
    /// A provider's traits changed.
    TraitsChanged(TraitsChanged) = 1,
    /// A provider's aggregates changed.
    AggregatesChanged(AggregatesChanged) = 1,
    /// Inventories and allocations changed at once.
    Reshaped(Reshaped) = 1,
    /// A custom trait was made.
    TraitCreated(Name) = 1,
    /// A custom trait was removed.
    TraitDeleted(Name) = 1,
    /// A custom resource class was made.
    ResourceClassCreated(Name) = 1,
    /// A custom resource class has another name.
    ResourceClassRenamed(Renamed) = 1,
    /// A custom resource class was removed.
    ResourceClassDeleted(Name) = 1,
    /// A command was refused because of the state it met, or it came with an id.
    Rejected(Rejected) = 1,
    /// More refusals came than are recorded one by one.
    RefusalsSuppressed(RefusalsSuppressed) = 1,
    /// A search for allocation candidates found nothing.
    SearchFailed(SearchFailed) = 1,
    /// A command with an id changed nothing.
    Answered(Answered) = 1,
    /// An option that decisions depend on changed.
    SettingsChanged(Settings) = 1,
    /// A view that had stopped at an event was let go on behind it.
    EventSkipped(EventSkipped) = 1,
    /// The private part of a record was erased.
    Erased(Erased) = 1,
}

/// The pattern of the eight kinds whose body is an [`AllocationEvent`], for matches that name every
/// kind. Who needs only the body has [`Event::allocations`].
#[macro_export]
macro_rules! allocation_event {
    ($body:pat) => {
        $crate::event::Event::Claimed($body)
            | $crate::event::Event::DoubledUp($body)
            | $crate::event::Event::MovedToMigration($body)
            | $crate::event::Event::DestinationReleased($body)
            | $crate::event::Event::HostChanged($body)
            | $crate::event::Event::Reverted($body)
            | $crate::event::Event::Confirmed($body)
            | $crate::event::Event::Released($body)
            | $crate::event::Event::Reallocated($body)
    };
}

impl Event {
    /// What it says of allocations, a reshape's part about them included; none for kinds that
    /// change none.
    pub fn allocations(&self) -> Option<&AllocationEvent> {
        match self {
            allocation_event!(body) => Some(body),
            Self::Reshaped(body) => Some(&body.allocations),
            _ => None,
        }
    }

    pub(crate) fn allocations_mut(&mut self) -> Option<&mut AllocationEvent> {
        match self {
            allocation_event!(body) => Some(body),
            _ => None,
        }
    }

    /// The providers whose own figures it changes: what they are, have or are used for.
    pub fn providers(&self) -> Vec<ProviderUuid> {
        let used = self.allocations().map_or(&[][..], |body| &body.providers);
        let mut changed: Vec<ProviderUuid> = used.iter().map(|change| change.provider).collect();
        match self {
            Self::ProviderCreated(body) => changed.push(body.provider),
            Self::ProviderUpdated(body) => changed.push(body.provider),
            Self::ProviderDeleted(body) => changed.push(body.provider),
            Self::InventoryChanged(body) => changed.push(body.provider),
            Self::RetirementChanged(body) => changed.push(body.provider),
            Self::TraitsChanged(body) => changed.push(body.provider),
            Self::AggregatesChanged(body) => changed.push(body.provider),
            Self::Reshaped(body) => {
                changed.extend(body.inventories.iter().map(|change| change.provider));
            }
            _ => {}
        }
        changed
    }
}

/// The first record of every ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Genesis {
    /// The ledger's id, as in every header.
    pub ledger_id: LedgerId,
    /// How hashes are made.
    pub hash: String,
    /// How bodies are written.
    pub encoding: String,
    /// The sequence before the first record: 0, or where an import goes on.
    pub base_sequence: u64,
    /// The hash of the record before the first.
    pub base_hash: Hash,
    /// The digest of the state that history starts from.
    pub base_state_digest: Hash,
    /// Resource classes that exist from the start, in the order of their ids.
    pub standard_classes: Vec<String>,
    /// Traits that exist from the start.
    pub standard_traits: Vec<String>,
}

/// What the events of allocations have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationEvent {
    /// Each consumer whose holding changed.
    pub consumers: Vec<ConsumerChange>,
    /// Each provider whose generation or usage changed.
    pub providers: Vec<ProviderChange>,
    /// The moves it touched, as they stand after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Which call it came by.
    pub via: Via,
    /// Why, if the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Something an operator should look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// Which of the ordered options was taken, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u32>,
    /// The other options that were tried, and why each was passed over (32 at most).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
    /// The host of what was claimed: the root of the providers, sharing ones aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<ProviderUuid>,
    /// In the last event of a `release_all`: how many consumers still hold something of its
    /// provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
}

/// One consumer's holding before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsumerChange {
    /// Who.
    pub consumer: ConsumerUuid,
    /// Its project after.
    pub project_id: String,
    /// Its user after.
    pub user_id: String,
    /// Its type after; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
    /// Project, user and type before, if it existed and one of them changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_before: Option<Owner>,
    /// Its generation after; none: it is gone.
    pub generation: Option<u32>,
    /// Every (provider, class) it held before or holds after.
    pub holdings: Vec<HoldingChange>,
    /// The link group it is in after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// Whose a consumer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its project.
    pub project_id: String,
    /// Its user.
    pub user_id: String,
    /// Its type; none: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
}

/// What a consumer held and holds of one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldingChange {
    /// Of which provider.
    pub provider: ProviderUuid,
    /// By class.
    pub amounts: Vec<AmountChange>,
}

/// An amount before and after, in the class's unit; 0: none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountChange {
    /// The resource class.
    pub class: String,
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Consumers of which only the largest amount counts, for each (provider, class).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The group.
    pub group: LinkId,
    /// Which rule was granted, decided once when the group was made.
    pub overlap: Overlap,
}

/// How the holdings of a link group count together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The largest, for these classes; the others add up.
    Max(OverlapClasses),
}

/// One provider's generation and usage after an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderChange {
    /// Which.
    pub provider: ProviderUuid,
    /// Its generation after.
    pub generation: u32,
    /// Its usage (`held`) by class, where it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<AmountChange>,
}

/// Where a move stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveState {
    /// The source is held, no destination is.
    Open,
    /// Both are held.
    Claimed,
    /// Ended: the destination stayed.
    Confirmed,
    /// Ended: the source stayed.
    Reverted,
    /// Ended without either, or overwritten.
    Abandoned,
}

impl MoveState {
    /// Whether the move goes on.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Open | Self::Claimed)
    }

    /// The name, as it is spelled in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Claimed => "claimed",
            Self::Confirmed => "confirmed",
            Self::Reverted => "reverted",
            Self::Abandoned => "abandoned",
        }
    }
}

/// A move as it stands after an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// Its id, the same through all attempts.
    pub id: MoveId,
    /// What it is. A move inferred from plain Placement calls is a resize unless they tell more.
    pub kind: MoveKind,
    /// Whether it was recognised in plain Placement calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// Who is moved.
    pub instance: ConsumerUuid,
    /// Who holds the source; none: the instance holds both sides itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<ConsumerUuid>,
    /// Where it stands.
    pub state: MoveState,
    /// 1, 2, 3 ...: how often it was opened.
    pub attempt: u32,
    /// The request id of its latest opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What is held as the source.
    pub source: Holding,
    /// What is held as the destination.
    pub destination: Holding,
    /// Whose the instance is: a revert gives it back so.
    pub owner: Owner,
    /// The instance's end is on record: a revert releases.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Where it can go if the destination fails, in order; each fitted when it was looked for and
    /// holds nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternates: Vec<Alternate>,
    /// The server is on the destination, as far as is on record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arrived: bool,
}

impl Move {
    /// Follows a class that has another name, in what the move holds and in where it can go.
    pub fn rename_class(&mut self, before: &str, after: &str) {
        let alternates = self.alternates.iter_mut().map(|alternate| &mut alternate.holding);
        for holding in [&mut self.source, &mut self.destination].into_iter().chain(alternates) {
            for resources in holding.values_mut() {
                if let Some(amount) = resources.remove(before) {
                    resources.insert(after.to_owned(), amount);
                }
            }
        }
    }

    /// Whether one of its holdings, or an alternate's, names a class.
    pub fn names_class(&self, class: &str) -> bool {
        let alternates = self.alternates.iter().map(|alternate| &alternate.holding);
        let mut all = [&self.source, &self.destination].into_iter().chain(alternates);
        all.any(|holding| holding.values().any(|resources| resources.contains_key(class)))
    }
}

/// A destination that a move can take if its present one fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternate {
    /// The host.
    pub host: ProviderUuid,
    /// What would be held there.
    pub holding: Holding,
}

/// Something an operator should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The migration's side went while the instance holds nothing: a server may run without an
    /// allocation.
    RunsWithoutAllocation,
    /// The instance of an open move was claimed under another request id.
    ForeignRequestId,
    /// A DELETE during a move found nothing to delete.
    DeleteFoundNothing,
    /// The instance's end is on record, so what would have come back to it was released.
    ReleasedOwnerEnded,
    /// The migration's side was overwritten with something else.
    MigrationOverwritten,
}

/// See [`Event::ProviderCreated`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderCreated {
    /// Its id.
    pub provider: ProviderUuid,
    /// Its name.
    pub name: String,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ProviderUuid>,
    /// The root of its tree. Records of 0.1 lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<ProviderUuid>,
    /// Its generation: 0.
    pub generation: u32,
}

/// See [`Event::ProviderUpdated`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderUpdated {
    /// Which.
    pub provider: ProviderUuid,
    /// Its name before.
    pub name_before: String,
    /// Its name after.
    pub name: String,
    /// Its parent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_before: Option<ProviderUuid>,
    /// Its parent after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ProviderUuid>,
    /// The root of its tree after. Records of 0.1 lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<ProviderUuid>,
    /// Its generation, which does not change.
    pub generation: u32,
}

/// See [`Event::ProviderDeleted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderDeleted {
    /// Which.
    pub provider: ProviderUuid,
    /// Its name.
    pub name: String,
}

/// See [`Event::InventoryChanged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventoryChanged {
    /// Whose.
    pub provider: ProviderUuid,
    /// The provider's generation after.
    pub generation: u32,
    /// Each class whose inventory was written; before and after may be the same.
    pub changes: Vec<InventoryBeforeAfter>,
}

/// The inventory of one class before and after; none: there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventoryBeforeAfter {
    /// The resource class.
    pub class: String,
    /// Before.
    pub before: Option<Inventory>,
    /// After.
    pub after: Option<Inventory>,
}

/// See [`Event::RetirementChanged`]. The provider's generation does not move: what it has stays as
/// it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetirementChanged {
    /// Which.
    pub provider: ProviderUuid,
    /// Before.
    pub before: Wishes,
    /// After.
    pub after: Wishes,
    /// Why, if the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What of a provider goes once nobody holds anything of it. It is not offered any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// The provider itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Its inventories of these classes, in the order of class numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
}

/// See [`Event::QuotaChanged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotaChanged {
    /// Whose limits; none: those of every project that has none of its own for the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Each limit that changed.
    pub limits: Vec<LimitChange>,
}

/// A limit before and after; none: there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitChange {
    /// The resource class.
    pub class: String,
    /// Before.
    pub before: Option<Limit>,
    /// After.
    pub after: Option<Limit>,
}

/// See [`Event::TraitsChanged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraitsChanged {
    /// Whose.
    pub provider: ProviderUuid,
    /// The provider's generation after.
    pub generation: u32,
    /// Traits it has now and had not.
    pub added: Vec<String>,
    /// Traits it had and has no more.
    pub removed: Vec<String>,
}

/// See [`Event::AggregatesChanged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregatesChanged {
    /// Whose.
    pub provider: ProviderUuid,
    /// The provider's generation after.
    pub generation: u32,
    /// Aggregates it is in now and was not.
    pub added: Vec<String>,
    /// Aggregates it was in and is no more.
    pub removed: Vec<String>,
}

/// See [`Event::Reshaped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reshaped {
    /// Each provider's inventories.
    pub inventories: Vec<InventoryChanged>,
    /// The allocations.
    pub allocations: AllocationEvent,
}

/// An event about a name only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Name {
    /// The class or trait.
    pub name: String,
}

/// See [`Event::ResourceClassRenamed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renamed {
    /// Before.
    pub name_before: String,
    /// After.
    pub name: String,
}

/// See [`Event::Rejected`]. At most 2 KiB as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The command's name.
    pub command: String,
    /// BLAKE3 of the command without its stamp.
    pub digest: Hash,
    /// Who asked for something, and what, as far as it fits into the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// The move it was about.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// Why.
    pub cause: Cause,
    /// What was lacking where (16 at most).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortages: Vec<Shortage>,
    /// Options passed over (32 at most).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
    /// How many options were tried; 0: it had none, or the record is older than this field.
    #[serde(default, skip_serializing_if = "is_none")]
    pub options: u32,
    /// Who holds what stands in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<Box<Holders>>,
    /// The candidates query of the command, cut to [`crate::limits::QUERY_TOLD_BYTES`], unless the
    /// cause tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// How many commands of the list stood before the one that was refused.
    #[serde(default)]
    pub index: u32,
    /// How many names of classes, providers or traits the cause lacks for want of room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_none(options: &u32) -> bool {
    *options == 0
}

/// What a refused command asked for one consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// For whom.
    pub consumer: ConsumerUuid,
    /// What.
    pub holding: Holding,
}

/// See [`Event::RefusalsSuppressed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefusalsSuppressed {
    /// How many since the last such event, by project (the busiest 16) ...
    pub by_project: Vec<SuppressedCount>,
    /// ... and in all.
    pub total: u64,
}

/// Refusals of one project that were not recorded one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuppressedCount {
    /// The project.
    pub project_id: String,
    /// How many.
    pub count: u64,
}

/// See [`Event::SearchFailed`]. Placement answers such a search with two empty lists and keeps
/// nothing of it (Launchpad bug 1786519). The global request id stands in the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchFailed {
    /// The project that asked (pseudonymous id).
    pub project_id: String,
    /// The query string of `GET /allocation_candidates`, at most 1 KiB of it.
    pub query: String,
    /// Whether there was more of the query.
    #[serde(default)]
    pub query_cut: bool,
    /// The sequence of the state that was searched.
    pub searched_at: u64,
    /// What became of each group of the query, in its order (16 at most).
    pub groups: Vec<SearchedGroup>,
}

/// What the conditions of one group of a failed search left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedGroup {
    /// Its suffix; empty: the group without one.
    pub suffix: String,
    /// How many providers (or hosts with their trees) have inventory of any class asked for.
    pub considered: u64,
    /// Each condition in a fixed order, and how many satisfy it and all before it (32 at most in
    /// all groups together).
    pub steps: Vec<SearchStep>,
}

/// One condition of a failed search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchStep {
    /// The condition in words, such as `VCPU:4` or `trait CUSTOM_FOO`; at most 128 bytes of them.
    pub condition: String,
    /// How many are left after it.
    pub left: u64,
}

/// See [`Event::Answered`]. Where other commands of the list changed something, it is the last
/// event of their group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The command's name.
    pub command: String,
    /// What was answered to each command of a list that changed nothing at all.
    pub answers: Vec<Unchanged>,
    /// What was answered to each command of a list of which only some changed nothing; none for
    /// those that changed something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_list: Vec<Option<Unchanged>>,
    /// The providers that were to be updated and were so already, as the answer shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderAsAnswered>,
}

/// A provider as the answer to a command shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAsAnswered {
    /// Which.
    pub provider: ProviderUuid,
    /// Its name.
    pub name: String,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ProviderUuid>,
    /// The root of its tree.
    pub root: ProviderUuid,
    /// Its generation.
    pub generation: u32,
}

/// Why a command that was accepted changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unchanged {
    /// Things are as wished already.
    NoChange,
    /// This attempt of the move ended so before.
    AlreadyEnded {
        /// Which move.
        #[serde(rename = "move")]
        move_id: MoveId,
        /// How it ended.
        state: MoveState,
        /// The sequence of the event that ended it.
        sequence: u64,
    },
}

/// Options that decisions depend on, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The classes for which a move that stays on its provider counts only the larger side.
    #[serde(default)]
    pub overlap_classes: OverlapClasses,
    /// What a plain claim of the destination beside its source on one provider counts.
    #[serde(default)]
    pub same_host_moves: SameHostMoves,
}

/// See [`Event::EventSkipped`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSkipped {
    /// The view.
    pub view: String,
    /// The event that it had stopped at.
    pub sequence: u64,
    /// Why.
    pub reason: String,
}

/// See [`Event::Erased`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Erased {
    /// The records whose private part is gone.
    pub sequences: Vec<u64>,
    /// Why.
    pub reason: String,
}
