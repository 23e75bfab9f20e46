//! Commands: wishes in the imperative. Each is decided in the file of `commands/` named for it.

mod add_inventory;
mod letting_go;
mod quota;
mod retire;
mod skip_event;

pub use add_inventory::AddInventory;
pub use letting_go::{ReleaseAll, ReleaseAndReserve, ReleasePart};
pub use quota::{Limit, SetQuota};
pub use retire::{Retire, Unretire, WhichProviders};
pub use skip_event::SkipEvent;

use crate::amounts::{Holding, Inventory};
use crate::ids::{ConsumerUuid, MoveId, ProviderUuid};
use crate::search::Searched;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A wish. In JSON and MessagePack it is one key that names the command: `{"claim": {...}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Make a resource provider.
    CreateProvider(CreateProvider),
    /// Rename a provider or change its parent.
    UpdateProvider(UpdateProvider),
    /// Remove a provider that has neither children nor allocations.
    DeleteProvider(DeleteProvider),
    /// Change what a provider has.
    ChangeInventories(ChangeInventories),
    /// Replace a provider's traits.
    SetTraits(SetTraits),
    /// Replace a provider's aggregates.
    SetAggregates(SetAggregates),
    /// Make a custom trait.
    CreateTrait(Named),
    /// Remove a custom trait that no provider has.
    DeleteTrait(Named),
    /// Make a custom resource class.
    CreateResourceClass(Named),
    /// Rename a custom resource class (Placement 1.2 to 1.6).
    RenameResourceClass(RenameResourceClass),
    /// Remove a custom resource class that no inventory uses.
    DeleteResourceClass(Named),
    /// Placement's PUT, POST and DELETE of allocations.
    ReplaceAllocations(ReplaceAllocations),
    /// Placement's reshaper: inventories and allocations at once.
    Reshape(Reshape),
    /// Take the first of the options that fits.
    Claim(Claim),
    /// Hold a destination beside the source, both on the consumer itself.
    DoubleUp(DoubleUp),
    /// Hand the source to a migration consumer: opens a move.
    MoveToMigration(MoveToMigration),
    /// Give up this destination, take the next.
    Reschedule(Reschedule),
    /// The move succeeded: the source goes.
    Confirm(Confirm),
    /// The move failed or is not wanted: the destination goes, the source comes back.
    Revert(Revert),
    /// The whole opening of a move at once: source to the migration, destination, alternates.
    Resize(Resize),
    /// The server of a move is on this host now.
    HostChanged(HostChanged),
    /// A step of a move failed: it ends on the side that the server is on.
    Fail(Fail),
    /// Let go of everything a consumer holds.
    Release(Release),
    /// Let go of a part of what a consumer holds.
    ReleasePart(ReleasePart),
    /// Let go of everything that is held of a provider, whoever holds it.
    ReleaseAll(ReleaseAll),
    /// Let go of everything a consumer holds, and keep the provider back from others, at once.
    ReleaseAndReserve(ReleaseAndReserve),
    /// Change an inventory by so much, whatever it is now.
    AddInventory(AddInventory),
    /// Remove providers, at once or when they are free.
    Retire(Retire),
    /// Take back the wish that a provider or its inventories go when they are free.
    Unretire(Unretire),
    /// Limit what a project, or each project, holds.
    SetQuota(SetQuota),
    /// Change an option that decisions depend on.
    ChangeSettings(ChangeSettings),
    /// Let a view that has stopped at an event go on behind it.
    SkipEvent(SkipEvent),
    /// Put on record that a search found nothing. The server's own: nobody sends it.
    #[serde(skip_deserializing)]
    NoteFailedSearch(crate::event::SearchFailed),
}

/// See [`Command::CreateProvider`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateProvider {
    /// Its id.
    pub uuid: ProviderUuid,
    /// Its unique name, at most 200 characters.
    pub name: String,
    /// Its parent in a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ProviderUuid>,
}

/// See [`Command::UpdateProvider`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateProvider {
    /// Which provider.
    pub uuid: ProviderUuid,
    /// Its name from now on.
    pub name: String,
    /// What becomes of its parent.
    #[serde(default)]
    pub parent: ParentChange,
    /// Whether an existing parent may be changed or taken away (Placement: from 1.37).
    #[serde(default = "yes")]
    pub may_reparent: bool,
}

fn yes() -> bool {
    true
}

/// What becomes of a provider's parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentChange {
    /// It stays.
    #[default]
    Keep,
    /// It is this one; `null` makes the provider a root.
    Set(Option<ProviderUuid>),
}

/// See [`Command::DeleteProvider`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteProvider {
    /// Which provider.
    pub uuid: ProviderUuid,
}

/// See [`Command::ChangeInventories`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeInventories {
    /// Whose inventories.
    pub provider: ProviderUuid,
    /// The provider's generation as the caller knows it; none: not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// What changes.
    pub change: InventoryChange,
    /// Whether `reserved` may leave a capacity of 0 (Placement: from 1.26).
    #[serde(default = "yes")]
    pub may_reserve_all: bool,
}

/// One change of a provider's inventories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryChange {
    /// The new set takes the place of the old.
    ReplaceAll(BTreeMap<String, Inventory>),
    /// A class that the provider lacks so far.
    Create(String, Inventory),
    /// A class that the provider has.
    Update(String, Inventory),
    /// A class goes.
    Delete(String),
    /// All go.
    DeleteAll,
    /// The new set takes the place of the old, but a class in use that is not in it is only not
    /// offered any more, and goes when it is free. One that is in it stays, whatever was wished.
    ReplaceWhenFree(BTreeMap<String, Inventory>),
    /// A class is not offered any more, and goes when it is free.
    DeleteWhenFree(String),
}

/// See [`Command::SetTraits`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetTraits {
    /// Whose traits.
    pub provider: ProviderUuid,
    /// The provider's generation as the caller knows it; none: not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The whole new set; repeated names are fine.
    pub traits: Vec<String>,
}

/// See [`Command::SetAggregates`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetAggregates {
    /// Whose aggregates.
    pub provider: ProviderUuid,
    /// The provider's generation as the caller knows it. If given it is checked, and it moves on
    /// (Placement: from 1.19); if not, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The whole new set, kept as spelled.
    pub aggregates: Vec<String>,
}

/// A command that needs only a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name of the class or trait.
    pub name: String,
}

/// See [`Command::RenameResourceClass`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenameResourceClass {
    /// Its name so far.
    pub name: String,
    /// Its name from now on.
    pub new_name: String,
}

/// Which of Placement's calls a replacement came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// `PUT /allocations/{consumer}`.
    Put,
    /// `POST /allocations`.
    Post,
    /// `DELETE /allocations/{consumer}`: provider generations stay, and nothing held is "not found".
    Delete,
    /// `POST /reshaper`.
    Reshaper,
    /// A command of the ledger's own API.
    Command,
}

/// See [`Command::ReplaceAllocations`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceAllocations {
    /// Which call it is.
    pub via: Via,
    /// Each consumer's whole new holding. PUT and DELETE have exactly one.
    pub consumers: Vec<ConsumerWrite>,
}

/// The whole new holding of one consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerWrite {
    /// Who.
    pub consumer: ConsumerUuid,
    /// What it holds from now on; empty: nothing.
    pub allocations: Holding,
    /// Its project (pseudonymous id).
    pub project_id: String,
    /// Its user (pseudonymous id).
    pub user_id: String,
    /// Its type; none: as it was, unknown for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
    /// Whether and which generation the caller expects.
    #[serde(default)]
    pub generation: GenerationCheck,
}

/// What the caller says about a consumer's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GenerationCheck {
    /// Nothing (Placement: before 1.28).
    #[default]
    Unchecked,
    /// It is this; `null`: the consumer holds nothing yet.
    Is(Option<u32>),
}

/// See [`Command::Reshape`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reshape {
    /// Each provider's generation as the caller knows it and its whole new set of inventories.
    pub inventories: BTreeMap<ProviderUuid, ReshapedInventories>,
    /// Each consumer's whole new holding.
    pub allocations: Vec<ConsumerWrite>,
    /// The providers in the order in which the caller named them: of several that are at fault, the
    /// first is told. It decides nothing else, and so is no part of the command's digest.
    #[serde(skip)]
    pub order: Vec<ProviderUuid>,
}

/// One provider's part of a [`Reshape`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReshapedInventories {
    /// The provider's generation as the caller knows it.
    pub generation: u32,
    /// The whole new set.
    pub inventories: BTreeMap<String, Inventory>,
}

/// What a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveKind {
    /// To another flavor; alone may stay on its host.
    Resize,
    /// Cold, to another host with the same flavor.
    Migration,
    /// Of a running server.
    LiveMigration,
    /// Away from a host that is down.
    Evacuation,
}

/// See [`Command::Claim`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// For whom. If it has an open move, this claims the move's destination.
    pub consumer: ConsumerUuid,
    /// Its project (pseudonymous id).
    pub project_id: String,
    /// Its user (pseudonymous id).
    pub user_id: String,
    /// Its type; none: as it was, unknown for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_type: Option<String>,
    /// In order of preference: the first that fits is taken.
    #[serde(default)]
    pub options: Vec<Holding>,
    /// Instead of options: a query string of Placement's `GET /allocation_candidates`, which the
    /// server answers itself; choice and claim are one atomic step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<String>,
    /// What the server found for `candidates`. No part of what a client sends.
    #[serde(skip)]
    pub searched: Option<Searched>,
}

/// See [`Command::DoubleUp`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleUp {
    /// Who is moved; it holds the source.
    pub consumer: ConsumerUuid,
    /// What kind of move this opens.
    pub kind: MoveKind,
    /// Destinations in order of preference: the first that fits is taken.
    pub options: Vec<Holding>,
}

/// See [`Command::MoveToMigration`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveToMigration {
    /// Who is moved; it holds the source.
    pub consumer: ConsumerUuid,
    /// The migration consumer, which holds nothing yet.
    pub migration: ConsumerUuid,
    /// What kind of move this opens.
    pub kind: MoveKind,
}

/// See [`Command::Reschedule`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reschedule {
    /// Who is moved.
    pub consumer: ConsumerUuid,
    /// Which move; none: the consumer's latest live one.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// Why this destination is given up.
    pub reason: String,
    /// Where to go instead, in order of preference. Given but none fits: refused, and the
    /// destination stays. None given: the next of the alternates that the move keeps and that
    /// still fits is taken; if there is none, the destination goes and the move stays open.
    #[serde(default)]
    pub options: Vec<Holding>,
    /// Instead of options: a query string of Placement's `GET /allocation_candidates`, which the
    /// server answers itself; choice and claim are one atomic step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<String>,
    /// What the server found for `candidates`. No part of what a client sends.
    #[serde(skip)]
    pub searched: Option<Searched>,
}

/// See [`Command::Resize`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// Who is moved; it holds the source.
    pub consumer: ConsumerUuid,
    /// The migration consumer, which holds nothing yet and gets the source.
    pub migration: ConsumerUuid,
    /// What kind of move this opens. Only a resize may stay on its host.
    pub kind: MoveKind,
    /// Destinations in order of preference, but those on the consumer's own host come first.
    #[serde(default)]
    pub options: Vec<Holding>,
    /// Instead of options: a query string of Placement's `GET /allocation_candidates`, which the
    /// server answers itself; choice and claim are one atomic step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<String>,
    /// What the server found for `candidates`. No part of what a client sends.
    #[serde(skip)]
    pub searched: Option<Searched>,
    /// Hosts not to go to, by any provider of their trees. One that does not exist is no error.
    #[serde(default)]
    pub ignore_hosts: Vec<ProviderUuid>,
    /// The destination and its alternates together are at most so many, 1 to
    /// [`crate::limits::ATTEMPTS`].
    #[serde(default = "three")]
    pub max_attempts: u32,
}

/// Nova's default (`[scheduler] max_attempts`).
fn three() -> u32 {
    3
}

/// See [`Command::HostChanged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostChanged {
    /// Who is moved.
    pub consumer: ConsumerUuid,
    /// Which move; none: the consumer's latest live one.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// Where its server is now: any provider of the tree of the destination or the source.
    pub host: ProviderUuid,
}

/// See [`Command::Fail`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// Who is moved.
    pub consumer: ConsumerUuid,
    /// Which move; none: the consumer's latest.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// What failed.
    pub reason: String,
}

/// See [`Command::Confirm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// Who was moved.
    pub consumer: ConsumerUuid,
    /// Which move; none: the consumer's latest.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
}

/// See [`Command::Revert`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// Who was moved.
    pub consumer: ConsumerUuid,
    /// Which move; none: the consumer's latest.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// See [`Command::Release`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Who lets go.
    pub consumer: ConsumerUuid,
    /// The consumer is gone for good: a later revert to it releases instead of re-creating
    /// (Launchpad bug 1848343).
    #[serde(default)]
    pub ended: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// See [`Command::ChangeSettings`]. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSettings {
    /// The classes for which a move that stays on its provider counts only the larger side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_classes: Option<OverlapClasses>,
    /// What a plain claim of the destination beside its source on one provider counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_host_moves: Option<SameHostMoves>,
}

/// What counts while plain Placement calls hold both sides of a move on one provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameHostMoves {
    /// Both sides, as Placement counts.
    #[default]
    Sum,
    /// The larger side, if both calls have one request id (Launchpad bug 1790204).
    Max,
}

/// Which classes the max() rule covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapClasses {
    /// Every class, as Launchpad bug 1790204 asks.
    #[default]
    All,
    /// These only. A same-host resize with local file disks really copies, so an operator may
    /// leave DISK_GB out.
    Only(std::collections::BTreeSet<String>),
    /// Every class but these.
    AllBut(std::collections::BTreeSet<String>),
}

impl OverlapClasses {
    /// The classes that it names.
    pub(crate) fn named(&self) -> Option<&std::collections::BTreeSet<String>> {
        match self {
            Self::All => None,
            Self::Only(classes) | Self::AllBut(classes) => Some(classes),
        }
    }

    /// Follows a class that gets another name. One of the new name that it names still is of a
    /// class that was removed, and that makes way for good.
    pub(crate) fn rename(&mut self, before: &str, after: &str) {
        let (Self::Only(classes) | Self::AllBut(classes)) = self else { return };
        classes.remove(after);
        if classes.remove(before) {
            classes.insert(after.to_owned());
        }
    }

    /// Whether `class` is covered.
    pub fn covers(&self, class: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(classes) => classes.contains(class),
            Self::AllBut(classes) => !classes.contains(class),
        }
    }
}

impl Command {
    /// Who asks for what, for the record of a refusal. Of ordered options it is the first; of a
    /// query that finds nothing, nothing.
    pub(crate) fn asked(&self) -> Vec<(ConsumerUuid, &Holding)> {
        let of_options = |consumer, options, searched| {
            first_option(options, searched).map(|option| (consumer, option)).into_iter().collect()
        };
        match self {
            Self::ReplaceAllocations(it) => {
                it.consumers.iter().map(|write| (write.consumer, &write.allocations)).collect()
            }
            Self::Claim(it) => of_options(it.consumer, &it.options, &it.searched),
            Self::DoubleUp(it) => of_options(it.consumer, &it.options, &None),
            Self::Reschedule(it) => of_options(it.consumer, &it.options, &it.searched),
            Self::Resize(it) => of_options(it.consumer, &it.options, &it.searched),
            _ => Vec::new(),
        }
    }

    /// The command's name, as the API spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateProvider(_) => "create_provider",
            Self::UpdateProvider(_) => "update_provider",
            Self::DeleteProvider(_) => "delete_provider",
            Self::ChangeInventories(_) => "change_inventories",
            Self::SetTraits(_) => "set_traits",
            Self::SetAggregates(_) => "set_aggregates",
            Self::CreateTrait(_) => "create_trait",
            Self::DeleteTrait(_) => "delete_trait",
            Self::CreateResourceClass(_) => "create_resource_class",
            Self::RenameResourceClass(_) => "rename_resource_class",
            Self::DeleteResourceClass(_) => "delete_resource_class",
            Self::ReplaceAllocations(_) => "replace_allocations",
            Self::Reshape(_) => "reshape",
            Self::Claim(_) => "claim",
            Self::DoubleUp(_) => "double_up",
            Self::MoveToMigration(_) => "move_to_migration",
            Self::Reschedule(_) => "reschedule",
            Self::Confirm(_) => "confirm",
            Self::Revert(_) => "revert",
            Self::Resize(_) => "resize",
            Self::HostChanged(_) => "host_changed",
            Self::Fail(_) => "fail",
            Self::Release(_) => "release",
            Self::ReleasePart(_) => "release_part",
            Self::ReleaseAll(_) => "release_all",
            Self::ReleaseAndReserve(_) => "release_and_reserve",
            Self::AddInventory(_) => "add_inventory",
            Self::Retire(_) => "retire",
            Self::Unretire(_) => "unretire",
            Self::SetQuota(_) => "set_quota",
            Self::ChangeSettings(_) => "change_settings",
            Self::SkipEvent(_) => "skip_event",
            Self::NoteFailedSearch(_) => "note_failed_search",
        }
    }
}

fn first_option<'c>(options: &'c [Holding], searched: &'c Option<Searched>) -> Option<&'c Holding> {
    static NOTHING: Holding = Holding::new();
    let found = || searched.as_ref().map(|found| found.options.first().unwrap_or(&NOTHING));
    options.first().or_else(found)
}
