//! `replay verify`: is the whole ledger sound?

mod capacity;
mod fetch;
mod findings;
mod walk;

use crate::cli::VerifyArgs;
use crate::error::Error;
use crate::open::Source;
use crate::progress::Progress;
use crate::{FINDING, GOOD};
use anstyle::{AnsiColor, Style};
use findings::{Finding, Findings};
use ledger::state::State;
use serde::Serialize;
use std::io::Write;
use walk::Walk;

/// Runs the verb.
pub(crate) fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let source = Source::open(&args.target)?;
    let report = verify(&source);
    if args.target.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        report.write(out)?;
    }
    Ok(if report.findings.is_empty() { GOOD } else { FINDING })
}

/// What was checked and what was found.
#[derive(Serialize)]
struct Report {
    /// Events that were read and checked.
    events: u64,
    /// Where the log ends.
    head: u64,
    /// The newest event that the server is known to have acknowledged; none: it never told.
    durable: Option<u64>,
    /// The state was folded up to here.
    folded_to: u64,
    seconds: f64,
    events_per_second: u64,
    /// The digest of the state folded from the start, if all of it could be folded.
    state_digest: Option<String>,
    providers: usize,
    consumers: usize,
    moves: usize,
    /// More was wrong than is listed, and the work was given up.
    gave_up: bool,
    findings: Vec<Finding>,
}

fn verify(source: &Source) -> Report {
    let mut progress = Progress::new("verifying");
    let mut walk = Walk::new(source);
    walk.run(&mut progress);
    progress.finish();
    let seconds = progress.seconds();
    let events_per_second = progress.rate(walk.checked) as u64;
    let Walk { checked, state, mut findings, .. } = walk;
    let whole = state.filter(|state| state.sequence() == source.head.sequence);
    if let Some(state) = &whole {
        check_state(source, state, &mut findings);
    }
    let count = |of: fn(&State) -> usize| whole.as_ref().map_or(0, of);
    Report {
        events: checked,
        head: source.head.sequence,
        durable: source.acknowledged.map(|_| source.durable()),
        folded_to: whole.as_ref().map_or(0, State::sequence),
        seconds,
        events_per_second,
        state_digest: whole.as_ref().map(|state| state.digest().to_string()),
        providers: count(State::provider_count),
        consumers: count(State::consumer_count),
        moves: count(|state| state.moves().len()),
        gave_up: findings.is_full(),
        findings: findings.list,
    }
}

/// What must hold of the state at the head: its own invariants, and that a start from the newest
/// checkpoint leads to the same one.
fn check_state(source: &Source, state: &State, findings: &mut Findings) {
    let head = state.sequence();
    if let Err(wrong) = state.check_invariants() {
        wrong.into_iter().for_each(|what| findings.add(head, what));
    }
    match source.state_at(head) {
        Ok(restored) if restored.digest() == state.digest() => {}
        Ok(restored) => findings.add(
            head,
            format!(
                "a start from the newest checkpoint gives the state {}, folding all events gives {}",
                restored.digest(),
                state.digest()
            ),
        ),
        Err(error) => findings.add(head, format!("a start from the newest checkpoint fails: {error}")),
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        for finding in &self.findings {
            let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            writeln!(out, "{red}Wrong{red:#} at event {}: {}", finding.sequence, finding.what)?;
        }
        if self.gave_up {
            writeln!(out, "More is wrong than is listed; the work was given up.")?;
        }
        writeln!(
            out,
            "Checked {} of {} events in {:.2} s, {} a second.",
            self.events, self.head, self.seconds, self.events_per_second
        )?;
        self.write_durable(out)?;
        let Some(digest) = &self.state_digest else {
            writeln!(out, "The state could not be folded to the end.")?;
            return Ok(());
        };
        writeln!(
            out,
            "State at event {}: {} providers, {} consumers, {} moves, digest {digest}",
            self.folded_to, self.providers, self.consumers, self.moves
        )?;
        if self.findings.is_empty() {
            let green = Style::new().bold().fg_color(Some(AnsiColor::Green.into()));
            writeln!(out, "{green}The ledger is sound.{green:#}")?;
        }
        Ok(())
    }

    fn write_durable(&self, out: &mut dyn Write) -> Result<(), Error> {
        match self.durable {
            Some(durable) if durable < self.head => writeln!(
                out,
                "Events {} to {} are not yet durable: the server has not acknowledged them.",
                durable + 1,
                self.head
            )?,
            Some(_) => {}
            None => writeln!(
                out,
                "The server's note of what it has acknowledged is not there or not whole."
            )?,
        }
        Ok(())
    }
}
