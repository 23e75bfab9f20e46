//! What `verify` finds, as far as it is worth listing.

use serde::Serialize;

/// How many findings are listed before the work is given up.
const MOST: usize = 100;

/// Something that is wrong.
#[derive(Serialize)]
pub(super) struct Finding {
    /// At which event.
    pub sequence: u64,
    /// What is wrong.
    pub what: String,
}

/// All findings.
#[derive(Default)]
pub(super) struct Findings {
    /// In the order they were found.
    pub list: Vec<Finding>,
}

impl Findings {
    /// Notes one.
    pub fn add(&mut self, sequence: u64, what: String) {
        if !self.is_full() {
            self.list.push(Finding { sequence, what });
        }
    }

    /// Whether so much is wrong that going on helps nobody.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }
}
