//! `release_part`: a consumer lets go of a part of what it holds, the rest is untouched (Launchpad
//! bug 1820588: a port with guaranteed bandwidth is deleted behind Nova's back).

use super::Decision;
use super::naming::PlainWrite;
use super::plan::{malformed, owner_of, provider_row};
use super::replace_allocations::{Note, carry_out};
use crate::command::{ReleasePart, Via};
use crate::decide::Draft;
use crate::refusal::Cause;
use crate::state::{Allocations, ClassId, ProviderId};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReleasePart) -> Decision {
    let ReleasePart { consumer, provider, ref class, amount: asked, ref reason } = *command;
    if asked == 0 {
        return Err(malformed("0 is no part to let go of".into()).into());
    }
    let state = &draft.state;
    let (id, _) = provider_row(state, provider)?;
    let class_id =
        state.classes().id(class).ok_or_else(|| Cause::ClassNotFound { class: class.clone() })?;
    let row = state.consumer(consumer).ok_or(Cause::HoldsNothing { consumer })?;
    let held = row.amount(id, class_id);
    if held < asked {
        let class = class.clone();
        return Err(Cause::HoldsLess { consumer, provider, class, held, asked }.into());
    }
    let write = PlainWrite {
        consumer,
        before: row.allocations.clone(),
        after: without(&row.allocations, id, class_id, asked),
        owner: owner_of(state, row),
    };
    let note = Note { via: Via::Command, reason: reason.clone(), ended: false, shrinks: true };
    carry_out(draft, &[write], &note)
}

fn without(held: &Allocations, provider: ProviderId, class: ClassId, asked: u32) -> Allocations {
    let mut left = held.clone();
    for one in left.iter_mut().filter(|one| one.provider == provider && one.class == class) {
        one.amount = one.amount.saturating_sub(asked);
    }
    left.retain(|one| one.amount > 0);
    left
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, ReleasePart};
    use crate::commands::testing::*;
    use crate::event::MoveState;
    use crate::refusal::Cause;

    fn part(who: u128, host: u128, class: &str, amount: u32) -> Command {
        Command::ReleasePart(ReleasePart {
            consumer: consumer(who),
            provider: provider(host),
            class: class.into(),
            amount,
            reason: Some("port deleted".into()),
        })
    }

    /// Launchpad bug 1820588, case B16.
    #[test]
    fn a_part_goes_and_the_rest_is_untouched() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("DISK_GB", 10_000)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)]), (2, &[("DISK_GB", 4000)])])]));
        let refusal = world.refused(part(1, 2, "DISK_GB", 5000));
        assert!(matches!(refusal.cause, Cause::HoldsLess { held: 4000, asked: 5000, .. }));
        assert_eq!(world.kinds(part(1, 2, "DISK_GB", 1500)), ["Reallocated"]);
        assert_eq!(world.last_body().reason.as_deref(), Some("port deleted"));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "DISK_GB")), (2, 2500));
        world.ok(part(1, 2, "DISK_GB", 2500));
        assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", 2)])]));
        assert_eq!(world.held(2, "DISK_GB"), 0);
        // The last part is a release.
        assert_eq!(world.kinds(part(1, 1, "VCPU", 2)), ["Released"]);
        assert_eq!(world.state.consumer_count(), 0);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        let nobody = world.refused(part(1, 1, "VCPU", 1)).cause;
        assert_eq!(nobody, Cause::HoldsNothing { consumer: consumer(1) });
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        assert!(matches!(
            world.refused(part(1, 2, "VCPU", 1)).cause,
            Cause::HoldsLess { held: 0, .. }
        ));
        assert!(matches!(
            world.refused(part(1, 9, "VCPU", 1)).cause,
            Cause::ProviderNotFound { .. }
        ));
        assert!(matches!(world.refused(part(1, 1, "NOPE", 1)).cause, Cause::ClassNotFound { .. }));
        assert!(matches!(world.refused(part(1, 1, "VCPU", 0)).cause, Cause::Malformed { .. }));
    }

    /// A linked side that shrinks stays linked: held follows the larger side, and ending the move
    /// raises nothing.
    #[test]
    fn either_side_of_a_move_on_one_host_may_shrink() {
        for (who, shrunk, after) in [(1, [2, 1], [1, 2]), (2, [3, 1], [3, 1])] {
            let mut world = World::new().host(1, &[("VCPU", 3)]);
            world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
            world.ok(to_migration(1, 9));
            world.ok(claim(1, &[holding(&[(1, &[("VCPU", 3)])])]));
            let by = if who == 1 { 2 } else { 1 };
            world.ok(part(if who == 1 { 1 } else { 9 }, 1, "VCPU", by));
            assert_eq!(world.held(1, "VCPU"), shrunk[0]);
            let this = world.latest_move(1);
            assert_eq!(this.state, MoveState::Claimed);
            let amount = |holding: &crate::amounts::Holding| holding[&provider(1)]["VCPU"];
            assert_eq!([amount(&this.destination), amount(&this.source)], after);
            let mut reverted = World { state: world.state.clone(), ..World::new() };
            reverted.stamps = world.stamps;
            reverted.ok(revert(1));
            assert_eq!(reverted.held(1, "VCPU"), u64::from(after[1]));
            world.ok(confirm(1));
            assert_eq!(world.held(1, "VCPU"), u64::from(after[0]));
        }
    }

    /// Releasing is never refused for the units of an inventory, of that class or of another.
    #[test]
    fn units_changed_meanwhile_do_not_matter() {
        let mut world = World::new().host(1, &[("VCPU", 8), ("MEMORY_MB", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4), ("MEMORY_MB", 4)])])]));
        world.ok(units(1, "VCPU", 8, (4, 8, 4)));
        world.ok(units(1, "MEMORY_MB", 8, (1, 2, 1)));
        world.ok(part(1, 1, "VCPU", 1));
        assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", 3), ("MEMORY_MB", 4)])]));
    }
}
