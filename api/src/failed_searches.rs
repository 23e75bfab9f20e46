//! Searches for candidates that find nothing go on record with what each condition left: most
//! resizes fail so, and the state that refused them is soon gone.
//!
//! Recording never holds up or harms anybody: one a minute for each project and query, 100 a
//! second in all, none while the ledger has much to do, and working out why takes at most a tenth
//! of the time. What is left out is counted.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ledger::command::Command;
use ledger::event::{SearchFailed, SearchStep, SearchedGroup};
use ledger::limits::{
    CONDITION_BYTES, NAME_CHARS, QUERY_BYTES, QUEUE, SEARCH_STEPS, SEARCHED_GROUPS,
};
use parking_lot::Mutex;
use projector::candidates::explain::{GroupExplanation, steps};
use projector::candidates::{CandidateIndex, Query};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::app::App;
use crate::http::request::Request;

/// The same search of the same project is recorded again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// Records in a second, all projects together.
const EACH_SECOND: u32 = 100;
/// Searches that are remembered. If there are more, new ones are not recorded for a while.
const REMEMBERED: usize = 10_000;
/// After working out why, this many times as long nothing is worked out.
const REST: u32 = 9;

/// Which failed searches are recorded.
#[derive(Debug, Default)]
pub struct FailedSearches {
    bounds: Mutex<Bounds>,
    recorded: AtomicU64,
    left_out: AtomicU64,
}

#[derive(Debug, Default)]
struct Bounds {
    told: FxHashMap<u64, Instant>,
    second: Option<Instant>,
    in_second: u32,
    rest_until: Option<Instant>,
}

impl FailedSearches {
    /// How many were recorded, and how many were left out.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.recorded.load(Ordering::Relaxed), self.left_out.load(Ordering::Relaxed))
    }

    fn passes(&self, project: &str, query: &str, now: Instant) -> bool {
        let passes = self.bounds.lock().passes(key(project, query), now);
        let count = if passes { &self.recorded } else { &self.left_out };
        count.fetch_add(1, Ordering::Relaxed);
        passes
    }
}

fn key(project: &str, query: &str) -> u64 {
    FxBuildHasher.hash_one((project, query))
}

impl Bounds {
    fn passes(&mut self, key: u64, now: Instant) -> bool {
        if self.rest_until.is_some_and(|until| now < until) {
            return false;
        }
        if self.told.get(&key).is_some_and(|at| now.duration_since(*at) < AGAIN) {
            return false;
        }
        if self.second.is_none_or(|at| now.duration_since(at) >= Duration::from_secs(1)) {
            (self.second, self.in_second) = (Some(now), 0);
        }
        if self.in_second >= EACH_SECOND || !self.has_room(now) {
            return false;
        }
        self.in_second += 1;
        self.told.insert(key, now);
        true
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if self.told.len() >= REMEMBERED {
            self.told.retain(|_, at| now.duration_since(*at) < AGAIN);
        }
        self.told.len() < REMEMBERED
    }
}

/// Puts on record that a search found nothing, unless a bound forbids it. Nobody waits for it.
pub fn note(app: &App, request: &Request, index: &CandidateIndex, query: &Query) {
    let searches = &app.failed_searches;
    let begun = Instant::now();
    if app.ledger.health().queued > QUEUE as u64 / 2 {
        searches.left_out.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if !searches.passes(&request.identity.project, &request.query, begun) {
        return;
    }
    let Ok(groups) = steps(index, query) else { return };
    searches.bounds.lock().rest_until = Some(begun + (REST + 1) * begun.elapsed());
    let (query, query_cut) = cut(&request.query, QUERY_BYTES);
    let search = SearchFailed {
        project_id: request.identity.project.chars().take(NAME_CHARS).collect(),
        query,
        query_cut,
        searched_at: index.sequence(),
        groups: told(&groups),
    };
    if let Err(error) = app.tell(request, Command::NoteFailedSearch(search)) {
        tracing::debug!(%error, "a failed search is not recorded");
    }
}

fn told(groups: &[GroupExplanation]) -> Vec<SearchedGroup> {
    let mut left = SEARCH_STEPS;
    let mut told = Vec::new();
    for group in groups.iter().take(SEARCHED_GROUPS) {
        let steps: Vec<SearchStep> = group
            .steps
            .iter()
            .take(left)
            .map(|step| SearchStep {
                condition: cut(&step.condition.to_string(), CONDITION_BYTES).0,
                left: step.left as u64,
            })
            .collect();
        left -= steps.len();
        let suffix = cut(&group.suffix, CONDITION_BYTES).0;
        told.push(SearchedGroup { suffix, considered: group.considered as u64, steps });
    }
    told
}

/// At most so many bytes of a text, and whether there was more.
pub(crate) fn cut(text: &str, most: usize) -> (String, bool) {
    let most = most.min(text.len());
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (text[..end].to_owned(), end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_minute_for_each_project_and_query() {
        let searches = FailedSearches::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(searches.passes("p", "q", at(0)));
        assert!(!searches.passes("p", "q", at(59)));
        assert!(searches.passes("p", "other", at(59)));
        assert!(searches.passes("other", "q", at(59)));
        assert!(searches.passes("p", "q", at(60)));
        assert_eq!(searches.counts(), (4, 1));
    }

    #[test]
    fn a_hundred_a_second_in_all() {
        let searches = FailedSearches::default();
        let start = Instant::now();
        let passed = |at: Instant, from: u32| {
            (from..from + 200).filter(|n| searches.passes("p", &n.to_string(), at)).count()
        };
        assert_eq!(passed(start, 0), 100);
        assert_eq!(passed(start + Duration::from_secs(1), 1_000), 100);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut bounds = Bounds::default();
        let start = Instant::now();
        bounds.told = (0..REMEMBERED as u64).map(|key| (key, start)).collect();
        assert!(!bounds.passes(u64::MAX, start));
        assert!(bounds.passes(u64::MAX, start + AGAIN));
        assert_eq!(bounds.told.len(), 1);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 3), ("ä".to_owned(), true));
        assert_eq!(cut("abc", 3), ("abc".to_owned(), false));
    }
}
