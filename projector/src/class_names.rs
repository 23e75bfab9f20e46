//! Resource classes by number, as the ledger's state numbers them.

use ledger::event::Event;
use ledger::state::{Names, State};
use std::sync::Arc;

/// A resource class's number: the one that the ledger's state gives it.
pub type ClassNumber = u32;

/// The names of all resource classes that ever were. Numbers are given in the order of events, so
/// they are those of the state, and a renamed class keeps its number.
#[derive(Clone, Default)]
pub struct ClassNames {
    names: Names,
}

impl ClassNames {
    /// The classes of a state.
    pub fn from_state(state: &State) -> Self {
        let mut names = Names::default();
        for number in 0..state.classes().numbers() {
            names.intern(state.classes().name(u32::try_from(number).unwrap_or(u32::MAX)));
        }
        Self { names }
    }

    /// The number of `name`, if there ever was such a class.
    pub fn number(&self, name: &str) -> Option<ClassNumber> {
        self.names.number(name)
    }

    /// The name of a class. The number must be one that this view gave.
    pub fn name(&self, number: ClassNumber) -> &Arc<str> {
        self.names.name(number)
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Genesis(body) => {
                for name in &body.standard_classes {
                    self.names.intern(name);
                }
            }
            Event::ResourceClassCreated(body) => {
                self.names.intern(&body.name);
            }
            Event::ResourceClassRenamed(body) => self.rename(&body.name_before, &body.name),
            _ => {}
        }
    }

    fn rename(&mut self, before: &str, after: &str) {
        let Some(number) = self.names.number(before) else {
            return;
        };
        // A removed class of the new name makes way, as it does in the state.
        if let Some(dead) = self.names.number(after) {
            self.names.rename(dead, &format!("{after}\u{0}{dead}"));
        }
        self.names.rename(number, after);
    }
}
