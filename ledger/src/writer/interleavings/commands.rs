//! The command that a step makes of a state.

use super::steps::{Reshaping, Step, Wish};
use super::world::*;
use crate::amounts::{Holding, Inventory};
use crate::command::*;
use crate::event::SearchFailed;
use crate::ids::ProviderUuid;
use crate::state::{Provider, State};
use std::collections::BTreeMap;

const CUSTOM: [&str; 3] = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"];
const TRAIT: &str = "CUSTOM_T";

pub(super) fn command(step: &Step, state: &State) -> Command {
    match step.clone() {
        Step::Claim(wish) => Command::Claim(Claim {
            consumer: consumer(wish.who),
            project_id: "p".into(),
            user_id: "u".into(),
            consumer_type: None,
            options: options(state, &wish),
            candidates: None,
            searched: None,
        }),
        Step::Put(who, wish) => put(who, on(state, &wish, wish.host)),
        Step::Shrink(who, by) => put(who, shrunk(state, who, by)),
        Step::Grow(who, nth, by) => put(who, grown(state, who, nth, by)),
        Step::Attach(who, host) => put(who, attached(state, who, host)),
        Step::Open(who, which) => Command::MoveToMigration(MoveToMigration {
            consumer: consumer(who),
            migration: consumer(migration(who, which)),
            kind: MoveKind::Resize,
        }),
        Step::Resize(who, which, wish) => Command::Resize(Resize {
            consumer: consumer(who),
            migration: consumer(migration(who, which)),
            kind: MoveKind::Resize,
            options: options(state, &wish),
            candidates: None,
            searched: None,
            ignore_hosts: Vec::new(),
            max_attempts: 2,
        }),
        Step::Confirm(who) => Command::Confirm(Confirm { consumer: consumer(who), move_id: None }),
        Step::ConfirmOldest(who) => {
            let oldest = state.moves().live_of_instance(consumer(who)).last();
            let move_id = oldest.map(|entry| entry.this.id);
            Command::Confirm(Confirm { consumer: consumer(who), move_id })
        }
        Step::Revert(who) => {
            Command::Revert(Revert { consumer: consumer(who), move_id: None, reason: None })
        }
        Step::HostChanged(who, host) => Command::HostChanged(HostChanged {
            consumer: consumer(who),
            move_id: None,
            host: provider(host),
        }),
        Step::Fail(who) => {
            Command::Fail(Fail { consumer: consumer(who), move_id: None, reason: "test".into() })
        }
        Step::Reschedule(who, wish) => Command::Reschedule(Reschedule {
            consumer: consumer(who),
            move_id: None,
            reason: "test".into(),
            options: wish.map(|wish| options(state, &wish)).unwrap_or_default(),
            candidates: None,
            searched: None,
        }),
        Step::DoubleUp(wish) => Command::DoubleUp(DoubleUp {
            consumer: consumer(wish.who),
            kind: MoveKind::Evacuation,
            options: options(state, &wish),
        }),
        Step::DoublePlain(who, host) => put(who, doubled(state, who, host)),
        Step::Release(who, ended) => {
            Command::Release(Release { consumer: consumer(who), ended, reason: None })
        }
        Step::ReleaseAndReserve(who, host) => Command::ReleaseAndReserve(ReleaseAndReserve {
            consumer: consumer(who),
            provider: provider(host),
            reserved: None,
            ended: false,
            reason: None,
        }),
        Step::ReleaseAll(on, at_most) => {
            Command::ReleaseAll(ReleaseAll { provider: provider(on), at_most, reason: None })
        }
        Step::PostOver(who, which) => hand_over(state, who, migration(who, which)),
        Step::PostBack(who, which) => hand_over(state, migration(who, which), who),
        Step::Delete(who) => plain(Via::Delete, vec![(who, Holding::new())]),
        Step::Part(who, on, amount) => Command::ReleasePart(ReleasePart {
            consumer: consumer(who),
            provider: provider(on),
            class: class_of(state, on),
            amount,
            reason: None,
        }),
        meanwhile => about_the_cloud(meanwhile, state),
    }
}

fn about_the_cloud(step: Step, state: &State) -> Command {
    let changed = |on: u128, change| {
        Command::ChangeInventories(ChangeInventories {
            provider: provider(on),
            generation: None,
            change,
            may_reserve_all: true,
        })
    };
    match step {
        Step::Inventory(on, total) => {
            changed(on, InventoryChange::Update(class_of(state, on), Inventory::of(total)))
        }
        Step::Units(on, (min_unit, max_unit, step_size)) => {
            let inventory = Inventory { min_unit, max_unit, step_size, ..Inventory::of(6) };
            changed(on, InventoryChange::Update(class_of(state, on), inventory))
        }
        Step::Drop(on, true) => changed(on, InventoryChange::Delete(class_of(state, on))),
        Step::Drop(on, false) => changed(on, InventoryChange::DeleteWhenFree(class_of(state, on))),
        Step::Add(on, total) => Command::AddInventory(AddInventory {
            provider: provider(on),
            class: class_of(state, on),
            total,
            reserved: 0,
        }),
        Step::Retire(on, when_free) => Command::Retire(Retire {
            which: WhichProviders::Providers(vec![provider(on)]),
            when_free,
            reason: None,
        }),
        Step::Unretire(on) => Command::Unretire(Unretire {
            provider: provider(on),
            classes: Vec::new(),
            reason: None,
        }),
        Step::SameHost(max) => {
            let rule = if max { SameHostMoves::Max } else { SameHostMoves::Sum };
            let same_host_moves = Some(rule);
            Command::ChangeSettings(ChangeSettings { same_host_moves, overlap_classes: None })
        }
        Step::Overlap(rule, class) => {
            let named = ["VCPU".to_owned(), custom(state, class)].into();
            let overlap_classes = Some(match rule {
                0 => OverlapClasses::All,
                1 => OverlapClasses::Only(named),
                _ => OverlapClasses::AllBut(named),
            });
            Command::ChangeSettings(ChangeSettings { overlap_classes, same_host_moves: None })
        }
        Step::Quota(limit) => Command::SetQuota(SetQuota {
            project_id: Some("p".into()),
            limits: [("VCPU".to_owned(), limit.map(Limit::AtMost))].into(),
        }),
        Step::Reshape(reshaping) => reshape(state, &reshaping),
        Step::CreateClass(nth) => Command::CreateResourceClass(named(CUSTOM[nth])),
        Step::DeleteClass(nth) => Command::DeleteResourceClass(named(CUSTOM[nth])),
        Step::RenameClass(from, to) => Command::RenameResourceClass(RenameResourceClass {
            name: custom(state, from),
            new_name: CUSTOM[to].to_owned(),
        }),
        Step::CreateTrait => Command::CreateTrait(named(TRAIT)),
        Step::DeleteTrait => Command::DeleteTrait(named(TRAIT)),
        Step::Traits(on, shares) => Command::SetTraits(SetTraits {
            provider: provider(on),
            generation: None,
            traits: if shares { vec![SHARES.to_owned()] } else { Vec::new() },
        }),
        Step::Aggregates(on) => Command::SetAggregates(SetAggregates {
            provider: provider(on),
            generation: None,
            aggregates: vec!["rack".to_owned()],
        }),
        Step::CreateProvider(on) => Command::CreateProvider(CreateProvider {
            uuid: provider(on),
            name: format!("{on}"),
            parent: None,
        }),
        Step::DeleteProvider(on) => Command::DeleteProvider(DeleteProvider { uuid: provider(on) }),
        Step::Hang(on, below) => Command::UpdateProvider(UpdateProvider {
            uuid: provider(on),
            name: format!("{on}"),
            parent: ParentChange::Set(below.map(provider)),
            may_reparent: true,
        }),
        Step::SkipEvent => Command::SkipEvent(SkipEvent {
            view: "usage".into(),
            sequence: 1,
            reason: "test".into(),
        }),
        _ => Command::NoteFailedSearch(SearchFailed {
            project_id: "p".into(),
            query: "resources=VCPU:9".into(),
            query_cut: false,
            searched_at: 1,
            groups: Vec::new(),
        }),
    }
}

fn named(name: &str) -> Named {
    Named { name: name.to_owned() }
}

fn put(who: u128, allocations: Holding) -> Command {
    plain(Via::Put, vec![(who, allocations)])
}

fn write(who: u128, allocations: Holding) -> ConsumerWrite {
    ConsumerWrite {
        consumer: consumer(who),
        allocations,
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type: None,
        generation: GenerationCheck::Unchecked,
    }
}

fn plain(via: Via, writes: Vec<(u128, Holding)>) -> Command {
    let consumers = writes.into_iter().map(|(who, after)| write(who, after)).collect();
    Command::ReplaceAllocations(ReplaceAllocations { via, consumers })
}

fn hand_over(state: &State, from: u128, to: u128) -> Command {
    let whole = state.holding_of(consumer(from));
    plain(Via::Post, vec![(from, Holding::new()), (to, whole)])
}

/// A custom class that exists.
fn custom(state: &State, nth: usize) -> String {
    let alive: Vec<&str> =
        CUSTOM.into_iter().filter(|name| state.classes().id(name).is_some()).collect();
    alive.get(nth % alive.len().max(1)).copied().unwrap_or(CUSTOM[0]).to_owned()
}

/// The first class that a provider has.
fn class_of(state: &State, on: u128) -> String {
    let first = state.provider(provider(on)).and_then(|row| row.inventories.first());
    first.map_or_else(|| "VCPU".to_owned(), |row| state.classes().name(row.class).to_string())
}

/// Where a host has a class by now: on itself, or on a provider below it.
fn spot(state: &State, host: u128, class: &str) -> ProviderUuid {
    let found = || {
        let id = state.classes().id(class)?;
        let tree = state.subtree(state.provider_id(provider(host))?);
        let rows = tree.into_iter().filter_map(|row| state.provider_row(row));
        rows.map(|row| &**row).find(|row| row.inventory(id).is_some()).map(|row| row.uuid)
    };
    found().unwrap_or_else(|| provider(host))
}

fn add(holding: &mut Holding, provider: ProviderUuid, class: &str, amount: u32) {
    if amount > 0 {
        *holding.entry(provider).or_default().entry(class.to_owned()).or_default() += amount;
    }
}

fn on(state: &State, wish: &Wish, host: u128) -> Holding {
    let mut wanted = Holding::new();
    let custom = custom(state, 0);
    let of = [("VCPU", wish.vcpus), ("VGPU", wish.vgpus), (&*custom, wish.custom)];
    for (class, amount) in of {
        add(&mut wanted, spot(state, host, class), class, amount);
    }
    add(&mut wanted, provider(STORAGE), "DISK_GB", wish.disk);
    wanted
}

fn options(state: &State, wish: &Wish) -> Vec<Holding> {
    vec![on(state, wish, wish.host), on(state, wish, (wish.host + 1) % HOSTS)]
}

/// What is left of a holding when some of each amount goes; what would be nothing stays.
fn shrunk(state: &State, who: u128, by: u32) -> Holding {
    let mut left = state.holding_of(consumer(who));
    for amount in left.values_mut().flat_map(BTreeMap::values_mut) {
        *amount = amount.saturating_sub(by).max(1);
    }
    left
}

fn grown(state: &State, who: u128, nth: usize, by: u32) -> Holding {
    let mut held = state.holding_of(consumer(who));
    let count = held.values().map(BTreeMap::len).sum::<usize>().max(1);
    if let Some(amount) = held.values_mut().flat_map(BTreeMap::values_mut).nth(nth % count) {
        *amount += by;
    }
    held
}

fn attached(state: &State, who: u128, host: Option<u128>) -> Holding {
    let mut held = state.holding_of(consumer(who));
    match host {
        Some(host) => add(&mut held, spot(state, host, "VGPU"), "VGPU", 1),
        None => add(&mut held, provider(CARD), BANDWIDTH, 1),
    }
    held
}

/// What is held, and the same by class on a host beside it.
fn doubled(state: &State, who: u128, host: u128) -> Holding {
    let held = state.holding_of(consumer(who));
    let mut both = held.clone();
    for (uuid, resources) in held.iter().filter(|(uuid, _)| **uuid != provider(STORAGE)) {
        let of_host = |row: &Provider| {
            let root = state.provider_row(row.root).map(|root| root.uuid);
            (0..HOSTS).any(|host| root == Some(provider(host)))
        };
        if state.provider(*uuid).is_some_and(|row| of_host(row)) {
            for (class, amount) in resources {
                add(&mut both, spot(state, host, class), class, *amount);
            }
        }
    }
    both
}

/// A class goes from where a host has it to another provider, with all that is held of it.
fn reshape(state: &State, it: &Reshaping) -> Command {
    let class = match it.class {
        0 => "VCPU".to_owned(),
        1 => "VGPU".to_owned(),
        _ => custom(state, 0),
    };
    let from = spot(state, it.host, &class);
    let to = match it.abroad {
        true => provider((it.host + 1) % HOSTS),
        false if from == provider(it.host) => provider(DEVICES + it.host),
        false => provider(it.host),
    };
    let mut inventories = BTreeMap::new();
    let moved = inventories_of(state, from).remove(&class);
    for uuid in [from, to] {
        let mut all = inventories_of(state, uuid);
        if uuid == from {
            all.remove(&class);
        }
        if let Some(moved) = moved.filter(|_| uuid == to) {
            let total = all.get(&class).map_or(0, |it| it.total) + moved.total;
            all.insert(class.clone(), Inventory { total, ..moved });
        }
        let generation = state.provider(uuid).map_or(0, |row| row.generation);
        inventories.insert(uuid, ReshapedInventories { generation, inventories: all });
    }
    let everybody = 0..SERVERS * (1 + MIGRATIONS);
    let allocations = everybody.filter_map(|who| {
        let mut held = state.holding_of(consumer(who));
        if it.emptied == Some(who) && !held.is_empty() {
            return Some(write(who, Holding::new()));
        }
        let amount = held.get_mut(&from)?.remove(&class)?;
        held.retain(|_, resources| !resources.is_empty());
        add(&mut held, to, &class, amount);
        Some(write(who, held))
    });
    let order = Vec::new();
    Command::Reshape(Reshape { allocations: allocations.collect(), inventories, order })
}

fn inventories_of(state: &State, uuid: ProviderUuid) -> BTreeMap<String, Inventory> {
    let rows = state.provider(uuid).map(|row| row.inventories.clone()).unwrap_or_default();
    rows.into_iter()
        .map(|row| (state.classes().name(row.class).to_string(), row.inventory))
        .collect()
}
