//! The sides of a double-up, where the instance holds both itself: which part of what it holds is
//! the source's, and which the destination's, whatever was written meanwhile.
//!
//! Sides follow what the instance holds: by provider and class first, then by tree. What only lets
//! go makes a side smaller. What moves within a tree (a reshape) takes its side's amount along.
//! What grows or is new belongs to the side whose provider or tree it is on; on a provider or tree
//! of both it belongs to both. What is on neither's (a port on a tree of its own) is the server's
//! and stays with it however the move ends.

use super::host::{is_sharing, root};
use crate::amounts::Holding;
use crate::event::Move;
use crate::ids::ConsumerUuid;
use crate::refusal::{Cause, Refusal};
use crate::state::consumer::amount_in;
use crate::state::{Allocation, Allocations, ClassId, ProviderId, State};
use std::collections::{BTreeMap, BTreeSet};

type Amounts = BTreeMap<(ProviderId, ClassId), u32>;

/// Both sides as the instance holds them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sides {
    pub(super) source: Allocations,
    pub(super) destination: Allocations,
}

impl Sides {
    /// The sides of a double-up as its last event left them.
    pub(super) fn of(state: &State, this: &Move) -> Self {
        Self {
            source: numbered(state, &this.source),
            destination: numbered(state, &this.destination),
        }
    }

    /// The sides once the instance holds `after` instead of `before`. A reshape may carry a side to
    /// another tree.
    pub(super) fn follow(
        &self,
        state: &State,
        before: &[Allocation],
        after: &[Allocation],
        reshaped: bool,
    ) -> Self {
        let follow = Follow { state, after, hosts: self.hosts(state) };
        let mut sides = [amounts(&self.source), amounts(&self.destination)];
        let old = sides.clone();
        let mut lost = [Vec::new(), Vec::new()];
        for (side, lost) in sides.iter_mut().zip(&mut lost) {
            *lost = follow.shrink(side);
        }
        let mut grown = growth(before, after);
        follow.carry(&mut sides, &mut lost, &mut grown, |from, to| {
            root(state, from) == root(state, to)
        });
        if reshaped {
            follow.carry(&mut sides, &mut lost, &mut grown, |_, _| true);
        }
        for (key, by) in grown.into_iter().filter(|(_, by)| *by > 0) {
            for side in follow.owners(&old, key) {
                *sides[side].entry(key).or_default() += by;
            }
        }
        let [source, destination] = sides.map(listed);
        Self { source, destination }
    }

    /// What is left of `held` when one side goes: what is the other's, and the server's own.
    pub(super) fn without(
        held: &[Allocation],
        goes: &[Allocation],
        stays: &[Allocation],
    ) -> Allocations {
        let mut left = Allocations::new();
        for one in held {
            let amount = match amount_in(stays, one.provider, one.class) {
                0 if amount_in(goes, one.provider, one.class) > 0 => continue,
                0 => one.amount,
                stays => stays.min(one.amount),
            };
            left.push(Allocation { amount, ..*one });
        }
        left
    }

    fn hosts(&self, state: &State) -> [BTreeSet<ProviderId>; 2] {
        [hosts_of(state, &self.source), hosts_of(state, &self.destination)]
    }
}

/// What an instance keeps when its double-up ends on the destination.
///
/// # Errors
/// [`Cause::NothingLeft`] if it holds nothing of the destination any more.
pub(super) fn destination_kept(state: &State, this: &Move) -> Result<Allocations, Refusal> {
    let sides = Sides::of(state, this);
    kept(state, this, "destination", &sides.source, &sides.destination)
}

/// What an instance keeps when its double-up ends on the source.
///
/// # Errors
/// [`Cause::NothingLeft`] if it holds nothing of the source any more.
pub(super) fn source_kept(state: &State, this: &Move) -> Result<Allocations, Refusal> {
    let sides = Sides::of(state, this);
    kept(state, this, "source", &sides.destination, &sides.source)
}

fn kept(
    state: &State,
    this: &Move,
    side: &str,
    goes: &[Allocation],
    stays: &[Allocation],
) -> Result<Allocations, Refusal> {
    let held = held_by(state, this.instance);
    let has = |one: &Allocation| amount_in(&held, one.provider, one.class) > 0;
    if !stays.iter().any(has) {
        let cause = Cause::NothingLeft { move_id: this.id, side: side.to_owned() };
        return Err(Refusal { move_id: Some(this.id), ..Refusal::because(cause) });
    }
    Ok(Sides::without(&held, goes, stays))
}

fn held_by(state: &State, consumer: ConsumerUuid) -> Allocations {
    state.consumer(consumer).map(|row| row.allocations.clone()).unwrap_or_default()
}

/// The numbers of a holding; what does not exist is left out.
fn numbered(state: &State, holding: &Holding) -> Allocations {
    let mut found = Allocations::new();
    for (uuid, resources) in holding {
        let Some(provider) = state.provider_id(*uuid) else { continue };
        for (class, &amount) in resources {
            if let Some(class) = state.classes().id(class) {
                found.push(Allocation { provider, class, amount });
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether anything is left of a side: of its trees, or of a side on shared storage alone, of that.
pub(super) fn is_left(state: &State, before: &[Allocation], after: &[Allocation]) -> bool {
    match hosts_of(state, before).is_empty() {
        true => !after.is_empty(),
        false => !hosts_of(state, after).is_empty(),
    }
}

/// The roots of the trees that allocations are on, sharing providers aside.
pub(super) fn hosts_of(state: &State, allocations: &[Allocation]) -> BTreeSet<ProviderId> {
    let own = allocations.iter().filter(|held| !is_sharing(state, held.provider));
    own.filter_map(|held| root(state, held.provider)).collect()
}

/// Sides that are being worked out.
struct Follow<'a> {
    state: &'a State,
    after: &'a [Allocation],
    hosts: [BTreeSet<ProviderId>; 2],
}

impl Follow<'_> {
    /// Cuts a side down to what is still held; tells what it lost.
    fn shrink(&self, side: &mut Amounts) -> Vec<((ProviderId, ClassId), u32)> {
        let mut lost = Vec::new();
        for (&key, amount) in side.iter_mut() {
            let has = amount_in(self.after, key.0, key.1);
            if has < *amount {
                lost.push((key, *amount - has));
                *amount = has;
            }
        }
        side.retain(|_, amount| *amount > 0);
        lost
    }

    /// Gives a side what it lost where the same class grew, on a provider that `is_near`.
    fn carry(
        &self,
        sides: &mut [Amounts; 2],
        lost: &mut [Vec<((ProviderId, ClassId), u32)>; 2],
        grown: &mut Amounts,
        is_near: impl Fn(ProviderId, ProviderId) -> bool,
    ) {
        for (&(provider, class), by) in grown.iter_mut() {
            let mut most = 0;
            for (side, lost) in sides.iter_mut().zip(lost.iter_mut()) {
                let mut taken = 0;
                let near = lost
                    .iter_mut()
                    .filter(|((from, of), _)| *of == class && is_near(*from, provider));
                for (_, left) in near {
                    let part = (*left).min(*by - taken);
                    *left -= part;
                    taken += part;
                }
                if taken > 0 {
                    *side.entry((provider, class)).or_default() += taken;
                }
                most = taken.max(most);
            }
            *by -= most;
        }
    }

    /// The sides that something new on a provider belongs to.
    fn owners(&self, old: &[Amounts; 2], key: (ProviderId, ClassId)) -> Vec<usize> {
        let named: Vec<usize> = (0..2).filter(|&side| old[side].contains_key(&key)).collect();
        if !named.is_empty() || is_sharing(self.state, key.0) {
            return named;
        }
        let Some(root) = root(self.state, key.0) else { return named };
        (0..2).filter(|&side| self.hosts[side].contains(&root)).collect()
    }
}

fn amounts(allocations: &[Allocation]) -> Amounts {
    allocations.iter().map(|held| ((held.provider, held.class), held.amount)).collect()
}

fn listed(amounts: Amounts) -> Allocations {
    let held = amounts.into_iter().filter(|(_, amount)| *amount > 0);
    held.map(|((provider, class), amount)| Allocation { provider, class, amount }).collect()
}

/// By how much what is held grows, by (provider, class).
fn growth(before: &[Allocation], after: &[Allocation]) -> Amounts {
    let by = |held: &Allocation| {
        held.amount.saturating_sub(amount_in(before, held.provider, held.class))
    };
    let grown = after.iter().map(|held| ((held.provider, held.class), by(held)));
    grown.filter(|(_, by)| *by > 0).collect()
}
