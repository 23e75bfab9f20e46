//! What consumers hold after a command, whether it fits, and the event that says so.

use super::quota;
use super::sides::Sides;
use crate::amounts::{Holding, Inventory};
use crate::command::Via;
use crate::decide::Draft;
use crate::event::{
    AllocationEvent, AmountChange, ConsumerChange, Event, HoldingChange, Link, Move, MoveState,
    Owner, ProviderChange,
};
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::limits;
use crate::refusal::{Cause, Refusal, Shortage, ShortageCause};
use crate::state::{
    Allocation, Allocations, Consumer, Demand, HeldChange, Provider, ProviderId, State, Write,
    held_after,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One consumer after a command.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) consumer: ConsumerUuid,
    pub(crate) after: Allocations,
    pub(crate) owner: Owner,
    pub(crate) link: Option<Link>,
    /// Only its link changes: its generation stays.
    pub(crate) untouched: bool,
    /// Its generation after, if it is emptied and filled again within one write.
    pub(crate) generation: Option<u32>,
}

impl Planned {
    fn write(&self) -> Write {
        Write { consumer: self.consumer, after: self.after.clone(), link: self.link.clone() }
    }
}

/// Generations of providers after a command: each moves on once, whatever events it has.
pub(crate) type Generations = BTreeMap<ProviderId, u32>;

/// The numbers of a holding that a command spells out.
///
/// # Errors
/// An unknown provider is told before an unknown class, as Placement does.
pub(crate) fn resolve(state: &State, holding: &Holding) -> Result<Allocations, Cause> {
    for provider in holding.keys() {
        if state.provider_id(*provider).is_none() {
            return Err(Cause::ProviderNotFound { provider: *provider });
        }
    }
    let mut found = Allocations::new();
    for (uuid, resources) in holding {
        let Some(provider) = state.provider_id(*uuid) else { continue };
        if resources.is_empty() {
            return Err(malformed(format!("nothing is asked of provider {uuid}")));
        }
        for (class, &amount) in resources {
            let id = state
                .classes()
                .id(class)
                .ok_or_else(|| Cause::ClassNotFound { class: class.clone() })?;
            if amount == 0 {
                return Err(malformed(format!("0 of {class} is no amount")));
            }
            // More than any `max_unit` can allow is refused as such, once the inventory is looked at. Cut
            // off, it stays so and a sum of two amounts still fits.
            let amount = amount.min(limits::AMOUNT + 1);
            found.push(Allocation { provider, class: id, amount });
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// A cause for what a command says wrong.
pub(crate) fn malformed(what: String) -> Cause {
    Cause::Malformed { what }
}

/// Checks that everything the plan names fits: the design's rule, and Placement's order of checks;
/// then that it is within its project's limits.
///
/// # Errors
/// The shortages, the one that Placement names first; [`Cause::Quota`].
pub(crate) fn check_fits(state: &State, plan: &[Planned]) -> Result<(), Refusal> {
    check_room(state, plan, Units::All)?;
    quota::check(state, plan)
}

/// The same for commands that hand over or release what is held already.
///
/// # Errors
/// As [`check_fits`].
pub(crate) fn check_kept(state: &State, plan: &[Planned]) -> Result<(), Refusal> {
    check_room(state, plan, Units::New)?;
    quota::check(state, plan)
}

/// The same for the ends of moves, without limits of projects: they only hand back or release what
/// is held already. A project's limit must never keep a server from going back.
///
/// # Errors
/// The shortages.
pub(crate) fn check_end(state: &State, plan: &[Planned]) -> Result<(), Refusal> {
    check_room(state, plan, Units::New)
}

/// Which amounts `min_unit`, `max_unit` and `step_size` apply to.
#[derive(Clone, Copy, PartialEq)]
enum Units {
    /// All that a write names, as Placement does it.
    All,
    /// Those that are more than the consumers of the plan hold of that provider and class: what is
    /// held may stay, whatever the inventory says by now.
    New,
}

fn check_room(state: &State, plan: &[Planned], units: Units) -> Result<(), Refusal> {
    let writes: Vec<Write> = plan.iter().map(Planned::write).collect();
    let demand = held_after(state, &writes);
    check_inventories(state, plan)?;
    let written = || plan.iter().filter(|planned| !planned.untouched);
    // What is untouched is not asked for: the source that a destination is linked with is there
    // already, and whatever of it counts beside the destination is among the others.
    let mut needed: Needed = HashMap::new();
    for asked in written().flat_map(|planned| &planned.after) {
        let sum = needed.entry((asked.provider, asked.class)).or_default();
        *sum = sum.saturating_add(asked.amount.into());
    }
    let mut shortages = Vec::new();
    let mut told = BTreeSet::new();
    for asked in written().flat_map(|planned| &planned.after) {
        if let Some(shortage) = shortage_of(state, plan, &needed, asked, &demand, units)
            && (!is_of_all(shortage.cause) || told.insert((asked.provider, asked.class)))
        {
            shortages.push(shortage);
        }
        if shortages.len() == limits::SHORTAGES {
            break;
        }
    }
    let Some(first) = shortages.first() else { return Ok(()) };
    let cause = match first.cause {
        ShortageCause::Capacity => Cause::Capacity,
        ShortageCause::Retiring => Cause::Retiring,
        _ => Cause::Constraint,
    };
    Err(Refusal { shortages, ..Refusal::because(cause) })
}

/// What the consumers of a plan ask for of each provider and class, all together.
type Needed = HashMap<(ProviderId, u32), u64>;

/// Whether it is about all consumers of the plan together, so that it is told once.
fn is_of_all(cause: ShortageCause) -> bool {
    matches!(cause, ShortageCause::Capacity | ShortageCause::Retiring)
}

fn check_inventories(state: &State, plan: &[Planned]) -> Result<(), Refusal> {
    let asked: Vec<&Allocation> = plan
        .iter()
        .filter(|planned| !planned.untouched)
        .flat_map(|planned| &planned.after)
        .collect();
    let lacks = |asked: &Allocation| row(state, asked.provider).inventory(asked.class).is_none();
    let mut without: Vec<&Allocation> =
        asked.iter().copied().filter(|asked| lacks(asked)).collect();
    let Some(&first) = without.first() else { return Ok(()) };
    // A provider that has no inventory of any class the request names is told first, with all such
    // providers and all the request's classes.
    let classes: BTreeSet<u32> = asked.iter().map(|asked| asked.class).collect();
    let mut bare: BTreeSet<ProviderId> = without.iter().map(|asked| asked.provider).collect();
    bare.retain(|&id| row(state, id).inventories.iter().all(|row| !classes.contains(&row.class)));
    let name = |class: &u32| state.classes().name(*class).to_string();
    let uuid = |id: &ProviderId| row(state, *id).uuid;
    let cause = if bare.is_empty() {
        without.retain(|asked| asked.provider == first.provider && asked.class == first.class);
        Cause::NoInventory {
            classes: vec![name(&first.class)],
            providers: vec![uuid(&first.provider)],
        }
    } else {
        without.retain(|asked| bare.contains(&asked.provider));
        Cause::NoInventory {
            classes: classes.iter().map(name).collect(),
            providers: bare.iter().map(uuid).collect(),
        }
    };
    let shortages = without
        .iter()
        .take(limits::SHORTAGES)
        .map(|asked| Shortage {
            provider: uuid(&asked.provider),
            class: name(&asked.class),
            needed: u64::from(asked.amount),
            free: 0,
            cause: ShortageCause::NoInventory,
        })
        .collect();
    Err(Refusal { shortages, ..Refusal::because(cause) })
}

/// Why one allocation of the plan does not fit, if it does not.
fn shortage_of(
    state: &State,
    plan: &[Planned],
    needed: &Needed,
    asked: &Allocation,
    demand: &Demand,
    units: Units,
) -> Option<Shortage> {
    let provider = row(state, asked.provider);
    let kept = provider.inventory(asked.class)?;
    let inventory = &kept.inventory;
    let held = demand
        .get(&(asked.provider, asked.class))
        .copied()
        .unwrap_or(HeldChange { before: 0, after: 0 });
    let needed = needed.get(&(asked.provider, asked.class)).copied().unwrap_or(0);
    let others = signed(held.after.saturating_sub(needed));
    let free = inventory.capacity_shown().saturating_sub(others);
    let free = if kept.closed { free.min(0) } else { free };
    let told = |needed, cause| {
        Some(Shortage {
            provider: provider.uuid,
            class: state.classes().name(asked.class).to_string(),
            needed,
            free,
            cause,
        })
    };
    if kept.closed && held.after > held.before {
        return told(needed, ShortageCause::Retiring);
    }
    let is_checked = units == Units::All || asked.amount > most_held(state, plan, asked);
    if let Some(cause) = unit_broken(inventory, asked.amount).filter(|_| is_checked) {
        return told(u64::from(asked.amount), cause);
    }
    if held.after as f64 > inventory.capacity() && held.after > held.before {
        return told(needed, ShortageCause::Capacity);
    }
    None
}

/// The most that a consumer of the plan holds of a provider and class now.
fn most_held(state: &State, plan: &[Planned], asked: &Allocation) -> u32 {
    let rows = plan.iter().filter_map(|planned| state.consumer(planned.consumer));
    rows.map(|row| row.amount(asked.provider, asked.class)).max().unwrap_or(0)
}

/// Which unit of an inventory an amount breaks.
fn unit_broken(inventory: &Inventory, amount: u32) -> Option<ShortageCause> {
    match inventory {
        it if amount < it.min_unit => Some(ShortageCause::MinUnit(it.min_unit)),
        it if amount > it.max_unit => Some(ShortageCause::MaxUnit(it.max_unit)),
        it if !amount.is_multiple_of(it.step_size.max(1)) => {
            Some(ShortageCause::StepSize(it.step_size))
        }
        _ => None,
    }
}

/// Checks that each amount of an option obeys the units of its inventory.
///
/// # Errors
/// [`Cause::Constraint`] with the first that does not.
pub(crate) fn check_units(state: &State, option: &[Allocation]) -> Result<(), Refusal> {
    for asked in option {
        let provider = row(state, asked.provider);
        let Some(kept) = provider.inventory(asked.class) else { continue };
        let Some(cause) = unit_broken(&kept.inventory, asked.amount) else { continue };
        let shortage = Shortage {
            provider: provider.uuid,
            class: state.classes().name(asked.class).to_string(),
            needed: u64::from(asked.amount),
            free: kept.free(),
            cause,
        };
        return Err(Refusal { shortages: vec![shortage], ..Refusal::because(Cause::Constraint) });
    }
    Ok(())
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The row of a provider that a plan names: its numbers come from [`resolve`] or from rows of this
/// very state, and nothing removes a provider while something of it is held or asked for.
fn row(state: &State, id: ProviderId) -> &Provider {
    state.provider_row(id).expect("a resolved provider has a row")
}

/// The generations that a write of these consumers leads to: each provider named in what they
/// hold after moves on by one, and so does each that an emptied consumer held.
pub(crate) fn generations_after(state: &State, plan: &[Planned]) -> Generations {
    let mut after = Generations::new();
    for planned in plan.iter().filter(|planned| !planned.untouched) {
        let held =
            state.consumer(planned.consumer).map(|row| row.allocations.clone()).unwrap_or_default();
        let bumped = if planned.after.is_empty() { &held } else { &planned.after };
        for allocation in bumped {
            let generation = row(state, allocation.provider).generation;
            after.insert(allocation.provider, generation.saturating_add(1));
        }
    }
    after
}

/// The body of the event in which these consumers change.
pub(crate) fn event_body(
    state: &State,
    plan: &[Planned],
    generations: &Generations,
    moves: Vec<Move>,
    via: Via,
) -> AllocationEvent {
    let writes: Vec<Write> = plan.iter().map(Planned::write).collect();
    let demand = held_after(state, &writes);
    AllocationEvent {
        consumers: plan.iter().filter_map(|planned| consumer_change(state, planned)).collect(),
        providers: provider_changes(state, plan, generations, &demand),
        moves: with_refreshed_moves(state, plan, moves, via),
        via,
        reason: None,
        finding: None,
        option: None,
        passed_over: Vec::new(),
        host: None,
        left: None,
    }
}

/// Adds the event that `kind` makes of a body.
pub(crate) fn emit(
    draft: &mut Draft<'_>,
    kind: fn(AllocationEvent) -> Event,
    body: AllocationEvent,
) {
    draft.emit(kind(body));
}

fn consumer_change(state: &State, planned: &Planned) -> Option<ConsumerChange> {
    let before = state.consumer(planned.consumer);
    let held = before.map(|row| row.allocations.clone()).unwrap_or_default();
    if held.is_empty() && planned.after.is_empty() {
        return None;
    }
    let generation = match (before, planned.after.is_empty()) {
        (_, true) => None,
        (None, false) => Some(planned.generation.unwrap_or(1)),
        (Some(row), false) if planned.untouched => Some(row.generation),
        (Some(row), false) => Some(row.generation.saturating_add(1)),
    };
    Some(ConsumerChange {
        consumer: planned.consumer,
        project_id: planned.owner.project_id.clone(),
        user_id: planned.owner.user_id.clone(),
        consumer_type: planned.owner.consumer_type.clone(),
        owner_before: before
            .map(|row| owner_of(state, row))
            .filter(|owner| *owner != planned.owner),
        generation,
        holdings: holding_changes(state, &held, &planned.after),
        link: planned.link.clone().filter(|_| !planned.after.is_empty()),
    })
}

fn holding_changes(state: &State, before: &Allocations, after: &Allocations) -> Vec<HoldingChange> {
    let mut by_provider: BTreeMap<ProviderId, BTreeMap<u32, (u64, u64)>> = BTreeMap::new();
    for held in before {
        by_provider.entry(held.provider).or_default().entry(held.class).or_default().0 =
            held.amount.into();
    }
    for held in after {
        by_provider.entry(held.provider).or_default().entry(held.class).or_default().1 =
            held.amount.into();
    }
    by_provider
        .into_iter()
        .map(|(provider, amounts)| HoldingChange {
            provider: row(state, provider).uuid,
            amounts: amounts
                .into_iter()
                .map(|(class, (before, after))| amount_change(state, class, before, after))
                .collect(),
        })
        .collect()
}

fn amount_change(state: &State, class: u32, before: u64, after: u64) -> AmountChange {
    AmountChange { class: state.classes().name(class).to_string(), before, after }
}

fn provider_changes(
    state: &State,
    plan: &[Planned],
    generations: &Generations,
    demand: &Demand,
) -> Vec<ProviderChange> {
    let mut touched: BTreeMap<ProviderId, Vec<AmountChange>> = BTreeMap::new();
    for (&(provider, class), held) in demand {
        let changes = touched.entry(provider).or_default();
        if held.before != held.after {
            changes.push(amount_change(state, class, held.before, held.after));
        }
    }
    let mut named: BTreeSet<ProviderId> = BTreeSet::new();
    for planned in plan {
        named.extend(planned.after.iter().map(|held| held.provider));
        if let Some(row) = state.consumer(planned.consumer) {
            named.extend(row.allocations.iter().map(|held| held.provider));
        }
    }
    touched
        .into_iter()
        .filter(|(provider, held)| named.contains(provider) || !held.is_empty())
        .map(|(provider, held)| {
            let current = row(state, provider);
            let generation = generations.get(&provider).copied().unwrap_or(current.generation);
            ProviderChange {
                provider: current.uuid,
                generation: generation.max(current.generation),
                held,
            }
        })
        .collect()
}

/// Whose a consumer is.
pub(crate) fn owner_of(state: &State, row: &Consumer) -> Owner {
    Owner {
        project_id: state.projects().name(row.project).to_string(),
        user_id: state.users().name(row.user).to_string(),
        consumer_type: row.consumer_type.map(|id| state.consumer_types().name(id).to_string()),
    }
}

/// What a consumer holds once the plan is carried out.
pub(crate) fn allocations_after(
    state: &State,
    plan: &[Planned],
    consumer: ConsumerUuid,
) -> Allocations {
    match plan.iter().find(|planned| planned.consumer == consumer) {
        Some(planned) => planned.after.clone(),
        None => state.consumer(consumer).map(|row| row.allocations.clone()).unwrap_or_default(),
    }
}

/// The moves that the event names, and all other live ones whose sides the plan writes: both
/// holdings follow what the consumers really hold.
fn with_refreshed_moves(state: &State, plan: &[Planned], named: Vec<Move>, via: Via) -> Vec<Move> {
    let mut moves = named;
    for planned in plan.iter().filter(|planned| !planned.untouched) {
        for entry in state.moves().of(planned.consumer) {
            let known = moves.iter().any(|this| this.id == entry.this.id);
            if known || !entry.this.state.is_live() {
                continue;
            }
            let fresh = refreshed(state, plan, &entry.this, via);
            if fresh != entry.this {
                moves.push(fresh);
            }
        }
    }
    moves
}

/// A live move with its holdings and state as they stand once the plan is carried out.
pub(crate) fn refreshed(state: &State, plan: &[Planned], this: &Move, via: Via) -> Move {
    let mut fresh = this.clone();
    let after = allocations_after(state, plan, this.instance);
    let instance = state.holding(&after);
    match this.migration {
        Some(migration) => {
            fresh.source = state.holding(&allocations_after(state, plan, migration));
            fresh.destination = instance;
            let latest = state
                .moves()
                .live_of_instance(this.instance)
                .next()
                .is_none_or(|entry| entry.this.id == this.id);
            if !fresh.destination.is_empty() {
                fresh.state = MoveState::Claimed;
            } else if latest {
                fresh.state = MoveState::Open;
                fresh.arrived = false;
            }
        }
        None => {
            let before = allocations_after(state, &[], this.instance);
            let sides = Sides::of(state, this);
            let sides = sides.follow(state, &before, &after, via == Via::Reshaper);
            fresh.source = state.holding(&sides.source);
            fresh.destination = state.holding(&sides.destination);
            if fresh.destination.is_empty() {
                fresh.state = MoveState::Open;
                fresh.arrived = false;
            }
        }
    }
    // A side that is gone leaves nothing that a command could end.
    if fresh.source.is_empty() && (fresh.destination.is_empty() || fresh.migration.is_some()) {
        let stays = !fresh.destination.is_empty();
        fresh.state = if stays { MoveState::Confirmed } else { MoveState::Abandoned };
        fresh.alternates.clear();
        fresh.arrived &= stays;
    }
    fresh
}

/// The provider's row, or the refusal that says there is none.
pub(crate) fn provider_row(
    state: &State,
    provider: ProviderUuid,
) -> Result<(ProviderId, &Provider), Refusal> {
    state
        .provider_id(provider)
        .and_then(|id| state.provider_row(id).map(|row| (id, &**row)))
        .ok_or_else(|| Cause::ProviderNotFound { provider }.into())
}
