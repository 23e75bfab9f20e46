//! `claim`: takes the first of the ordered options that fits for a consumer that holds nothing. If
//! the consumer has an open move, this is the move's destination: it is linked with the source, so
//! that on a provider that both are on only the larger counts (Launchpad bug 1790204).

use super::Decision;
use super::host::host_of;
use super::options::{Taken, Wanted, take_first};
use super::plan::{self, Planned, check_fits, event_body, generations_after, resolve};
use crate::amounts::Holding;
use crate::command::{Claim, Via};
use crate::decide::Draft;
use crate::event::{Event, Link, Move, MoveState, Owner};
use crate::ids::{ConsumerUuid, LinkId};
use crate::refusal::{Cause, Refusal};
use crate::state::{State, link_of};
use uuid::Uuid;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Claim) -> Decision {
    let owner = Owner {
        project_id: command.project_id.clone(),
        user_id: command.user_id.clone(),
        consumer_type: command.consumer_type.clone(),
    };
    let state = &draft.state;
    let open = open_move(state, command.consumer);
    if state.consumer(command.consumer).is_some() {
        let cause = Cause::HoldsAlready { consumer: command.consumer };
        return Err(Refusal { move_id: open.map(|this| this.id), ..Refusal::because(cause) });
    }
    let wanted = Wanted::of(
        draft,
        command.consumer,
        &command.options,
        command.candidates.as_deref(),
        command.searched.as_ref(),
    )?;
    let move_id = open.as_ref().map(|this| this.id);
    let destination = open.map(|this| Destination { this, reason: None });
    wanted
        .take(|options| claim(draft, command.consumer, &owner, options, destination))
        .map_err(|refusal| Refusal { move_id, ..refusal })?;
    Ok(None)
}

/// The open move of which a consumer is the instance, its source being on a migration consumer.
pub(super) fn open_move(state: &State, consumer: ConsumerUuid) -> Option<Move> {
    let entry = state.moves().live_of_instance(consumer).next()?;
    let is_open = entry.this.state == MoveState::Open && entry.this.migration.is_some();
    is_open.then(|| entry.this.clone())
}

/// The move that a claim is the destination of.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) this: Move,
    pub(super) reason: Option<String>,
}

/// Claims the first option that fits for a consumer that holds nothing.
///
/// # Errors
/// See [`take_first`].
pub(super) fn claim(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    options: &[Holding],
    destination: Option<Destination>,
) -> Result<(), Refusal> {
    let move_id = destination.as_ref().map(|destination| destination.this.id);
    take_first(draft, options, |trial, option, taken| {
        claim_one(trial, consumer, owner, option, destination.clone(), taken)
    })
    .map_err(|refusal| Refusal { move_id, ..refusal })
}

/// Whether an option fits for a consumer that holds nothing; nothing is claimed.
///
/// # Errors
/// Why it does not.
pub(super) fn check(
    draft: &Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    option: &Holding,
    destination: Option<Destination>,
) -> Result<(), Refusal> {
    ready(&mut draft.trial(), consumer, owner, option, destination).map(drop)
}

/// Claims one option.
///
/// # Errors
/// Why it does not fit.
pub(super) fn claim_one(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    option: &Holding,
    destination: Option<Destination>,
    taken: Taken<'_>,
) -> Result<(), Refusal> {
    let Ready { plan, moves, reason } = ready(draft, consumer, owner, option, destination)?;
    let generations = generations_after(&draft.state, &plan);
    let mut body = event_body(&draft.state, &plan, &generations, moves, Via::Command);
    body.option = Some(taken.option);
    body.passed_over = taken.passed_over.to_vec();
    body.host = host_of(&draft.state, option);
    body.reason = reason;
    plan::emit(draft, Event::Claimed, body);
    Ok(())
}

/// A claim that fits.
struct Ready {
    plan: Vec<Planned>,
    moves: Vec<Move>,
    reason: Option<String>,
}

fn ready(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    option: &Holding,
    destination: Option<Destination>,
) -> Result<Ready, Refusal> {
    let after = resolve(&draft.state, option)?;
    let mut claimed = Planned {
        consumer,
        after,
        owner: owner.clone(),
        link: None,
        untouched: false,
        generation: None,
    };
    let mut plan = Vec::new();
    let mut moves = Vec::new();
    let mut reason = None;
    if let Some(Destination { this, reason: why }) = destination {
        let state = draft.state.clone();
        if let Some(source) = source_linked(&state, &this, &mut || draft.new_id()) {
            claimed.link.clone_from(&source.link);
            plan.push(source);
        }
        moves.push(Move { state: MoveState::Claimed, destination: option.clone(), ..this });
        reason = why;
    }
    plan.insert(0, claimed);
    check_fits(&draft.state, &plan)?;
    Ok(Ready { plan, moves, reason })
}

/// The migration consumer of a move, in the link group that the destination shall join: its own,
/// or a new one under today's setting. An earlier move can have left it alone in a group of an
/// older setting: then it leaves that for a new one. Is it not alone there, nothing is linked and
/// both sides count, since the older rule may forgive what today's does not.
pub(super) fn source_linked(
    state: &State,
    this: &Move,
    new_id: &mut dyn FnMut() -> Uuid,
) -> Option<Planned> {
    let migration = this.migration?;
    let row = state.consumer(migration)?;
    let today = state.overlap_today();
    let own = link_of(state, migration);
    let link = match own {
        Some(link) if link.overlap == today => link,
        Some(link) if state.link(link.group).is_some_and(|group| group.members.len() > 1) => {
            return None;
        }
        _ => Link { group: LinkId(new_id()), overlap: today },
    };
    Some(Planned {
        consumer: migration,
        after: row.allocations.clone(),
        owner: plan::owner_of(state, row),
        link: Some(link),
        untouched: true,
        generation: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::amounts::Holding;
    use crate::command::{ChangeSettings, Command, OverlapClasses};
    use crate::commands::testing::*;
    use crate::event::MoveState;
    use crate::refusal::{Cause, ShortageCause};

    #[test]
    fn the_first_option_that_fits_is_taken_and_the_others_are_told() {
        let mut world = World::new().host(1, &[("VCPU", 2)]).host(2, &[("VCPU", 8)]);
        let options = [holding(&[(1, &[("VCPU", 4)])]), holding(&[(2, &[("VCPU", 4)])])];
        assert_eq!(world.kinds(claim(1, &options)), ["Claimed"]);
        let body = world.last_body();
        assert_eq!(body.option, Some(1));
        assert_eq!(body.passed_over[0].cause, Cause::Capacity);
        let shortage = &body.passed_over[0].shortages[0];
        assert_eq!((shortage.needed, shortage.free), (4, 2));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
    }

    #[test]
    fn a_claim_that_fits_nowhere_changes_nothing() {
        let mut world = World::new().host(1, &[("VCPU", 2)]).host(2, &[("VCPU", 3)]);
        let options = [holding(&[(1, &[("VCPU", 4)])]), holding(&[(2, &[("VCPU", 4)])])];
        let refusal = world.refused(claim(1, &options));
        assert_eq!((refusal.cause, refusal.passed_over.len()), (Cause::NoOptionFits, 2));
        let refusal = world.refused(claim(1, &options[..1]));
        assert_eq!(refusal.cause, Cause::Capacity);
        assert_eq!(refusal.shortages[0].cause, ShortageCause::Capacity);
    }

    #[test]
    fn who_holds_something_cannot_claim_again() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        let option = holding(&[(1, &[("VCPU", 1)])]);
        world.ok(claim(1, std::slice::from_ref(&option)));
        let refusal = world.refused(claim(1, &[option]));
        assert_eq!(refusal.cause, Cause::HoldsAlready { consumer: consumer(1) });
    }

    /// Launchpad bug 1790204, case A1.
    #[test]
    fn a_resize_on_the_same_full_host_holds_the_larger_of_both() {
        let all = [("VCPU", 2), ("MEMORY_MB", 8192), ("DISK_GB", 1028)];
        let small: &[(&str, u32)] = &[("VCPU", 1), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];
        let big: &[(&str, u32)] = &[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];
        let check = |end: crate::command::Command, left: &[(&str, u32)]| {
            let mut world = World::new().host(1, &all);
            world.ok(claim(1, &[holding(&[(1, small)])]));
            world.ok(to_migration(1, 2));
            assert_eq!(world.latest_move(1).state, MoveState::Open);
            assert_eq!(world.kinds(claim(1, &[holding(&[(1, big)])])), ["Claimed"]);
            let held = ["VCPU", "MEMORY_MB", "DISK_GB"].map(|class| world.held(1, class));
            assert_eq!(held, [2, 2048, 1028], "the peak is the larger of old and new");
            // Case A3: one event names both holdings though the provider is one.
            let this = &world.last_body().moves[0];
            assert_eq!(this.source, holding(&[(1, small)]));
            assert_eq!(this.destination, holding(&[(1, big)]));
            assert_eq!(
                (world.holds(1), world.holds(2)),
                (holding(&[(1, big)]), holding(&[(1, small)]))
            );
            world.ok(end);
            assert_eq!((world.holds(1), world.holds(2)), (holding(&[(1, left)]), holding(&[])));
            let held = ["VCPU", "MEMORY_MB", "DISK_GB"].map(|class| world.held(1, class) as u32);
            assert_eq!(held, [left[0].1, left[1].1, left[2].1]);
        };
        check(confirm(1), big);
        check(revert(1), small);
    }

    #[test]
    fn what_the_max_rule_does_not_cover_adds_up() {
        let mut world = World::new().host(1, &[("VCPU", 4), ("DISK_GB", 10)]);
        let all_but = crate::command::OverlapClasses::AllBut(["DISK_GB".to_owned()].into());
        world.ok(crate::command::Command::ChangeSettings(crate::command::ChangeSettings {
            overlap_classes: Some(all_but),
            same_host_moves: None,
        }));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 3), ("DISK_GB", 6)])])]));
        world.ok(to_migration(1, 2));
        let refusal = world.refused(claim(1, &[holding(&[(1, &[("VCPU", 4), ("DISK_GB", 6)])])]));
        assert_eq!(refusal.shortages[0].class, "DISK_GB");
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4), ("DISK_GB", 4)])])]));
        assert_eq!((world.held(1, "VCPU"), world.held(1, "DISK_GB")), (4, 10));
    }

    fn disk(amount: u32) -> Holding {
        holding(&[(1, &[("DISK_GB", amount)])])
    }

    fn covers(classes: OverlapClasses) -> Command {
        let overlap_classes = Some(classes);
        Command::ChangeSettings(ChangeSettings { overlap_classes, ..ChangeSettings::default() })
    }

    fn all_but_disk() -> OverlapClasses {
        OverlapClasses::AllBut(["DISK_GB".to_owned()].into())
    }

    /// What an ended move leaves of its link must not decide the next move.
    #[test]
    fn the_rule_of_an_ended_move_does_not_count_for_the_next() {
        for end in [confirm(1), revert(1)] {
            let mut world = World::new().host(1, &[("DISK_GB", 100)]);
            world.ok(claim(1, &[disk(80)]));
            world.ok(to_migration(1, 8));
            world.ok(claim(1, &[disk(80)]));
            world.ok(end);
            world.ok(covers(all_but_disk()));
            world.ok(to_migration(1, 9));
            let refusal = world.refused(claim(1, &[disk(80)]));
            assert!(matches!(refusal.cause, Cause::NoOptionFits | Cause::Capacity), "{refusal:?}");
            assert_eq!(world.held(1, "DISK_GB"), 80);
            world.ok(covers(OverlapClasses::All));
            world.ok(claim(1, &[disk(90)]));
            assert_eq!(world.held(1, "DISK_GB"), 90);
        }
    }

    /// A source that is linked with another under an older rule is not linked once more.
    #[test]
    fn a_group_of_an_older_rule_takes_in_nobody() {
        let mut world = World::new().host(1, &[("DISK_GB", 100)]);
        world.ok(claim(1, &[disk(40)]));
        world.ok(to_migration(1, 8));
        world.ok(claim(1, &[disk(40)]));
        world.ok(covers(all_but_disk()));
        world.ok(to_migration(1, 9));
        world.refused(claim(1, &[disk(70)]));
        world.ok(claim(1, &[disk(60)]));
        assert_eq!(world.held(1, "DISK_GB"), 100);
    }
}
