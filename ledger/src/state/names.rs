//! Names with dense numbers: classes, traits, aggregates, projects, users, consumer types.
//!
//! Hot paths compare numbers; a string is looked up once, at the border. Numbers are given in
//! the order of events, so every process that folds the same records gives the same ones.

use rustc_hash::FxBuildHasher;
use std::sync::Arc;

type Map<K, V> = imbl::GenericHashMap<K, V, FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;

/// A growing set of names, each with a number for ever. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Names {
    by_number: imbl::Vector<Arc<str>>,
    by_name: Map<Arc<str>, u32>,
}

impl Names {
    /// The number of `name`, if it ever had one.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The name with `number`. Numbers are kept by what the same state made of the same events, and no
    /// number that was given is ever taken away.
    ///
    /// # Panics
    /// For a number that this set never gave.
    pub fn name(&self, number: u32) -> &Arc<str> {
        &self.by_number[number as usize]
    }

    /// The number of `name`, given now if it had none.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.number(name) {
            return number;
        }
        let number = u32::try_from(self.by_number.len()).unwrap_or(u32::MAX);
        assert!(number < u32::MAX, "more names than numbers");
        let name: Arc<str> = name.into();
        self.by_number.push_back(Arc::clone(&name));
        self.by_name.insert(name, number);
        number
    }

    /// Gives the name with `number` another spelling.
    pub fn rename(&mut self, number: u32, name: &str) {
        let name: Arc<str> = name.into();
        let old = std::mem::replace(&mut self.by_number[number as usize], Arc::clone(&name));
        self.by_name.remove(&*old);
        self.by_name.insert(name, number);
    }

    /// Whether both share all their names in memory. Few names (a handful) are never shared.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.is_empty() && other.is_empty() || self.by_number.ptr_eq(&other.by_number)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// All names in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_number.iter()
    }
}
