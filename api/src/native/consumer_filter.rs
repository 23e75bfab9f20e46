//! Which consumers a list has.

use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::state::{Consumer, State};
use ledger::time::Timestamp;

use super::page::{self, Page, value};
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::query::Query;

const INSTANCE: &str = "INSTANCE";
const MIGRATION: &str = "MIGRATION";
/// Placement's word for consumers without a type.
const UNKNOWN: &str = "unknown";

/// What all consumers of a list have in common.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) project: Option<String>,
    consumer_type: Option<String>,
    pub(super) provider: Option<ProviderUuid>,
    class: Option<String>,
    /// They hold something since before this moment, without a break.
    since: Option<Timestamp>,
    pub(super) open_moves: Option<bool>,
}

impl Filter {
    /// Reads a query string.
    ///
    /// # Errors
    /// 400.
    pub(super) fn parse(text: &str) -> Result<(Self, Page<ConsumerUuid>), Failure> {
        let (mut filter, mut page) = (Self::default(), Page::default());
        let query = Query::parse(text)?;
        for (name, text) in query.pairs() {
            match name {
                "project" => filter.project = Some(text.to_owned()),
                "type" => filter.consumer_type = Some(text.to_owned()),
                "provider" => filter.provider = Some(value(name, text)?),
                "class" => filter.class = Some(text.to_owned()),
                "older_than" => filter.since = Some(ago(name, text)?),
                "open_moves" => filter.open_moves = Some(value(name, text)?),
                _ if page.take(name, text)? => {}
                _ => return Err(page::no_filter(name)),
            }
        }
        Ok((filter, page))
    }

    /// Whether consumers with this stored type may pass.
    pub(super) fn may_be(&self, stored: &str) -> bool {
        self.consumer_type.as_deref().is_none_or(|wanted| wanted == stored)
    }

    pub(super) fn covers(&self, state: &State, row: &Consumer) -> bool {
        let project = &**state.projects().name(row.project);
        self.project.as_deref().is_none_or(|wanted| wanted == project)
            && self.since.is_none_or(|since| row.created_at < since)
            && self.covers_type(state, row)
            && self.covers_holding(state, row)
            && self.open_moves.is_none_or(|wanted| wanted == moves(state, row.uuid))
    }

    /// One without a stored type counts as what its move says it is.
    fn covers_type(&self, state: &State, row: &Consumer) -> bool {
        let Some(wanted) = self.consumer_type.as_deref() else { return true };
        match row.consumer_type {
            Some(id) => **state.consumer_types().name(id) == *wanted,
            None => role(state, row.uuid).unwrap_or(UNKNOWN) == wanted,
        }
    }

    fn covers_holding(&self, state: &State, row: &Consumer) -> bool {
        row.allocations.iter().any(|held| {
            let provider = state.provider_row(held.provider).map(|row| row.uuid);
            self.provider.is_none_or(|wanted| provider == Some(wanted))
                && self
                    .class
                    .as_deref()
                    .is_none_or(|wanted| **state.classes().name(held.class) == *wanted)
        })
    }
}

/// Which side of its latest move a consumer is; none: it had none that is kept.
pub(super) fn role(state: &State, consumer: ConsumerUuid) -> Option<&'static str> {
    let latest = state.moves().of(consumer).next()?;
    Some(if latest.this.migration == Some(consumer) { MIGRATION } else { INSTANCE })
}

fn moves(state: &State, consumer: ConsumerUuid) -> bool {
    state.moves().of(consumer).any(|entry| entry.this.state.is_live())
}

/// The moment that was so long ago: a number of seconds, or a duration such as `1h30m`.
fn ago(name: &str, text: &str) -> Result<Timestamp, Failure> {
    let micros = micros_of(name, text)?;
    Ok(Timestamp::from_micros(last_modified::now().saturating_sub(micros)))
}

/// A time span in microseconds: a number of seconds, or a duration such as `1h30m`.
///
/// # Errors
/// 400.
pub(super) fn micros_of(name: &str, text: &str) -> Result<i64, Failure> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(i64::from(seconds) * 1_000_000);
    }
    let duration: jiff::SignedDuration = value(name, text)?;
    Ok(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_seconds_or_durations() {
        let now = last_modified::now();
        for text in ["3600", "1h", "60m", "PT1H"] {
            let (filter, _) = Filter::parse(&format!("older_than={text}")).expect(text);
            let micros = filter.since.expect("a moment").micros();
            assert!((now - micros - 3_600_000_000).abs() < 60_000_000, "{text}");
        }
        assert!(Filter::parse("older_than=yesterday").is_err());
        assert!(Filter::parse("colour=red").is_err());
        assert!(Filter::parse("provider=x").is_err());
    }
}
