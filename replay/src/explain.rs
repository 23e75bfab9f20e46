//! `replay explain`: why something was refused, or what it did, with the arithmetic of each step.

mod account;
mod overlap;
mod refusal;
mod steps;

use crate::GOOD;
use crate::cli::ExplainArgs;
use crate::entry::Entry;
use crate::error::Error;
use crate::history::kind_style;
use crate::names::Names;
use crate::open::Source;
use crate::words::state_words;
use ledger::event::{Event, Move};
use ledger::log::IndexKey;
use ledger::state::State;
use refusal::RefusalReport;
use serde::Serialize;
use std::collections::VecDeque;
use std::io::Write;
use steps::Steps;

const PAGE: usize = 1000;

/// Runs the verb.
pub(crate) fn run(args: &ExplainArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let source = Source::open(&args.target)?;
    let (sequences, left_out) = sequences(args, &source)?;
    let names = Names::new(source.reader());
    let mut walk = Walk { source: &source, names: &names, state: None };
    if args.target.json {
        let parts = sequences.iter().map(|&sequence| walk.part(sequence));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        serde_json::to_writer_pretty(&mut *out, &parts)?;
        writeln!(out)?;
        return Ok(GOOD);
    }
    if sequences.is_empty() {
        write_nothing(&source, out)?;
        return Ok(GOOD);
    }
    if left_out > 0 {
        writeln!(out, "The first {left_out} events are left out (--limit 0 shows all).\n")?;
    }
    let mut last_move = None;
    for (at, &sequence) in sequences.iter().enumerate() {
        let part = walk.part(sequence)?;
        if at > 0 {
            writeln!(out)?;
        }
        part.write(&names, out)?;
        last_move = part.moves.last().cloned().or(last_move);
    }
    if args.sequence.is_none() {
        write_end(args, last_move.as_ref(), &mut walk, out)?;
    }
    Ok(GOOD)
}

/// The events to explain, and how many earlier ones are left out.
fn sequences(args: &ExplainArgs, source: &Source) -> Result<(Vec<u64>, usize), Error> {
    if let Some(sequence) = args.sequence {
        let head = source.head.sequence;
        if !(1..=head).contains(&sequence) {
            let what = format!("there is no event {sequence}: the ledger has events 1 to {head}");
            return Err(Error::Usage(what));
        }
        return Ok((vec![sequence], 0));
    }
    let consumer = args.consumer.map(IndexKey::Consumer);
    let key = consumer
        .or(args.move_id.map(IndexKey::Move))
        .or(args.request_id.clone().map(IndexKey::RequestId))
        .ok_or_else(|| Error::Usage("say what to explain".into()))?;
    let mut kept = VecDeque::new();
    let mut left_out = 0;
    let mut after = 0;
    loop {
        let page = source.reader().index(&key, after, PAGE)?;
        let Some(&last) = page.last() else { break };
        kept.extend(page);
        after = last;
        while args.limit > 0 && kept.len() > args.limit {
            kept.pop_front();
            left_out += 1;
        }
    }
    Ok((kept.into(), left_out))
}

fn write_nothing(source: &Source, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "Nothing on record in events 1 to {}.", source.head.sequence)?;
    writeln!(
        out,
        "Not recorded are requests that were malformed, not allowed or about something unknown, conflicts of\n\
         generations, and of a project's refusals within one second those after the tenth (their number is in\n\
         an event RefusalsSuppressed), unless they came with a command id."
    )?;
    Ok(())
}

/// Goes from event to event, with the state before each.
struct Walk<'a> {
    source: &'a Source,
    names: &'a Names<'a>,
    state: Option<State>,
}

impl Walk<'_> {
    fn state_at(&mut self, target: u64) -> Result<State, Error> {
        let state = match self.state.take() {
            Some(mut state) if state.sequence() <= target => {
                self.source.advance(&mut state, target)?;
                state
            }
            _ => self.source.state_at(target)?,
        };
        self.state = Some(state.clone());
        Ok(state)
    }

    fn part(&mut self, sequence: u64) -> Result<Part, Error> {
        let record = self.source.record(sequence)?;
        let (entry, event) = Entry::of(self.source, &record, self.names)?;
        let mut part = Part { entry, refusal: None, steps: None, moves: Vec::new() };
        match &event {
            Some(Event::Rejected(body)) => {
                let before = self.state_at(sequence.saturating_sub(1))?;
                part.refusal = Some(RefusalReport::of(&before, body, &record.header, self.names));
            }
            Some(event) => {
                if let Some(body) = event.allocations() {
                    let before = self.state_at(sequence.saturating_sub(1))?;
                    let after = self.state_at(sequence)?;
                    part.steps = Some(Steps::of(&before, &after, body));
                    part.moves = body.moves.clone();
                }
            }
            None => {}
        }
        Ok(part)
    }
}

/// One event explained.
#[derive(Serialize)]
struct Part {
    #[serde(flatten)]
    entry: Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Steps>,
    #[serde(skip)]
    moves: Vec<Move>,
}

impl Part {
    fn write(&self, names: &Names, out: &mut dyn Write) -> Result<(), Error> {
        let entry = &self.entry;
        let style = kind_style(&entry.kind);
        writeln!(
            out,
            "Event {}  {}  {style}{}{style:#}",
            entry.sequence, entry.recorded_at, entry.kind
        )?;
        let who = [Some(entry.by.words()).filter(|by| !by.is_empty()), entry.request_id.clone()];
        let who: Vec<String> = who.into_iter().flatten().collect();
        if !who.is_empty() {
            writeln!(out, "  asked {}", who.join(", "))?;
        }
        if !entry.durable {
            writeln!(out, "  not yet durable: the server has not acknowledged it yet")?;
        }
        match (&self.refusal, &self.steps) {
            (Some(refusal), _) => refusal.write(out)?,
            (None, Some(steps)) => steps.write(names, out)?,
            (None, None) => writeln!(out, "  {}", entry.words)?,
        }
        Ok(())
    }
}

/// How things stand after the last event.
fn write_end(
    args: &ExplainArgs,
    last_move: Option<&Move>,
    walk: &mut Walk,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if args.consumer.is_none()
        && let Some(this) = last_move
    {
        writeln!(out, "\nThe move {} is {}.", this.id, state_words(this.state))?;
    }
    if let Some(consumer) = args.consumer {
        let state = walk.state_at(walk.source.head.sequence)?;
        let held = crate::words::holding_words(&state.holding_of(consumer), walk.names);
        writeln!(out, "\nNow (event {}) it holds {held}.", state.sequence())?;
    }
    Ok(())
}
