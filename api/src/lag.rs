//! How far something lags behind the ledger, in events and in seconds, and how far it may.

use ledger::Ledger;
use ledger::time::{Clock, Timestamp};

use crate::app::App;

/// A follower's lag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// Durable events that it lacks.
    pub events: u64,
    /// How long the oldest of them has been waiting, in seconds; 0: it lacks none.
    pub seconds: f64,
}

/// What follows the ledger: a view, the publisher, the buckets.
#[derive(Clone, Debug)]
pub struct Follower {
    /// What.
    pub name: &'static str,
    /// How far it lags.
    pub lag: Lag,
    /// Why it makes the server unready, if it does.
    pub unready: Option<String>,
}

/// Everything that follows the ledger.
#[must_use]
pub fn followers(app: &App) -> Vec<Follower> {
    let judged = |name: &'static str, sequence: u64, bound: Bound| {
        let lag = Lag::of(&app.ledger, &*app.clock, sequence);
        Follower { name, lag, unready: lag.above(bound, name) }
    };
    let views = app.projections.health().into_iter().map(|health| {
        let mut view = judged(health.view, health.sequence.unwrap_or(0), app.bounds.views);
        if let Some(why) = health.stopped.filter(|_| view.lag.events > 0) {
            view.unready = Some(format!("the view {} has stopped: {why}", health.view));
        }
        view
    });
    let publisher = app
        .publisher
        .as_ref()
        .map(|publisher| judged("publisher", publisher.status().published, app.bounds.published));
    let buckets = app
        .buckets
        .as_ref()
        .map(|buckets| judged("buckets", buckets.status().sequence, app.bounds.published));
    views.chain(publisher).chain(buckets).collect()
}

/// How far views and what is published may lag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Views, which answers over HTTP are made from.
    pub views: Bound,
    /// The stream and the buckets on NATS.
    pub published: Bound,
}

/// How far something may lag before the server counts as not ready. None: as far as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// In events.
    pub events: Option<u64>,
    /// In seconds.
    pub seconds: Option<u64>,
}

impl Lag {
    /// The lag of what has everything up to `sequence`.
    #[must_use]
    pub fn of(ledger: &Ledger, clock: &dyn Clock, sequence: u64) -> Self {
        let durable = ledger.view().sequence();
        let events = durable.saturating_sub(sequence);
        if events == 0 {
            return Self { events, seconds: 0.0 };
        }
        // A log that cannot be read is told elsewhere; here the lag in events has to do.
        let oldest = ledger.reader().record(sequence + 1).ok().flatten();
        let since = oldest.map_or(0.0, |oldest| age(oldest.header.recorded_at, clock.now()));
        Self { events, seconds: since }
    }

    /// What is wrong if the lag is above the bound.
    #[must_use]
    pub fn above(&self, bound: Bound, who: &str) -> Option<String> {
        if let Some(most) = bound.events.filter(|most| self.events > *most) {
            return Some(format!("{who} lacks {} events, more than {most}", self.events));
        }
        let most = bound.seconds.filter(|most| self.seconds > *most as f64)?;
        Some(format!("{who} lags {:.0} seconds, more than {most}", self.seconds))
    }
}

/// Seconds from `then` to `now`; a clock that went back makes nothing younger than new.
fn age(then: Timestamp, now: Timestamp) -> f64 {
    let micros = now.micros().saturating_sub(then.micros()).max(0);
    // Far below 2^53 microseconds.
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_in_events_or_in_seconds() {
        let lag = Lag { events: 10, seconds: 5.0 };
        let bound = |events, seconds| Bound { events, seconds };
        assert_eq!(lag.above(bound(None, None), "it"), None);
        assert_eq!(lag.above(bound(Some(10), Some(5)), "it"), None);
        assert!(lag.above(bound(Some(9), None), "it").is_some_and(|it| it.contains("10 events")));
        assert!(lag.above(bound(None, Some(4)), "it").is_some_and(|it| it.contains("5 seconds")));
    }

    #[test]
    fn nothing_is_younger_than_new() {
        let time = Timestamp::from_micros;
        assert!(age(time(0), time(1_500_000)) > 1.4);
        assert!(age(time(1_500_000), time(0)) < f64::EPSILON);
    }
}
