//! Resource classes and traits: names that can be made, renamed and removed.

use super::names::Names;
use crate::time::Timestamp;
use std::sync::Arc;

/// One class or trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Exists from the start, can be neither changed nor removed.
    pub standard: bool,
    /// Exists; a removed one keeps its number in case it is made again.
    pub alive: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last renamed.
    pub updated_at: Option<Timestamp>,
    /// How many inventories use the class, or how many providers have the trait.
    pub users: u32,
}

/// All classes, or all traits. Each number that it gave has an entry for as long as it lives, so
/// indexing by a number cannot fail.
#[derive(Clone, Default)]
pub struct Vocabulary {
    names: Names,
    entries: imbl::Vector<Entry>,
}

impl Vocabulary {
    /// The number of `name`, if it exists.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.names.number(name).filter(|&id| self.entries[id as usize].alive)
    }

    /// The name with number `id`.
    pub fn name(&self, id: u32) -> &Arc<str> {
        self.names.name(id)
    }

    /// What is known of number `id`.
    pub fn entry(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    /// All that exist, in the order of their numbers: standard ones first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Arc<str>, &Entry)> {
        (0u32..)
            .zip(self.names.iter().zip(self.entries.iter()))
            .map(|(id, (name, entry))| (id, name, entry))
            .filter(|(_, _, entry)| entry.alive)
    }

    /// Whether `other` has the same names under the same numbers, told at a glance: two that were
    /// never the same object count as different.
    pub fn has_the_names_of(&self, other: &Self) -> bool {
        self.names.same_as(&other.names)
    }

    /// How many numbers were ever given.
    pub fn numbers(&self) -> usize {
        self.names.len()
    }

    pub(super) fn create(&mut self, name: &str, standard: bool, now: Timestamp) -> u32 {
        let id = self.names.intern(name);
        let entry = Entry { standard, alive: true, created_at: now, updated_at: None, users: 0 };
        if (id as usize) < self.entries.len() {
            assert!(!self.entries[id as usize].alive, "{name} exists already");
            self.entries[id as usize] = entry;
        } else {
            self.entries.push_back(entry);
        }
        id
    }

    pub(super) fn remove(&mut self, id: u32) {
        assert_eq!(self.entries[id as usize].users, 0, "{} is in use", self.name(id));
        self.entries[id as usize].alive = false;
    }

    pub(super) fn rename(&mut self, id: u32, name: &str, now: Timestamp) {
        // A removed one of the new name makes way: its number is never used again.
        if let Some(dead) = self.names.number(name) {
            assert!(!self.entries[dead as usize].alive, "{name} exists already");
            self.names.rename(dead, &format!("{name}\u{0}{dead}"));
        }
        self.names.rename(id, name);
        self.entries[id as usize].updated_at = Some(now);
    }

    pub(super) fn add_user(&mut self, id: u32) {
        self.entries[id as usize].users += 1;
    }

    pub(super) fn drop_user(&mut self, id: u32) {
        let users = &mut self.entries[id as usize].users;
        assert!(*users > 0, "users counted wrongly");
        *users -= 1;
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.names.iter().zip(self.entries.iter())
    }

    pub(super) fn push_row(&mut self, name: &str, entry: Entry) {
        self.names.intern(name);
        self.entries.push_back(entry);
    }
}
