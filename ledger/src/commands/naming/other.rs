//! Rule 8: each consumer that is left by itself: none before: claimed; emptied: released; otherwise
//! reallocated. The moves it is a side of follow what it holds.

use super::{Step, Write};
use crate::event::Event;

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for consumer in write.left() {
        write.done(consumer.consumer);
        let kind = match (consumer.before.is_empty(), consumer.after.is_empty()) {
            (true, true) => continue,
            (true, false) => Event::Claimed,
            (false, true) => Event::Released,
            (false, false) => Event::Reallocated,
        };
        steps.push(Step {
            kind,
            plan: vec![write.plain(consumer)],
            moves: Vec::new(),
            finding: None,
        });
    }
}
