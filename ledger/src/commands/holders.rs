//! Who holds what stands in a command's way, for its refusal (Launchpad bugs 1829479, 1852610 and
//! 1813252: a provider cannot be deleted, and nobody says what blocks it). No more holdings are
//! looked at than [`limits::HOLDERS_COUNTED`], so that a refusal on a storage provider that all
//! consumers share costs the writer no more than one on a host.

use crate::event::Move;
use crate::ids::{ConsumerUuid, MoveId};
use crate::limits;
use crate::refusal::{Holder, Holders, Refusal, ShortageCause};
use crate::state::{ClassId, Consumer, ProviderId, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A refusal for want of room with those who hold the room: of the first shortage that is told.
pub(super) fn named(state: &State, refusal: Refusal) -> Refusal {
    let of_options = refusal.passed_over.iter().flat_map(|option| &option.shortages);
    let lacking = refusal.shortages.iter().chain(of_options);
    let mut lacking = lacking.filter(|shortage| shortage.cause == ShortageCause::Capacity);
    let found = lacking.find_map(|shortage| {
        let class = state.classes().id(&shortage.class)?;
        Some(of_class(state, state.provider_id(shortage.provider)?, class))
    });
    match found {
        Some(holders) if refusal.held_by.is_none() => refusal.held_by(holders),
        _ => refusal,
    }
}

/// Who holds most of a class on a provider.
fn of_class(state: &State, provider: ProviderId, class: ClassId) -> Holders {
    let mut found = Found::of(state, &[provider], |row| u64::from(row.amount(provider, class)));
    found.holders.sort_by_key(|holder| (Reverse(holder.amount), holder.consumer));
    let class = state.classes().name(class).to_string();
    found.told(state, &[provider], Some(class))
}

/// Who holds something of these providers.
pub(super) fn of_providers(state: &State, providers: &[ProviderId]) -> Holders {
    let mut found = Found::of(state, providers, |_| 1);
    found.moves_first();
    found.told(state, providers, None)
}

/// Who holds something of these classes on a provider.
pub(super) fn of_classes(state: &State, provider: ProviderId, classes: &[ClassId]) -> Holders {
    if let [class] = classes {
        return of_class(state, provider, *class);
    }
    let holds = |row: &Consumer| {
        let mut held = row.allocations.iter().filter(|held| held.provider == provider);
        u64::from(held.any(|held| classes.contains(&held.class)))
    };
    let mut found = Found::of(state, &[provider], holds);
    found.moves_first();
    found.told(state, &[provider], None)
}

/// The consumers that were found, and the live moves with a side there.
struct Found {
    holders: Vec<Holder>,
    moves: BTreeSet<MoveId>,
    more: bool,
}

impl Found {
    fn of(state: &State, providers: &[ProviderId], amount: impl Fn(&Consumer) -> u64) -> Self {
        let mut found: BTreeMap<ConsumerUuid, Holder> = BTreeMap::new();
        let mut moves = BTreeSet::new();
        let mut holdings =
            providers.iter().flat_map(|&id| state.holders(id).map(move |it| (id, it)));
        for (provider, row) in holdings.by_ref().take(limits::HOLDERS_COUNTED) {
            let amount = amount(row);
            if amount == 0 {
                continue;
            }
            let mut live = live_moves(state, provider, row.uuid);
            let latest = live.next();
            moves.extend(latest.into_iter().chain(live));
            let holder = found.entry(row.uuid).or_insert(Holder {
                consumer: row.uuid,
                amount: Some(amount),
                move_id: None,
            });
            holder.move_id = holder.move_id.or(latest);
        }
        let more = holdings.next().is_some();
        Self { holders: found.into_values().collect(), moves, more }
    }

    /// Amounts of several classes are no sum; what a live move is about comes first, since it has
    /// to end first.
    fn moves_first(&mut self) {
        self.holders.iter_mut().for_each(|holder| holder.amount = None);
        self.holders.sort_by_key(|holder| (holder.move_id.is_none(), holder.consumer));
    }

    fn told(self, state: &State, providers: &[ProviderId], class: Option<String>) -> Holders {
        let consumers = self.holders.len() as u64;
        let provider = match providers {
            [one] => state.provider_row(*one).map(|row| row.uuid),
            _ => None,
        };
        let first = self.holders.into_iter().take(limits::HOLDERS_TOLD).collect();
        let moves = self.moves.len() as u64;
        Holders { provider, class, consumers, moves, more: self.more, first }
    }
}

/// The live moves with a side on a provider that a consumer is the instance or the migration of,
/// latest first.
fn live_moves(
    state: &State,
    provider: ProviderId,
    consumer: ConsumerUuid,
) -> impl Iterator<Item = MoveId> + '_ {
    let uuid = state.provider_row(provider).map(|row| row.uuid);
    let is_there = move |this: &Move| {
        uuid.is_some_and(|at| this.source.contains_key(&at) || this.destination.contains_key(&at))
    };
    let live = state.moves().of(consumer).filter(|entry| entry.this.state.is_live());
    live.filter(move |entry| is_there(&entry.this)).map(|entry| entry.this.id)
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::limits;
    use crate::refusal::Cause;

    fn on(host: u128, amount: u32) -> crate::amounts::Holding {
        holding(&[(host, &[("VCPU", amount)])])
    }

    /// Case F5: the largest first, moves marked.
    #[test]
    fn a_claim_without_room_names_those_who_hold_most() {
        let mut world = World::new().host(1, &[("VCPU", 40)]).host(2, &[("VCPU", 8)]);
        for number in 1..=20 {
            world.ok(claim(number, &[on(1, if number == 7 { 3 } else { 1 })]));
        }
        world.ok(to_migration(20, 900));
        let refusal = world.refused(claim(50, &[on(1, 30)]));
        assert_eq!(refusal.cause, Cause::Capacity);
        let told = refusal.held_by.unwrap();
        assert_eq!((told.provider, told.class.as_deref()), (Some(provider(1)), Some("VCPU")));
        assert_eq!((told.consumers, told.moves, told.more), (20, 1, false));
        assert_eq!(told.first.len(), limits::HOLDERS_TOLD);
        assert_eq!((told.first[0].consumer, told.first[0].amount), (consumer(7), Some(3)));
        // Of equal ones those with the smallest id: the migration is not among the first.
        assert!(told.first.iter().all(|holder| holder.move_id.is_none()));
        // Of options the first that lacks room is told.
        let refusal = world.refused(claim(50, &[on(2, 9), on(1, 30)]));
        assert_eq!(refusal.cause, Cause::NoOptionFits);
        assert!(refusal.held_by.is_some());
    }

    #[test]
    fn counting_ends_somewhere() {
        let all = limits::HOLDERS_COUNTED as u128 + 10;
        let mut world = World::new().host(1, &[("VCPU", 1_000_000)]);
        let claims: Vec<_> = (1..=all).map(|number| claim(number, &[on(1, 1)])).collect();
        // In groups that each fit into the bytes that a group may have.
        for group in claims.chunks(512) {
            world.list(group).unwrap();
        }
        let told = world.refused(claim(all + 1, &[on(1, 1_000_000)])).held_by.unwrap();
        assert!(told.more);
        assert_eq!(told.consumers, limits::HOLDERS_COUNTED as u64);
    }
}
