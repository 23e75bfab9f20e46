//! `retire`: many providers go as one group, or none does (Launchpad bug 1811726: of a service that
//! managed many nodes only the first one's provider was removed); or each goes when it is free.

use super::plan::{malformed, provider_row};
use super::retire_when_free::{is_free, wish};
use super::{Decision, holders};
use crate::command::{Retire, WhichProviders};
use crate::decide::Draft;
use crate::event::{Event, ProviderDeleted, Unchanged, Wishes};
use crate::limits;
use crate::refusal::{Cause, Refusal};
use crate::state::{ProviderId, State};
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Retire) -> Decision {
    let ids = from_below(&draft.state, providers(&draft.state, &command.which)?);
    if !command.when_free {
        refuse_in_use(&draft.state, &ids)?;
    }
    if ids.len() > limits::EVENTS {
        return Err(crate::decide::too_large("providers of one write", limits::EVENTS));
    }
    let mut changed = false;
    for id in ids {
        let Some(row) = draft.state.provider_row(id).cloned() else { continue };
        if is_free(&draft.state, id) {
            let event = ProviderDeleted { provider: row.uuid, name: row.name.to_string() };
            draft.emit(Event::ProviderDeleted(event));
            changed = true;
        } else {
            let wishes = Wishes { whole: true, ..row.wishes(draft.state.classes()) };
            changed |= wish(draft, row.uuid, wishes, command.reason.clone());
        }
    }
    Ok((!changed).then_some(Unchanged::NoChange))
}

fn providers(state: &State, which: &WhichProviders) -> Result<BTreeSet<ProviderId>, Refusal> {
    let found: BTreeSet<ProviderId> = match which {
        WhichProviders::Providers(all) => all
            .iter()
            .map(|provider| provider_row(state, *provider).map(|(id, _)| id))
            .collect::<Result<_, _>>()?,
        WhichProviders::Aggregate(name) => {
            let number = state.aggregates().number(name);
            let members =
                state.providers().filter(|(_, row)| number.is_some_and(|it| row.is_in(it)));
            members.map(|(id, _)| id).collect()
        }
        WhichProviders::Subtree(top) => {
            state.subtree(provider_row(state, *top)?.0).into_iter().collect()
        }
    };
    if found.is_empty() {
        return Err(malformed("there is no such provider to retire".into()).into());
    }
    Ok(found)
}

/// Children before their parents; otherwise in the order of uuids.
fn from_below(state: &State, ids: BTreeSet<ProviderId>) -> Vec<ProviderId> {
    let depth = |id: ProviderId| {
        let parent = |id: &ProviderId| state.provider_row(*id).and_then(|row| row.parent);
        std::iter::successors(Some(id), parent).count()
    };
    let mut ids: Vec<ProviderId> = ids.into_iter().collect();
    ids.sort_by_cached_key(|&id| (Reverse(depth(id)), state.provider_row(id).map(|row| row.uuid)));
    ids
}

fn refuse_in_use(state: &State, ids: &[ProviderId]) -> Result<(), Refusal> {
    let all: BTreeSet<ProviderId> = ids.iter().copied().collect();
    let is_parent = |id: ProviderId| state.children(id).any(|child| !all.contains(&child));
    let held: Vec<ProviderId> = ids.iter().copied().filter(|&id| state.is_held(id)).collect();
    let parents: Vec<ProviderId> = ids.iter().copied().filter(|&id| is_parent(id)).collect();
    if held.is_empty() && parents.is_empty() {
        return Ok(());
    }
    let holders = (!held.is_empty()).then(|| Box::new(holders::of_providers(state, &held)));
    let (in_use, with_children) = (held.len() as u64, parents.len() as u64);
    let told: BTreeSet<ProviderId> =
        held.into_iter().chain(parents).take(limits::PROVIDERS_TOLD).collect();
    let providers = told.into_iter().filter_map(|id| Some(state.provider_row(id)?.uuid)).collect();
    let cause = Cause::CannotRetire { total: ids.len() as u64, in_use, with_children, providers };
    Err(Refusal { held_by: holders, ..Refusal::because(cause) })
}

#[cfg(test)]
pub(super) mod tests {
    use crate::command::{Command, Retire, SetAggregates, WhichProviders};
    use crate::commands::providers::tests::under;
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    pub(crate) fn retire(hosts: &[u128], when_free: bool) -> Command {
        let providers = hosts.iter().map(|number| provider(*number)).collect();
        all_of(WhichProviders::Providers(providers), when_free)
    }

    fn all_of(which: WhichProviders, when_free: bool) -> Command {
        Command::Retire(Retire { which, when_free, reason: None })
    }

    /// Launchpad bug 1811726, case B18.
    #[test]
    fn all_go_or_none_does_and_those_in_use_are_named() {
        let hosts: Vec<u128> = (1..=300).collect();
        let mut world =
            hosts.iter().fold(World::new(), |world, host| world.host(*host, &[("VCPU", 1)]));
        for host in [7, 200] {
            world.ok(claim(host, &[holding(&[(host, &[("VCPU", 1)])])]));
        }
        let Cause::CannotRetire { total, in_use, with_children, providers } =
            world.refused(retire(&hosts, false)).cause
        else {
            panic!("another cause")
        };
        assert_eq!((total, in_use, with_children), (300, 2, 0));
        assert_eq!(providers, [provider(7), provider(200)]);
        assert_eq!(world.state.provider_count(), 300);
        world.ok(release(7, false));
        world.ok(release(200, false));
        assert_eq!(world.ok(retire(&hosts, false)).events.len(), 300);
        assert_eq!(world.state.provider_count(), 0);
    }

    #[test]
    fn a_subtree_or_an_aggregate_goes_whole() {
        let mut world = (1..=4).fold(World::new(), |world, host| world.host(host, &[("VCPU", 1)]));
        world.ok(under(2, Some(1)));
        world.ok(under(3, Some(2)));
        let alone = world.refused(retire(&[1], false)).cause;
        assert!(matches!(alone, Cause::CannotRetire { in_use: 0, with_children: 1, .. }));
        world.ok(all_of(WhichProviders::Subtree(provider(2)), false));
        assert_eq!(world.state.provider_count(), 2);
        for host in [1, 4] {
            world.ok(Command::SetAggregates(SetAggregates {
                provider: provider(host),
                generation: None,
                aggregates: vec!["rack".into()],
            }));
        }
        let none = world.refused(all_of(WhichProviders::Aggregate("row".into()), false)).cause;
        assert!(matches!(none, Cause::Malformed { .. }));
        world.ok(all_of(WhichProviders::Aggregate("rack".into()), false));
        assert_eq!(world.state.provider_count(), 0);
        assert!(matches!(world.refused(retire(&[9], true)).cause, Cause::ProviderNotFound { .. }));
    }
}
