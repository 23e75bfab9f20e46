//! The usage view of a state, so that a start need not fold the whole log.

use super::in_flight::InFlight;
use super::totals::{OwnerKey, Sum, Totals};
use super::{ClassUsage, ProviderUsage, UsageView};
use crate::class_names::ClassNames;
use crate::links::{Amounts, Links};
use ledger::ids::LinkId;
use ledger::state::{Consumer, Provider, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The view that folding the whole log up to the state's sequence gives.
pub(super) fn seed(state: &State) -> UsageView {
    let mut view = UsageView {
        sequence: state.sequence(),
        as_of: state.position().recorded_at,
        classes: ClassNames::from_state(state),
        totals: totals(state),
        ..UsageView::default()
    };
    view.providers =
        state.providers().map(|(_, row)| (row.uuid, Arc::new(provider(row)))).collect();
    view.in_flight = in_flight(state);
    link(&mut view, state);
    count_moves(&mut view);
    view
}

fn provider(row: &Provider) -> ProviderUsage {
    let classes = row.inventories.iter().map(|row| ClassUsage {
        class: row.class,
        inventory: row.inventory,
        held: row.held,
        held_by_moves: 0,
    });
    ProviderUsage { generation: row.generation, classes: classes.collect() }
}

fn key(row: &Consumer) -> OwnerKey {
    (row.project, row.user, row.consumer_type.map_or(0, |number| number + 1))
}

/// The sums of all consumers; of those in link groups only their number.
fn totals(state: &State) -> Totals {
    let mut sums: BTreeMap<OwnerKey, Sum> = BTreeMap::new();
    for (_, row) in state.consumers() {
        let sum = sums.entry(key(row)).or_default();
        sum.consumers += 1;
        if row.link.is_none() {
            for held in &row.allocations {
                let amount = sum.amounts.entry(held.class).or_default();
                *amount = amount.saturating_add(held.amount.into());
            }
        }
    }
    Totals {
        projects: state.projects().clone(),
        users: state.users().clone(),
        types: state.consumer_types().clone(),
        sums: sums.into_iter().map(|(key, sum)| (key, Arc::new(sum))).collect(),
    }
}

/// The live moves of a state; what their holders give up is still to be counted.
pub(super) fn in_flight(state: &State) -> InFlight {
    let mut found = InFlight::default();
    for entry in state.moves().iter().filter(|entry| entry.this.state.is_live()) {
        found.put(&entry.this);
        for side in [Some(entry.this.instance), entry.this.migration].into_iter().flatten() {
            found.note_owner(side, state.consumer(side).map(|row| key(row)));
        }
    }
    found
}

fn link(view: &mut UsageView, state: &State) {
    let mut links = Links::default();
    let groups: BTreeSet<LinkId> = state.consumers().filter_map(|(_, row)| row.link).collect();
    for group in groups {
        join(&mut links, state, group);
        links.share_out(group, |consumer| view.in_flight.is_migration(consumer));
        for &consumer in links.members_of(group) {
            if let Some(member) = links.member(consumer) {
                view.totals.add(member.owner, 0, member.shares());
            }
        }
    }
    view.links = links;
}

/// Puts the members of a group of the state into it; their shares are still to be worked out.
pub(super) fn join(links: &mut Links, state: &State, id: LinkId) {
    let Some(group) = state.link(id) else { return };
    for row in group.members.iter().filter_map(|&member| state.consumer(member)) {
        links.join(row.uuid, (id, group.covered.clone()), holds(state, row), key(row));
    }
}

fn holds(state: &State, row: &Consumer) -> Amounts {
    let amount = |held: &ledger::state::Allocation| {
        let provider = state.provider_row(held.provider)?.uuid;
        Some((provider, held.class, u64::from(held.amount)))
    };
    let mut found: Amounts = row.allocations.iter().filter_map(amount).collect();
    found.sort_unstable();
    found
}

fn count_moves(view: &mut UsageView) {
    for holder in view.in_flight.holders() {
        for &(provider, class, amount) in
            view.in_flight.count(holder, &view.classes, &view.links).iter()
        {
            let row = view.providers.get_mut(&provider).map(Arc::make_mut);
            if let Some(usage) = row.and_then(|row| row.class_mut(class)) {
                usage.held_by_moves = usage.held_by_moves.saturating_add(amount);
            }
        }
    }
}
