//! `release_all`: a provider is freed of all that is held on it, for a host that will not come back
//! (Launchpad bug 1781430: a deletion by provider took all that the first consumer had anywhere, and
//! nothing of the others). Each consumer keeps what it has elsewhere. Live moves whose side is
//! emptied end, or are open again, by the rules that plain writes are named by.
//!
//! One command is one group. Where more is held than fits into one, `at_most` says how many
//! consumers a group may free; the last event says how many are left, and the command is repeated
//! until none is.

use super::Decision;
use super::naming::PlainWrite;
use super::plan::{owner_of, provider_row};
use super::replace_allocations::{Note, carry_out};
use crate::command::{ReleaseAll, Via};
use crate::decide::{Draft, too_large};
use crate::event::{Event, Unchanged};
use crate::ids::ConsumerUuid;
use crate::limits;
use crate::state::{Consumer, ProviderId, State};
use std::collections::BTreeSet;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReleaseAll) -> Decision {
    let (provider, _) = provider_row(&draft.state, command.provider)?;
    let at_most = command.at_most.map_or(usize::MAX, |most| most as usize);
    let mut trial = draft.trial();
    let (mut freed, mut bytes) = (0, 0);
    let mut seen = BTreeSet::new();
    for row in draft.state.holders(provider) {
        if seen.contains(&row.uuid) {
            continue;
        }
        // Both sides of a move go in one group, also where that is one more than was asked for.
        if freed >= at_most {
            break;
        }
        let consumers = sides(&draft.state, provider, row.uuid);
        let mut next = trial.trial();
        let writes: Vec<PlainWrite> =
            consumers.iter().filter_map(|who| without(&next.state, provider, *who)).collect();
        carry_out(&mut next, &writes, &note(command))?;
        bytes += next.events.iter().map(encoded_bytes).sum::<usize>();
        if bytes > limits::RELEASE_ALL_BYTES {
            if command.at_most.is_none() || freed == 0 {
                let what = "what is held of the provider, for one group; give at_most";
                return Err(too_large(what, limits::RELEASE_ALL_BYTES));
            }
            break;
        }
        trial.accept(next);
        freed += consumers.len();
        seen.extend(consumers);
    }
    let left = trial.state.holder_count(provider);
    let last = trial.events.last_mut().and_then(Event::allocations_mut);
    let Some(last) = last else { return Ok(Some(Unchanged::NoChange)) };
    last.left = Some(u32::try_from(left).unwrap_or(u32::MAX));
    draft.accept(trial);
    Ok(None)
}

fn note(command: &ReleaseAll) -> Note {
    Note { via: Via::Command, reason: command.reason.clone(), ended: false, shrinks: true }
}

/// A consumer that holds something of a provider, and those that are with it a side of a live move
/// and hold something there too.
fn sides(state: &State, provider: ProviderId, consumer: ConsumerUuid) -> BTreeSet<ConsumerUuid> {
    let moved = state.moves().live_of_migration(consumer);
    let instance = moved.map_or(consumer, |entry| entry.this.instance);
    let live = state.moves().live_of_instance(instance);
    let migrations = live.filter_map(|entry| entry.this.migration);
    let is_there = |who: &ConsumerUuid| {
        let row = state.consumer(*who);
        row.is_some_and(|row| row.allocations.iter().any(|held| held.provider == provider))
    };
    [consumer, instance].into_iter().chain(migrations).filter(is_there).collect()
}

/// The write by which a consumer lets go of a provider.
fn without(state: &State, provider: ProviderId, consumer: ConsumerUuid) -> Option<PlainWrite> {
    let row: &Consumer = state.consumer(consumer)?;
    let mut after = row.allocations.clone();
    after.retain(|held| held.provider != provider);
    let before = row.allocations.clone();
    Some(PlainWrite { consumer, before, after, owner: owner_of(state, row) })
}

fn encoded_bytes(event: &Event) -> usize {
    limits::BESIDE_BODY_BYTES + event.encode_body().map_or(0, |body| body.len())
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{Command, ReleaseAll};
    use crate::commands::testing::*;
    use crate::event::{Finding, MoveState};
    use crate::refusal::Cause;

    fn all_of(host: u128, at_most: Option<u32>) -> Command {
        let reason = Some("the host burnt".to_owned());
        Command::ReleaseAll(ReleaseAll { provider: provider(host), at_most, reason })
    }

    fn on(host: u128, amount: u32) -> Holding {
        holding(&[(host, &[("VCPU", amount)])])
    }

    fn cloud() -> World {
        (1..=2)
            .fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]))
            .host(3, &[("DISK_GB", 1000)])
    }

    /// Launchpad bug 1781430, case L3.
    #[test]
    fn each_consumer_keeps_what_it_has_elsewhere() {
        let mut world = cloud();
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)]), (3, &[("DISK_GB", 50)])])]));
        world.ok(claim(2, &[on(1, 4)]));
        world.ok(claim(3, &[on(2, 1)]));
        assert_eq!(world.kinds(all_of(1, None)), ["Reallocated", "Released"]);
        assert_eq!(world.last_body().reason.as_deref(), Some("the host burnt"));
        assert_eq!(world.last_body().left, Some(0));
        assert_eq!(world.holds(1), holding(&[(3, &[("DISK_GB", 50)])]));
        assert!(world.holds(2).is_empty());
        assert_eq!(world.holds(3), on(2, 1));
        assert_eq!((world.held(1, "VCPU"), world.held(3, "DISK_GB")), (0, 50));
        // Nothing is held of it any more.
        assert!(world.ok(all_of(1, None)).events.is_empty());
        assert!(matches!(world.refused(all_of(9, None)).cause, Cause::ProviderNotFound { .. }));
    }

    /// The source gone: confirmed. The destination gone: open again. Both gone, since they are on one
    /// host: abandoned, whichever of the two has the smaller number.
    #[test]
    fn moves_end_or_are_open_again_by_the_side_that_is_left() {
        for (broken, kinds, state) in [
            (1, &["Confirmed"][..], MoveState::Confirmed),
            (2, &["DestinationReleased"], MoveState::Open),
        ] {
            let mut world = cloud();
            world.ok(claim(1, &[on(1, 2)]));
            world.ok(to_migration(1, 9));
            world.ok(claim(1, &[on(2, 4)]));
            assert_eq!(world.kinds(all_of(broken, None)), kinds);
            assert_eq!(world.latest_move(1).state, state);
        }
        for migration in [1, 9] {
            let mut world = cloud();
            world.ok(claim(5, &[on(1, 2)]));
            world.ok(to_migration(5, migration));
            world.ok(claim(5, &[on(1, 4)]));
            // Both sides count together.
            let events = world.ok(all_of(1, Some(1))).events;
            assert_eq!(events.len(), 2);
            assert_eq!(world.latest_move(5).state, MoveState::Abandoned);
            let first = events[0].allocations().unwrap();
            assert_eq!(first.finding, Some(Finding::RunsWithoutAllocation));
            assert_eq!(world.held(1, "VCPU"), 0);
        }
    }

    #[test]
    fn a_double_up_ends_on_the_side_that_is_left() {
        for (broken, kind) in [(1, "Confirmed"), (2, "Reverted")] {
            let mut world = cloud();
            world.ok(claim(1, &[on(1, 2)]));
            let both = holding(&[(1, &[("VCPU", 2)]), (2, &[("VCPU", 2)])]);
            assert_eq!(world.kinds(put(1, both)), ["DoubledUp"]);
            assert_eq!(world.kinds(all_of(broken, None)), [kind]);
            assert_eq!(world.holds(1), on(3 - broken, 2));
        }
    }

    /// More than fits into one group: refused as a whole, or in as many groups as it takes.
    #[test]
    fn what_is_too_much_for_one_group_goes_in_several() {
        const HOLDERS: u128 = 1_000;
        let mut world = World::new().host(1, &[("VCPU", 1_000)]);
        let claims: Vec<Command> = (1..=HOLDERS).map(|it| claim(it, &[on(1, 1)])).collect();
        world.list(&claims).unwrap();
        let refusal = world.refused(all_of(1, None));
        assert!(matches!(refusal.cause, Cause::TooLarge { .. }));
        assert_eq!(world.held(1, "VCPU"), 1_000);
        assert_eq!(world.ok(all_of(1, Some(10))).events.len(), 10);
        assert_eq!(world.last_body().left, Some(990));
        let mut groups = 0;
        let mut left = 990;
        while left > 0 {
            let freed = world.ok(all_of(1, Some(u32::MAX))).events.len();
            left = world.last_body().left.unwrap();
            assert!(freed >= 100 || left == 0, "{freed} at once");
            groups += 1;
        }
        assert!(groups > 1);
        assert_eq!((world.held(1, "VCPU"), world.state.consumer_count()), (0, 0));
    }

    #[test]
    fn what_was_to_go_once_it_is_free_goes_in_the_same_group() {
        let mut world = cloud();
        world.ok(claim(1, &[on(1, 2)]));
        world.ok(crate::commands::retire::tests::retire(&[1], true));
        assert_eq!(world.kinds(all_of(1, None)), ["Released", "ProviderDeleted"]);
    }
}
