//! `host_changed`: the server of a move is on another host now. Which half of the move goes if a
//! later step fails is decided by where the server is on record, not by which step failed
//! (Launchpad bug 1825537). Nothing that is held changes.

use super::Decision;
use super::find_move::{find, is_claimed, is_latest, wrong_state};
use super::host::{hosts, roots};
use super::plan::{self, event_body};
use crate::command::{HostChanged, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, Unchanged};
use crate::refusal::{Cause, Refusal};

pub(super) fn decide(draft: &mut Draft<'_>, command: &HostChanged) -> Decision {
    let state = &draft.state;
    let this = find(state, command.consumer, command.move_id)?.this;
    if !is_claimed(&this) || !is_latest(state, &this) {
        return Err(wrong_state(&this, "note where its server is"));
    }
    let host = roots(state, &[command.host]);
    let is_on = |side| !hosts(state, side).is_disjoint(&host);
    let arrived = is_on(&this.destination);
    if !arrived && !is_on(&this.source) {
        let cause = Cause::NotOnMove { host: command.host };
        return Err(Refusal { move_id: Some(this.id), ..Refusal::because(cause) });
    }
    if arrived == this.arrived {
        return Ok(Some(Unchanged::NoChange));
    }
    let moves = vec![Move { arrived, ..this }];
    let mut body = event_body(state, &[], &Default::default(), moves, Via::Command);
    body.host = host.first().and_then(|&id| state.provider_row(id)).map(|row| row.uuid);
    plan::emit(draft, Event::HostChanged, body);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::{MoveState, Unchanged};
    use crate::refusal::Cause;

    fn moved() -> World {
        let mut world = (1..=3).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(resize(1, 9, &[holding(&[(2, &[("VCPU", 4)])])]));
        world
    }

    /// Launchpad bug 1825537, case B10.
    #[test]
    fn what_fails_after_the_server_arrived_leaves_the_destination() {
        let mut world = moved();
        assert_eq!(world.kinds(host_changed(1, 2)), ["HostChanged"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 4));
        assert_eq!(world.kinds(fail(1, "finish")), ["Confirmed"]);
        assert_eq!(world.last_body().reason.as_deref(), Some("finish"));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
        let again = world.ok(fail(1, "finish"));
        let Some(Unchanged::AlreadyEnded { state, .. }) = again.unchanged[0] else {
            panic!("a second one answers what happened")
        };
        assert_eq!(state, MoveState::Confirmed);
    }

    /// Launchpad bug 1825537, case B10.
    #[test]
    fn what_fails_before_the_server_arrived_leaves_the_source() {
        let mut world = moved();
        assert_eq!(world.kinds(fail(1, "prepare")), ["Reverted"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 0));
        let mut back = moved();
        back.ok(host_changed(1, 2));
        back.ok(host_changed(1, 1));
        assert_eq!(back.kinds(fail(1, "finish revert")), ["Reverted"]);
        assert_eq!((back.held(1, "VCPU"), back.held(2, "VCPU")), (2, 0));
    }

    #[test]
    fn a_host_of_neither_side_is_refused_and_a_known_one_changes_nothing() {
        let mut world = moved();
        assert_eq!(world.refused(host_changed(1, 3)).cause, Cause::NotOnMove { host: provider(3) });
        assert!(world.ok(host_changed(1, 1)).events.is_empty());
        world.ok(host_changed(1, 2));
        assert!(world.ok(host_changed(1, 2)).events.is_empty());
        assert!(matches!(
            world.refused(reschedule(1, "too late", &[])).cause,
            Cause::MoveState { state: MoveState::Claimed, .. }
        ));
    }
}
