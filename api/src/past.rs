//! Reading the past: a GET with the header `Ledger-At` (a sequence, or a time in RFC 3339) is
//! answered from the state as it was then, folded from the log.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use ledger::fold::{self, FoldError};
use ledger::log::{LogError, LogReader};
use ledger::state::State;
use ledger::time::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::operation::Operation;
use crate::unreadable::unreadable;

/// The header that asks for the past.
const HEADER: &str = "ledger-at";

/// How many states of the past are held at a time: each can be as large as the present one.
pub const AT_A_TIME: usize = 2;

/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// A state of the past, and the right to hold it.
#[derive(Debug)]
pub struct Past {
    /// The state.
    pub state: Arc<State>,
    _turn: OwnedSemaphorePermit,
}

/// Where a request wants to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Sequence(u64),
    Time(Timestamp),
}

/// The state that a request wants to be answered from; none: the present one.
///
/// An event in the midst of a group is taken back to the group before: nobody ever saw half of
/// one.
///
/// # Errors
/// 400 for a malformed header and where it has no meaning, 404 for what is beyond the end or
/// before the beginning, 503 if too many look at the past.
pub async fn asked(
    app: &App,
    headers: &HeaderMap,
    method: &Method,
    operation: Operation,
) -> Result<Option<Past>, Failure> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    if operation == Operation::ShowRoot {
        return Ok(None);
    }
    if *method != Method::GET || !can_look_back(operation) {
        return Err(Failure::bad_request("The header Ledger-At has no meaning for this request."));
    }
    let point = value.to_str().ok().and_then(parse).ok_or_else(|| {
        Failure::bad_request(
            "The header Ledger-At has to be a sequence, counted from 1, or a time in RFC 3339.",
        )
    })?;
    let turn = tokio::time::timeout(PATIENCE, Arc::clone(&app.pasts).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else {
        return Err(Failure::busy("Too many requests look at the past."));
    };
    let state = tokio::task::block_in_place(|| state_at(app, point))?;
    Ok(Some(Past { state, _turn: turn }))
}

/// Placement's routes, and those of the ledger's own that show a state.
fn can_look_back(operation: Operation) -> bool {
    use Operation as Op;
    !matches!(
        operation,
        Op::LedgerCommands
            | Op::LedgerEvents
            | Op::LedgerEventStream
            | Op::LedgerMoves
            | Op::LedgerMove
            | Op::LedgerConsumerHistory
            | Op::LedgerProviderHistory
            | Op::LedgerOrphans
            | Op::LedgerLiving
    )
}

fn parse(text: &str) -> Option<Point> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|sequence| *sequence > 0).map(Point::Sequence);
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Point::Time(Timestamp::from_micros(time.as_microsecond())))
}

fn state_at(app: &App, point: Point) -> Result<Arc<State>, Failure> {
    let (view, reader) = (app.view(), app.ledger.reader());
    let head = view.sequence();
    let asked = match point {
        Point::Sequence(sequence) if sequence <= head => sequence,
        Point::Sequence(sequence) => {
            return Err(not_there(head, &format!("event {sequence} is not there")));
        }
        Point::Time(time) if time.micros() > last_modified::now() => {
            return Err(not_there(head, &format!("{time} is yet to come")));
        }
        Point::Time(time) => reader.sequence_at(time).map_err(|error| unreadable(&error))?,
    };
    let target = whole_groups(&*reader, asked.min(head)).map_err(|error| unreadable(&error))?;
    match target {
        0 => {
            Err(Failure::not_found("The ledger begins after that.").field("cause", "before_start"))
        }
        target if target == head => Ok(view),
        target => fold_to(app, &*reader, target).map(Arc::new).map_err(|error| unreadable(&error)),
    }
}

fn fold_to(app: &App, reader: &dyn LogReader, target: u64) -> Result<State, FoldError> {
    let mut quiet = |_, _| {};
    match app.ledger.dir() {
        Some(dir) => fold::restore(dir, reader, target, &mut quiet).map(|(state, _)| state),
        None => {
            let mut state = State::default();
            fold::fold(&mut state, reader, target, &mut quiet)?;
            Ok(state)
        }
    }
}

/// The last event at or before `asked` with which a group is whole.
fn whole_groups(reader: &dyn LogReader, asked: u64) -> Result<u64, LogError> {
    let Some(record) = reader.record(asked)? else { return Ok(0) };
    let header = record.header;
    let last = header.group_first.saturating_add(u64::from(header.group_count).saturating_sub(1));
    Ok(if asked >= last { asked } else { header.group_first.saturating_sub(1) })
}

fn not_there(head: u64, what: &str) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, format!("The ledger ends at event {head}; {what}."))
        .field("cause", "beyond_end")
        .field("head", head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_times_are_told_apart() {
        assert_eq!(parse("812"), Some(Point::Sequence(812)));
        let time = Some(Point::Time(Timestamp::from_micros(1_500_000)));
        assert_eq!(parse("1970-01-01T00:00:01.5Z"), time);
        assert_eq!(parse("1970-01-01T01:00:01.5+01:00"), time);
        for text in ["", "0", "-1", "1.5", "yesterday", "1970-01-01", "99999999999999999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
