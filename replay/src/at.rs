//! `replay at`: the state at any moment.

mod view;

use crate::GOOD;
use crate::cli::{AtArgs, Point};
use crate::error::Error;
use crate::open::Source;
use ledger::state::State;
use std::io::Write;
use view::View;

/// Runs the verb.
pub(crate) fn run(args: &AtArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let source = Source::open(&args.target)?;
    let asked = sequence(&source, args.point)?;
    let whole = whole_groups(&source, asked)?;
    let state = source.state_at(whole)?;
    let mut view = View::of(args, &source, &state, asked)?;
    view.still_to_come = still_to_come(args.point);
    if args.target.json {
        serde_json::to_writer_pretty(&mut *out, &view)?;
        writeln!(out)?;
    } else {
        view.write(out)?;
    }
    Ok(GOOD)
}

/// The sequence that a point means.
fn sequence(source: &Source, point: Point) -> Result<u64, Error> {
    let head = source.head.sequence;
    match point {
        Point::Latest => Ok(head),
        Point::Sequence(sequence) if (1..=head).contains(&sequence) => Ok(sequence),
        Point::Sequence(sequence) => Err(Error::Usage(format!(
            "there is no event {sequence}: the ledger has events 1 to {head}"
        ))),
        Point::Time(time) => match source.reader().sequence_at(time)? {
            0 => Err(Error::Usage(format!("the ledger begins after {time}"))),
            sequence => Ok(sequence),
        },
    }
}

/// The time that was asked for, if it has not come yet.
fn still_to_come(point: Point) -> Option<String> {
    let now = jiff::Timestamp::now().as_microsecond();
    match point {
        Point::Time(time) if time.micros() > now => Some(time.to_string()),
        _ => None,
    }
}

/// The last event at or before `asked` with which a group is whole: no reader ever saw half of one.
fn whole_groups(source: &Source, asked: u64) -> Result<u64, Error> {
    let header = source.record(asked)?.header;
    let last = header.group_first.saturating_add(u64::from(header.group_count).saturating_sub(1));
    Ok(if asked >= last { asked } else { header.group_first.saturating_sub(1) })
}

/// How a list was cut off, for people.
fn cut_words(shown: usize, all: usize) -> String {
    if shown < all { format!("{all}, the first {shown} shown") } else { all.to_string() }
}

/// Allocations by class on one provider, the figures that `held` is made of.
fn sum_of_allocations(state: &State, provider: u32, class: u32) -> u64 {
    state.holders(provider).map(|holder| u64::from(holder.amount(provider, class))).sum()
}
