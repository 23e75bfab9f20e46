//! Orphans as the server knows them: those that the state tells of, and those that lists of the
//! living showed. The latter are kept in a file beside the log ([`kept`]): they are what a client
//! reported, and no facts.

mod fed;
mod kept;
mod notices;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;

use ledger::ids::{ConsumerUuid, LedgerId};
use ledger::state::State;
use ledger::time::Timestamp;
use parking_lot::Mutex;
use projector::orphans::{Finding, Kind, standing};

pub use fed::{Fed, Scope, Source};
pub use watch::watch;

use crate::http::last_modified;
use fed::Lists;
use kept::Kept;
use notices::Notices;

/// What is known of orphans beside the state.
pub struct Orphans {
    /// Microseconds that a move may stay open without a finding.
    bound: i64,
    lists: Mutex<Lists>,
    /// Where lists survive a restart; none: they do not.
    file: Option<Mutex<Kept>>,
    notices: Mutex<Notices>,
}

/// One orphan and, if a list told of it, whose.
#[derive(Clone, Debug)]
pub struct Orphan {
    /// The finding.
    pub finding: Finding,
    /// Who told.
    pub source: Option<Source>,
}

impl Orphans {
    /// With the bound for open moves, in seconds.
    #[must_use]
    pub fn new(open_move_bound: u32) -> Self {
        Self {
            bound: i64::from(open_move_bound) * 1_000_000,
            lists: Mutex::new(Lists::default()),
            file: None,
            notices: Mutex::new(Notices::default()),
        }
    }

    /// The same with what earlier lists showed, from the file in a ledger's directory.
    #[must_use]
    pub fn open(open_move_bound: u32, dir: &Path, ledger: LedgerId) -> Self {
        let file = Kept::new(dir, ledger);
        let lists = Mutex::new(Lists::restored(file.load()));
        Self { lists, file: Some(Mutex::new(file)), ..Self::new(open_move_bound) }
    }

    /// Saves what lists showed, if it changed. What cannot be saved is tried again the next time.
    pub fn save(&self) {
        let Some(file) = &self.file else { return };
        // One at a time, so that an older state never takes the place of a newer one.
        let file = file.lock();
        let Some(findings) = self.lists.lock().take_unsaved() else { return };
        let findings: Vec<&Fed> = findings.iter().collect();
        if let Err(error) = file.save(&findings) {
            tracing::warn!(%error, "what lists of the living showed cannot be saved");
            self.lists.lock().not_saved();
        }
    }

    /// The bound for open moves, in microseconds.
    #[must_use]
    pub fn bound(&self) -> i64 {
        self.bound
    }

    /// Takes in what a list told; what an earlier list of the same scope told is forgotten. Tells
    /// how many were left out because there were too many.
    pub fn feed(&self, scope: &Scope, fed: Vec<Fed>) -> usize {
        self.lists.lock().feed(scope, fed)
    }

    /// All orphans as of a state, one for each consumer, and in the order of consumers. A move may
    /// be open for `bound` microseconds up to `now`.
    #[must_use]
    pub fn of(&self, state: &State, now: Timestamp, bound: i64) -> BTreeMap<ConsumerUuid, Orphan> {
        let opened_before = Timestamp::from_micros(now.micros().saturating_sub(bound));
        let mut all: Vec<Orphan> = standing(state, opened_before)
            .into_iter()
            .map(|finding| Orphan { finding, source: None })
            .collect();
        all.extend(self.lists.lock().still(state));
        // Of several findings about a consumer the one that its mending begins with is told.
        all.sort_by_key(|orphan| orphan.finding.kind);
        let mut found = BTreeMap::new();
        for orphan in all {
            found.entry(orphan.finding.consumer).or_insert(orphan);
        }
        found
    }

    /// Looks at a state: counts, and logs what is new.
    pub fn look(&self, state: &State) {
        let now = Timestamp::from_micros(last_modified::now());
        let found = self.of(state, now, self.bound);
        let found: Vec<&Orphan> = found.values().collect();
        self.notices.lock().take(now, state.sequence(), &found);
    }

    /// How many of each kind there were at the last look, and since how many seconds the oldest
    /// move that stays open is so.
    #[must_use]
    pub fn counts(&self) -> ([(Kind, u64); Kind::ALL.len()], u64) {
        self.notices.lock().counts()
    }
}
