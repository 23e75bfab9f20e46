//! Which refusals are recorded one by one, and counts of all of them.
//!
//! Without a command id: at most 10 a second for each project and 500 in all, so that a client in
//! a loop cannot fill the disk. What is left out is counted in one event a second.

use crate::event::{Event, RefusalsSuppressed, SuppressedCount};
use crate::limits::SUPPRESSED_BYTES;
use crate::refusal::Cause;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const EACH_SECOND_FOR_A_PROJECT: u32 = 10;
const EACH_SECOND: u32 = 500;
const PROJECTS_TOLD: usize = 16;
const PROJECTS_COUNTED: usize = 10_000;

/// Counts of refusals by cause since the start.
#[derive(Default)]
pub struct RefusalCounts {
    counts: Mutex<BTreeMap<String, u64>>,
}

impl RefusalCounts {
    pub(super) fn count(&self, cause: &Cause) {
        *self.counts.lock().entry(cause.name()).or_default() += 1;
    }

    /// The counts, by the cause's name.
    pub fn by_cause(&self) -> BTreeMap<String, u64> {
        self.counts.lock().clone()
    }
}

/// Lets so many through in each second of the monotonic clock and counts the rest. The system's
/// clock may be set back or forward: a second that lasts an hour would record nothing for that hour.
#[derive(Default)]
pub(super) struct Limiter {
    second: u64,
    passed: u32,
    passed_by_project: HashMap<String, u32>,
    suppressed: HashMap<String, u64>,
    total: u64,
}

impl Limiter {
    /// Whether a refusal of `project` received at `now` is recorded.
    pub(super) fn passes(&mut self, project: &str, now: Duration) -> bool {
        if self.second != now.as_secs() {
            self.second = now.as_secs();
            self.passed = 0;
            self.passed_by_project.clear();
        }
        let of_project = self.passed_by_project.get(project).copied().unwrap_or(0);
        if self.passed >= EACH_SECOND || of_project >= EACH_SECOND_FOR_A_PROJECT {
            self.suppress(project);
            return false;
        }
        self.passed += 1;
        self.passed_by_project.insert(project.to_owned(), of_project + 1);
        true
    }

    fn suppress(&mut self, project: &str) {
        self.total += 1;
        if self.suppressed.len() < PROJECTS_COUNTED || self.suppressed.contains_key(project) {
            *self.suppressed.entry(project.to_owned()).or_default() += 1;
        }
    }

    /// The event that tells what was left out, once the second is over.
    pub(super) fn told(&mut self, now: Duration) -> Option<Event> {
        if self.total == 0 || self.second == now.as_secs() {
            return None;
        }
        let mut by_project: Vec<SuppressedCount> = self
            .suppressed
            .drain()
            .map(|(project_id, count)| SuppressedCount { project_id, count })
            .collect();
        by_project
            .sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.project_id.cmp(&b.project_id)));
        by_project.truncate(PROJECTS_TOLD);
        let total = std::mem::take(&mut self.total);
        let mut body = RefusalsSuppressed { by_project, total };
        // Long names make room for the total, which counts them too.
        while rmp_serde::to_vec_named(&body).map_or(0, |bytes| bytes.len()) > SUPPRESSED_BYTES {
            if body.by_project.pop().is_none() {
                break;
            }
        }
        Some(Event::RefusalsSuppressed(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_for_a_project_and_the_rest_is_counted() {
        let mut limiter = Limiter::default();
        let at = Duration::from_secs;
        let passed = (0..100).filter(|_| limiter.passes("p", at(5))).count();
        assert_eq!(passed, 10);
        assert!(limiter.passes("q", at(5)));
        assert_eq!(limiter.told(at(5)), None);
        let Some(Event::RefusalsSuppressed(told)) = limiter.told(at(6)) else { panic!("not told") };
        assert_eq!((told.total, told.by_project.len()), (90, 1));
        assert!(limiter.passes("p", at(6)));
        assert_eq!(limiter.told(at(7)), None);
    }
}
