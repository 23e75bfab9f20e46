//! `skip_event`: a view that has stopped at an event that it cannot fold goes on behind it. The
//! decision to pass over something is an operator's, and on record with who made it; the ledger's own
//! state is not touched.

use super::Decision;
use crate::command::SkipEvent;
use crate::decide::Draft;
use crate::event::{Event, EventSkipped};
use crate::refusal::Cause;

pub(super) fn decide(draft: &mut Draft<'_>, command: &SkipEvent) -> Decision {
    let SkipEvent { view, sequence, reason } = command.clone();
    if sequence == 0 || sequence > draft.state.sequence() {
        return Err(Cause::Malformed { what: format!("there is no event {sequence}") }.into());
    }
    draft.emit(Event::EventSkipped(EventSkipped { view, sequence, reason }));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, SkipEvent};
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    fn skip(sequence: u64, reason: &str) -> Command {
        Command::SkipEvent(SkipEvent { view: "usage".into(), sequence, reason: reason.into() })
    }

    #[test]
    fn what_is_passed_over_is_there_and_has_a_reason() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        assert_eq!(world.kinds(skip(2, "a defect, fixed in the next version")), ["EventSkipped"]);
        for wrong in [skip(0, "x"), skip(1_000, "x"), skip(2, ""), skip(2, &"x".repeat(1_025))] {
            assert!(matches!(world.refused(wrong).cause, Cause::Malformed { .. }));
        }
    }
}
