//! `replay history`: what happened to one thing, one line an event.

use crate::GOOD;
use crate::cli::HistoryArgs;
use crate::entry::{Entry, Step};
use crate::error::Error;
use crate::names::Names;
use crate::open::Source;
use anstyle::{AnsiColor, Style};
use ledger::event::{AllocationEvent, Event};
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::log::IndexKey;
use std::io::Write;

const PAGE: usize = 1000;

/// Runs the verb.
pub(crate) fn run(args: &HistoryArgs, out: &mut dyn Write) -> Result<u8, Error> {
    let subject = Subject::of(args)?;
    if args.generation.is_some() && !subject.has_generation() {
        return Err(Error::Usage("--generation goes with --provider or --consumer".into()));
    }
    let source = Source::open(&args.target)?;
    let names = Names::new(source.reader());
    let mut walk = Walk {
        shown: 0,
        last: None,
        generation: before(&source, &subject, args.after)?,
        gone_since: None,
    };
    if !args.target.json {
        writeln!(out, "{}", subject.title(&names))?;
    }
    let more = walk.through(args, &source, &subject, &names, out)?;
    if !args.target.json {
        end_words(&walk, &subject, more, &source, out)?;
    }
    Ok(GOOD)
}

/// What the history is of.
#[derive(Clone)]
pub(crate) enum Subject {
    /// A consumer.
    Consumer(ConsumerUuid),
    /// A provider.
    Provider(ProviderUuid),
    /// Anything else that the log has an index of, and how it is called.
    Other(String, fn(&str) -> Option<IndexKey>, String),
}

impl Subject {
    fn of(args: &HistoryArgs) -> Result<Self, Error> {
        if let Some(consumer) = args.consumer {
            return Ok(Self::Consumer(consumer));
        }
        if let Some(provider) = args.provider {
            return Ok(Self::Provider(provider));
        }
        if let Some(id) = args.move_id {
            let key = |text: &str| text.parse().ok().map(IndexKey::Move);
            return Ok(Self::Other(id.to_string(), key, format!("move {id}")));
        }
        let id = args.request_id.clone().ok_or_else(|| Error::Usage("say whose history".into()))?;
        let title = format!("request {id}");
        Ok(Self::Other(id, |text| Some(IndexKey::RequestId(text.to_owned())), title))
    }

    fn key(&self) -> Option<IndexKey> {
        match self {
            Self::Consumer(consumer) => Some(IndexKey::Consumer(*consumer)),
            Self::Provider(provider) => Some(IndexKey::Provider(*provider)),
            Self::Other(text, key, _) => key(text),
        }
    }

    fn has_generation(&self) -> bool {
        !matches!(self, Self::Other(..))
    }

    fn title(&self, names: &Names) -> String {
        match self {
            Self::Consumer(consumer) => format!("History of consumer {consumer}"),
            Self::Provider(provider) => {
                format!("History of provider {}", names.provider_full(*provider))
            }
            Self::Other(_, _, title) => format!("History of {title}"),
        }
    }

    /// The generation after an event; none: the event leaves it alone.
    fn generation_after(&self, event: &Event) -> Option<Option<u32>> {
        match self {
            Self::Consumer(consumer) => allocations(event)
                .and_then(|body| body.consumers.iter().find(|change| change.consumer == *consumer))
                .map(|change| change.generation),
            Self::Provider(provider) => provider_generation(event, *provider),
            Self::Other(..) => None,
        }
    }
}

/// The part of an event that is about allocations.
pub(crate) fn allocations(event: &Event) -> Option<&AllocationEvent> {
    match event {
        Event::Claimed(body)
        | Event::DoubledUp(body)
        | Event::MovedToMigration(body)
        | Event::DestinationReleased(body)
        | Event::HostChanged(body)
        | Event::Reverted(body)
        | Event::Confirmed(body)
        | Event::Released(body)
        | Event::Reallocated(body) => Some(body),
        Event::Reshaped(body) => Some(&body.allocations),
        _ => None,
    }
}

fn provider_generation(event: &Event, provider: ProviderUuid) -> Option<Option<u32>> {
    let of = |named: ProviderUuid, generation: u32| (named == provider).then_some(Some(generation));
    match event {
        Event::ProviderCreated(body) => of(body.provider, body.generation),
        Event::ProviderUpdated(body) => of(body.provider, body.generation),
        Event::ProviderDeleted(body) => (body.provider == provider).then_some(None),
        Event::InventoryChanged(body) => of(body.provider, body.generation),
        Event::TraitsChanged(body) => of(body.provider, body.generation),
        Event::AggregatesChanged(body) => of(body.provider, body.generation),
        Event::Reshaped(body) => body
            .inventories
            .iter()
            .find_map(|change| of(change.provider, change.generation))
            .or_else(|| changed_usage(&body.allocations, provider)),
        other => allocations(other).and_then(|body| changed_usage(body, provider)),
    }
}

fn changed_usage(body: &AllocationEvent, provider: ProviderUuid) -> Option<Option<u32>> {
    body.providers
        .iter()
        .find(|change| change.provider == provider)
        .map(|change| Some(change.generation))
}

/// The generation that the subject had after event `after`.
fn before(source: &Source, subject: &Subject, after: u64) -> Result<Option<u32>, Error> {
    if after == 0 || !subject.has_generation() {
        return Ok(None);
    }
    let state = source.state_at(after.min(source.head.sequence))?;
    Ok(match subject {
        Subject::Consumer(consumer) => state.consumer(*consumer).map(|row| row.generation),
        Subject::Provider(provider) => state.provider(*provider).map(|row| row.generation),
        Subject::Other(..) => None,
    })
}

struct Walk {
    shown: usize,
    /// The last event shown.
    last: Option<Entry>,
    generation: Option<u32>,
    /// The event since which the subject is no more.
    gone_since: Option<u64>,
}

impl Walk {
    /// Shows the events; true if there are more than the limit.
    fn through(
        &mut self,
        args: &HistoryArgs,
        source: &Source,
        subject: &Subject,
        names: &Names,
        out: &mut dyn Write,
    ) -> Result<bool, Error> {
        let Some(key) = subject.key() else {
            return Ok(false);
        };
        let mut after = args.after;
        loop {
            let sequences = source.reader().index(&key, after, PAGE)?;
            let Some(&last) = sequences.last() else {
                return Ok(false);
            };
            for sequence in sequences {
                let (mut entry, event) = Entry::of(source, &source.record(sequence)?, names)?;
                self.step(subject, &mut entry, event.as_ref());
                let wanted = args.generation.is_none_or(|wanted| {
                    entry
                        .generation
                        .is_some_and(|step| step.after == Some(wanted) && step.before != step.after)
                });
                if !wanted {
                    continue;
                }
                if args.limit > 0 && self.shown == args.limit {
                    return Ok(true);
                }
                show(&entry, args.target.json, out)?;
                self.shown += 1;
                self.last = Some(entry);
            }
            after = last;
        }
    }

    fn step(&mut self, subject: &Subject, entry: &mut Entry, event: Option<&Event>) {
        if let Some(after) = event.and_then(|event| subject.generation_after(event)) {
            entry.generation = Some(Step { before: self.generation, after });
            self.generation = after;
            self.gone_since = after.is_none().then_some(entry.sequence);
        }
    }
}

fn show(entry: &Entry, json: bool, out: &mut dyn Write) -> Result<(), Error> {
    if json {
        writeln!(out, "{}", serde_json::to_string(entry)?)?;
        return Ok(());
    }
    writeln!(out, "{}", line(entry))?;
    Ok(())
}

/// One line: sequence, time, kind, what changed, generation, who, request id.
pub(crate) fn line(entry: &Entry) -> String {
    let style = kind_style(&entry.kind);
    let mut line = format!(
        "{:>8}{} {}  {style}{:<20}{style:#} {}",
        entry.sequence,
        entry.mark(),
        entry.recorded_at,
        entry.kind,
        entry.words
    );
    let more = [
        entry.generation.map(Step::words),
        Some(entry.by.words()).filter(|by| !by.is_empty()),
        entry.request_id.clone(),
        entry.command_id.as_ref().map(|id| format!("command id {id}")),
    ];
    for part in more.into_iter().flatten() {
        line.push_str(" | ");
        line.push_str(&part);
    }
    line
}

/// Refusals stand out, ends are calm.
pub(crate) fn kind_style(kind: &str) -> Style {
    let colour = match kind {
        "Rejected" | "SearchFailed" | "RefusalsSuppressed" => AnsiColor::Red,
        "Claimed" | "DoubledUp" | "MovedToMigration" => AnsiColor::Cyan,
        "Confirmed" | "Reverted" => AnsiColor::Green,
        _ => return Style::new().bold(),
    };
    Style::new().bold().fg_color(Some(colour.into()))
}

fn end_words(
    walk: &Walk,
    subject: &Subject,
    more: bool,
    source: &Source,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Some(entry) = &walk.last else {
        writeln!(out, "Nothing on record in events 1 to {}.", source.head.sequence)?;
        return Ok(());
    };
    if more {
        writeln!(out, "There is more: go on with --after {}.", entry.sequence)?;
        return Ok(());
    }
    match (subject, walk.gone_since) {
        (Subject::Consumer(_), Some(since)) => {
            writeln!(out, "It holds nothing since event {since}.")?
        }
        (Subject::Provider(_), Some(since)) => writeln!(out, "It was removed by event {since}.")?,
        _ => {}
    }
    if !entry.durable {
        writeln!(
            out,
            "* not yet durable: the server has acknowledged events up to {}.",
            source.durable()
        )?;
    }
    Ok(())
}
