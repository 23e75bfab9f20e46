//! Each orphan is logged when it is first seen and once in a period from then on, and only a few at
//! a time: a leak is told, and does not flood the log.

use std::collections::HashMap;

use ledger::ids::ConsumerUuid;
use ledger::time::Timestamp;
use projector::orphans::Kind;

use super::Orphan;

/// How long one is not told again, in microseconds.
const PERIOD: i64 = 3_600_000_000;
/// The most that are told one by one at a time.
const AT_A_TIME: usize = 16;

/// What was told when, and the last counts.
#[derive(Default)]
pub(super) struct Notices {
    told: HashMap<(Kind, ConsumerUuid), Timestamp>,
    counts: [u64; Kind::ALL.len()],
    longest_open: u64,
}

impl Notices {
    /// Counts what was found at `now` in the state of `sequence`, and logs what is new.
    pub(super) fn take(&mut self, now: Timestamp, sequence: u64, found: &[&Orphan]) {
        self.count(now, found);
        let news = self.news(now, found);
        for orphan in news.iter().take(AT_A_TIME) {
            let finding = &orphan.finding;
            let id = finding.move_id.map(|id| id.to_string()).unwrap_or_default();
            tracing::warn!(
                kind = finding.kind.name(),
                consumer = %finding.consumer,
                r#move = id,
                since = %finding.since,
                sequence,
                "an orphan: {}", finding.kind.words()
            );
        }
        if news.len() > AT_A_TIME {
            tracing::warn!(more = news.len() - AT_A_TIME, "more orphans: see /ledger/v1/orphans");
        }
    }

    fn count(&mut self, now: Timestamp, found: &[&Orphan]) {
        self.counts = Kind::ALL
            .map(|kind| found.iter().filter(|orphan| orphan.finding.kind == kind).count() as u64);
        let open = found.iter().filter(|orphan| orphan.finding.kind == Kind::MoveStaysOpen);
        let oldest = open.map(|orphan| orphan.finding.since).min();
        self.longest_open = oldest.map_or(0, |since| {
            u64::try_from(now.seconds().saturating_sub(since.seconds())).unwrap_or(0)
        });
    }

    /// What was not told within the period; what is no orphan any more is forgotten.
    fn news<'a>(&mut self, now: Timestamp, found: &[&'a Orphan]) -> Vec<&'a Orphan> {
        let mut told = std::mem::take(&mut self.told);
        let mut news = Vec::new();
        for &orphan in found {
            let key = (orphan.finding.kind, orphan.finding.consumer);
            let before = told.remove(&key);
            let lately = before.filter(|at| now.micros().saturating_sub(at.micros()) < PERIOD);
            if lately.is_none() {
                news.push(orphan);
            }
            self.told.insert(key, lately.unwrap_or(now));
        }
        news
    }

    pub(super) fn counts(&self) -> ([(Kind, u64); Kind::ALL.len()], u64) {
        let mut counts = Kind::ALL.map(|kind| (kind, 0));
        for (count, counted) in counts.iter_mut().zip(self.counts) {
            count.1 = counted;
        }
        (counts, self.longest_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use projector::orphans::Finding;

    fn orphan(number: u128) -> Orphan {
        let finding = Finding {
            kind: Kind::MoveStaysOpen,
            consumer: ConsumerUuid(uuid::Uuid::from_u128(number)),
            move_id: None,
            since: Timestamp::from_micros(5_000_000),
            mend: Vec::new(),
        };
        Orphan { finding, source: None }
    }

    #[test]
    fn each_is_told_once_in_a_period() {
        let mut notices = Notices::default();
        let (one, two) = (orphan(1), orphan(2));
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(notices.news(at(10), &[&one]).len(), 1);
        assert_eq!(notices.news(at(70), &[&one]).len(), 0);
        let news = notices.news(at(130), &[&one, &two]);
        assert_eq!(
            news.iter().map(|it| it.finding.consumer).collect::<Vec<_>>(),
            [two.finding.consumer]
        );
        assert_eq!(notices.news(at(10 + 3600), &[&one, &two]).len(), 1, "the first again");
        // One that went and came back is news.
        assert_eq!(notices.news(at(3700), &[]).len(), 0);
        assert_eq!(notices.news(at(3701), &[&two]).len(), 1);
    }

    #[test]
    fn counts_are_by_kind_with_the_longest_open_move() {
        let mut notices = Notices::default();
        let (one, two) = (orphan(1), orphan(2));
        notices.take(Timestamp::from_micros(65_000_000), 9, &[&one, &two]);
        let (counts, longest) = notices.counts();
        assert_eq!(longest, 60);
        assert!(
            counts.contains(&(Kind::MoveStaysOpen, 2)) && counts.contains(&(Kind::NotLiving, 0))
        );
    }
}
