//! Outcomes of commands with an id: each id has one, for as long as the ledger lives.

use super::answer::{Answer, Group, Outcome};
use super::committed::Committed;
use super::encode::refusal_of;
use crate::command::Command;
use crate::event::{Answered, Event, ProviderAsAnswered, Unchanged};
use crate::ids::ProviderUuid;
use crate::log::{IndexKey, LogError, LogReader};
use crate::record::Hash;
use crate::refusal::{Cause, Refusal};
use crate::stamp::CommandId;
use crate::state::State;
use std::collections::HashMap;
use std::sync::Arc;

/// Ids that were decided and are not durable yet: where their group begins, and its digest.
#[derive(Default)]
pub(super) struct InFlight {
    first_of: HashMap<CommandId, (u64, Hash)>,
}

/// What is known of an id.
pub(super) enum Known {
    /// Nothing: the command is new.
    New,
    /// The same command was decided; its group begins here.
    Same(u64),
    /// Another command had the id.
    Other(Refusal),
}

impl InFlight {
    /// Looks an id up, first among what is under way, then in the log.
    ///
    /// # Errors
    /// [`LogError`] if the log cannot be read.
    pub(super) fn look_up(
        &self,
        id: &CommandId,
        digest: Hash,
        reader: &dyn LogReader,
    ) -> Result<Known, LogError> {
        let found = match self.first_of.get(id) {
            Some(found) => Some(*found),
            None => in_log(id, reader)?,
        };
        Ok(match found {
            None => Known::New,
            Some((first, same)) if same == digest => Known::Same(first),
            Some((first, _)) => Known::Other(Cause::CommandIdReused { sequence: first }.into()),
        })
    }

    pub(super) fn note(&mut self, id: CommandId, first: u64, digest: Hash) {
        self.first_of.insert(id, (first, digest));
    }

    pub(super) fn forget_durable(&mut self, durable: u64) {
        self.first_of.retain(|_, (first, _)| *first > durable);
    }

    /// Forgets what was decided after `sequence`: it is void.
    pub(super) fn forget_after(&mut self, sequence: u64) {
        self.first_of.retain(|_, (first, _)| *first <= sequence);
    }

    pub(super) fn clear(&mut self) {
        self.first_of.clear();
    }
}

fn in_log(id: &CommandId, reader: &dyn LogReader) -> Result<Option<(u64, Hash)>, LogError> {
    let key = IndexKey::Command(id.clone());
    for sequence in reader.index(&key, 0, 16)? {
        let record = reader.record(sequence)?;
        let missing = LogError::Missing { sequence, head: sequence };
        let header = record.ok_or(missing)?.header;
        // The index keeps a hash of the id: make sure that it is this one.
        let same = header.command_id.as_deref() == Some(&id.id)
            && header.command_project.as_deref() == Some(&id.project);
        if let (true, Some(digest)) = (same, header.command_digest) {
            return Ok(Some((sequence, digest)));
        }
    }
    Ok(None)
}

/// The answer that the group beginning at `first` was given, read from the log, which ends at
/// `head`. It was one of a list of so many commands.
///
/// # Errors
/// [`LogError`] if it cannot be read.
pub(super) fn answer_from_log(
    first: u64,
    commands: usize,
    reader: &dyn LogReader,
    head: u64,
) -> Result<Answer, LogError> {
    let missing = LogError::Missing { sequence: first, head };
    let count = reader.record(first)?.ok_or(missing)?.header.group_count;
    // The count comes from the disk: nothing is laid aside for it.
    let mut records = Vec::new();
    while records.len() < count as usize {
        let sequence = first.saturating_add(records.len() as u64);
        let next = reader.read(sequence, (count as usize).saturating_sub(records.len()))?;
        if next.is_empty() {
            return Err(LogError::Missing { sequence, head });
        }
        records.extend(next);
    }
    let mut events = Vec::with_capacity(records.len());
    for record in &records {
        let sequence = record.header.sequence;
        events.push(
            record.event().map_err(|error| LogError::Record { sequence, error: error.into() })?,
        );
    }
    let outcome = outcome_of(&events, first, commands);
    let last = first.saturating_add(count.into()).saturating_sub(1);
    let committed = Arc::new(Committed { first, last, records, events });
    Ok(Answer {
        outcome,
        sequence: head,
        repeated: true,
        group: Some(Group { committed, first, count }),
    })
}

/// What is kept of commands with an id of which some changed nothing, or all.
pub(super) fn answered(
    state: &State,
    commands: &[Command],
    unchanged: &[Option<Unchanged>],
) -> Answered {
    let all = unchanged.iter().all(Option::is_some);
    let with_answers = commands.iter().zip(unchanged);
    let providers = with_answers.filter_map(|(command, answer)| match (command, answer) {
        (Command::UpdateProvider(it), Some(_)) => as_answered(state, it.uuid),
        _ => None,
    });
    Answered {
        command: commands.first().map_or("", Command::name).into(),
        answers: if all { unchanged.iter().flatten().cloned().collect() } else { Vec::new() },
        of_list: if all { Vec::new() } else { unchanged.to_vec() },
        providers: providers.collect(),
    }
}

fn as_answered(state: &State, provider: ProviderUuid) -> Option<ProviderAsAnswered> {
    let row = state.provider(provider)?;
    let uuid = |id| state.provider_row(id).map(|row| row.uuid);
    Some(ProviderAsAnswered {
        provider,
        name: row.name.to_string(),
        parent: row.parent.and_then(uuid),
        root: uuid(row.root).unwrap_or(provider),
        generation: row.generation,
    })
}

fn outcome_of(events: &[Event], first: u64, commands: usize) -> Outcome {
    let mut unchanged = match events {
        [Event::Rejected(body)] => {
            return Outcome::Refused { refusal: refusal_of(body), recorded_at: Some(first) };
        }
        [.., Event::Answered(body)] if body.of_list.is_empty() => {
            body.answers.iter().cloned().map(Some).collect()
        }
        [.., Event::Answered(body)] => body.of_list.clone(),
        _ => Vec::new(),
    };
    // Who has nothing to say changed something. (Records of 0.1 tell of lists without any change.)
    unchanged.resize(commands, None);
    Outcome::Accepted { unchanged }
}
