//! Names of providers. Events name providers by id; people know hosts by name.

use crate::shown::shown;
use ledger::event::Event;
use ledger::ids::ProviderUuid;
use ledger::log::{IndexKey, LogReader};
use std::cell::RefCell;
use std::collections::HashMap;

/// Looks up provider names, those of deleted providers included, by the event that made them.
pub(crate) struct Names<'a> {
    reader: &'a dyn LogReader,
    known: RefCell<HashMap<ProviderUuid, String>>,
}

impl<'a> Names<'a> {
    /// Names in this log.
    pub fn new(reader: &'a dyn LogReader) -> Self {
        Self { reader, known: RefCell::default() }
    }

    /// A provider's name if it is known, else its id.
    pub fn provider(&self, provider: ProviderUuid) -> String {
        if let Some(name) = self.known.borrow().get(&provider) {
            return name.clone();
        }
        // A name is a help to the reader only: where it cannot be read, the id stands for it.
        let name = self.made_as(provider).map_or_else(|| provider.to_string(), |name| shown(&name));
        self.known.borrow_mut().insert(provider, name.clone());
        name
    }

    /// Name and id: `compute1 (2f1b...)`.
    pub fn provider_full(&self, provider: ProviderUuid) -> String {
        let name = self.provider(provider);
        if name == provider.to_string() { name } else { format!("{name} ({provider})") }
    }

    fn made_as(&self, provider: ProviderUuid) -> Option<String> {
        // Somebody may have asked for the provider in vain before it was made.
        let first = self.reader.index(&IndexKey::Provider(provider), 0, 16).ok()?;
        first.into_iter().find_map(|sequence| {
            match self.reader.record(sequence).ok()??.event().ok()? {
                Event::ProviderCreated(body) => Some(body.name),
                _ => None,
            }
        })
    }
}
