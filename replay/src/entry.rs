//! One event with everything that is known about it beside its body.

use crate::error::Error;
use crate::names::Names;
use crate::open::Source;
use crate::shown::shown;
use crate::words::event_words;
use ledger::event::Event;
use ledger::record::Record;
use ledger::stamp::Actor;
use serde::Serialize;

/// One event as `history` and `explain` show it.
#[derive(Serialize)]
pub(crate) struct Entry {
    /// Its place in the ledger.
    pub sequence: u64,
    /// When it was decided.
    pub recorded_at: String,
    /// What it is.
    pub kind: String,
    /// What it says, for people.
    pub words: String,
    /// The server has acknowledged it.
    pub durable: bool,
    /// The generation before and after, of the provider or consumer that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Step>,
    /// Who asked.
    pub by: By,
    /// OpenStack's global request id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The client's id for the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// The move it belongs to.
    #[serde(rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<String>,
    /// The first event and the number of events of its group.
    pub group: (u64, u32),
    /// The body; none: this program does not know the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

/// A generation before and after; none: it did not exist.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Step {
    /// Before.
    pub before: Option<u32>,
    /// After.
    pub after: Option<u32>,
}

/// Who asked.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// This actor.
    Actor(Actor),
    /// It was erased, as the law may ask.
    Erased,
    /// It was never recorded.
    NotRecorded,
}

impl Entry {
    /// The entry of a record, and its event if this program knows the kind.
    pub fn of(
        source: &Source,
        record: &Record,
        names: &Names,
    ) -> Result<(Self, Option<Event>), Error> {
        let header = &record.header;
        let (words, event) = match record.event() {
            Ok(event) => (shown(&event_words(&event, names)), Some(event)),
            Err(error) => (error.to_string(), None),
        };
        let entry = Self {
            sequence: header.sequence,
            recorded_at: header.recorded_at.to_string(),
            kind: header.kind.clone(),
            words,
            durable: header.sequence <= source.durable(),
            generation: None,
            by: By::of(source, record)?,
            request_id: header.request_id.clone(),
            command_id: header.command_id.clone(),
            move_id: header.move_id.map(|id| id.to_string()),
            group: (header.group_first, header.group_count),
            body: event.as_ref().map(Event::body_json),
        };
        Ok((entry, event))
    }

    /// `*` where the server has not acknowledged it yet.
    pub fn mark(&self) -> char {
        if self.durable { ' ' } else { '*' }
    }
}

impl By {
    fn of(source: &Source, record: &Record) -> Result<Self, Error> {
        if record.header.private_digest.is_none() {
            return Ok(Self::NotRecorded);
        }
        let sequence = record.header.sequence;
        match source.reader().private(sequence)? {
            None => Ok(Self::Erased),
            Some(private) => {
                private.actor().map(Self::Actor).map_err(|error| Error::Private { sequence, error })
            }
        }
    }

    /// `by nova (project service, from 192.0.2.7)`; empty if nobody is on record.
    pub fn words(&self) -> String {
        let actor = match self {
            Self::Actor(actor) => actor,
            Self::Erased => return "by (erased)".into(),
            Self::NotRecorded => return String::new(),
        };
        let mut more = Vec::new();
        if !actor.project.is_empty() {
            more.push(format!("project {}", shown(&actor.project)));
        }
        if !actor.address.is_empty() {
            more.push(format!("from {}", actor.address));
        }
        match (actor.user.is_empty(), more.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("by {}", more.join(", ")),
            (false, true) => format!("by {}", shown(&actor.user)),
            (false, false) => format!("by {} ({})", shown(&actor.user), more.join(", ")),
        }
    }
}

impl Step {
    /// `generation 4 -> 5`, `generation 5`.
    pub fn words(self) -> String {
        let word =
            |generation: Option<u32>| generation.map_or("none".to_owned(), |g| g.to_string());
        if self.before == self.after {
            format!("generation {}", word(self.after))
        } else {
            format!("generation {} -> {}", word(self.before), word(self.after))
        }
    }
}
