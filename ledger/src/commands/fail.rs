//! `fail`: a step of a move failed and it is given up. It ends on the side that its server is on:
//! on the destination if `host_changed` said so, else on the source (Launchpad bug 1825537).

use super::Decision;
use super::confirm::confirm;
use super::find_move::{already, find};
use super::revert::revert;
use crate::command::Fail;
use crate::decide::Draft;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Fail) -> Decision {
    let entry = find(&draft.state, command.consumer, command.move_id)?;
    if !entry.this.state.is_live() {
        return Ok(Some(already(&entry)));
    }
    let reason = Some(&*command.reason);
    if entry.this.arrived { confirm(draft, entry, reason) } else { revert(draft, entry, reason) }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::MoveState;

    /// Launchpad bugs 1713786, 1713796 and 1862633, cases B5 and B8: whatever step fails, what that
    /// move claimed goes, and nothing else.
    #[test]
    fn what_the_move_claimed_goes_and_nothing_else() {
        for reason in ["port binding", "spawn"] {
            let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
            world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
            world.ok(claim(5, &[holding(&[(2, &[("VCPU", 1)])])]));
            world.ok(resize(1, 9, &[holding(&[(2, &[("VCPU", 4)])])]));
            assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (4, 5));
            world.ok(fail(1, reason));
            assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (4, 1));
            assert_eq!(world.latest_move(1).state, MoveState::Reverted);
            assert_eq!(world.last_body().reason.as_deref(), Some(reason));
        }
    }

    /// An evacuation whose both sides are on the instance itself.
    #[test]
    fn a_double_up_fails_back_to_its_source() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        world.ok(double_up(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        world.ok(fail(1, "rebuild"));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (4, 0));
    }
}
