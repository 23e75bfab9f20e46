//! Turning the events of a group into records that follow on the chain.

use crate::command::Command;
use crate::commands::options::query_told;
use crate::event::{Asked, Event, Rejected};
use crate::ids::{EventId, LedgerId, MoveId, derived_uuid};
use crate::limits;
use crate::log::Head;
use crate::record::{Hash, Header, Private, Record, RecordError};
use crate::refusal::{Cause, Refusal};
use crate::stamp::Stamp;
use crate::time::Timestamp;

/// What all records of a group have in common.
pub(super) struct Envelope<'a> {
    pub(super) ledger_id: LedgerId,
    pub(super) epoch: u64,
    pub(super) stamp: &'a Stamp,
    pub(super) recorded_at: Timestamp,
    pub(super) digest: Option<Hash>,
}

/// The records of a group that follows on `head`, with their private parts.
///
/// # Errors
/// [`RecordError`] if an event cannot be encoded.
pub(super) fn records(
    envelope: &Envelope<'_>,
    head: Head,
    events: &[Event],
) -> Result<Vec<(Record, Private)>, RecordError> {
    let mut previous = head;
    let mut records = Vec::with_capacity(events.len());
    let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
    for (index, event) in (0u32..).zip(events) {
        let private = Private::encode(&envelope.stamp.actor, &envelope.stamp.seed, index)?;
        let header = Header {
            ledger_id: envelope.ledger_id,
            epoch: envelope.epoch,
            sequence: previous.sequence + 1,
            id: EventId(derived_uuid(&envelope.stamp.seed, envelope.stamp.received_at, index)),
            group_first: head.sequence + 1,
            group_count: count,
            received_at: envelope.stamp.received_at,
            recorded_at: envelope.recorded_at,
            schema: 0,
            kind: String::new(),
            command_id: envelope.stamp.command_id.as_ref().map(|id| id.id.clone()),
            command_project: envelope.stamp.command_id.as_ref().map(|id| id.project.clone()),
            command_digest: envelope.digest.filter(|_| envelope.stamp.command_id.is_some()),
            request_id: envelope.stamp.request_id.clone(),
            move_id: move_of(event),
            previous_hash: previous.hash,
            body_digest: Hash::default(),
            private_digest: Some(private.digest()),
        };
        let record = Record::encode(header, event)?;
        previous = Head { sequence: record.header.sequence, hash: record.hash };
        records.push((record, private));
    }
    Ok(records)
}

fn move_of(event: &Event) -> Option<MoveId> {
    match event {
        Event::Rejected(body) => body.move_id,
        // It is about providers; moves that it touches follow what their sides hold.
        Event::Reshaped(_) => None,
        other => other.allocations().and_then(|body| body.moves.last()).map(|this| this.id),
    }
}

/// The digest of a list of commands without their stamp.
pub(super) fn digest(commands: &[Command]) -> Hash {
    let encoded = rmp_serde::to_vec_named(commands).unwrap_or_default();
    Hash(
        *blake3::Hasher::new_derive_key("allocd 2026 command digest")
            .update(&encoded)
            .finalize()
            .as_bytes(),
    )
}

/// The record of a refusal, cut down until it fits its limit: first what was passed over, then
/// what was asked, then those who hold what was lacking, then the names in the cause but the first
/// of each list, then the shortages but the first.
pub(super) fn rejected(commands: &[Command], digest: Hash, refusal: &Refusal) -> Rejected {
    let command = commands.get(refusal.index as usize).or_else(|| commands.first());
    let asked = command.map(Command::asked).unwrap_or_default();
    let query = command.and_then(Command::query);
    let by_query = query.is_some();
    let is_told = matches!(refusal.cause, Cause::NoCandidate { .. });
    let mut body = Rejected {
        command: command.map_or("", Command::name).to_owned(),
        digest,
        asked: asked
            .into_iter()
            .filter(|(_, holding)| !holding.is_empty() || by_query)
            .take(limits::SHORTAGES)
            .map(|(consumer, holding)| Asked { consumer, holding: holding.clone() })
            .collect(),
        move_id: refusal.move_id,
        cause: refusal.cause.clone(),
        shortages: refusal.shortages.clone(),
        passed_over: refusal.passed_over.clone(),
        options: refusal.options,
        held_by: refusal.held_by.clone(),
        query: query.filter(|_| !is_told).map(|query| query_told(query).to_owned()),
        index: refusal.index,
        left_out: refusal.left_out,
    };
    body.shortages.truncate(limits::SHORTAGES);
    body.passed_over.truncate(limits::OPTIONS_TOLD);
    while rmp_serde::to_vec_named(&body).map_or(0, |bytes| bytes.len()) > limits::REJECTED_BYTES {
        if body.passed_over.pop().is_some() || body.asked.pop().is_some() {
            continue;
        }
        if body.held_by.as_mut().is_some_and(|holders| holders.first.pop().is_some()) {
            continue;
        }
        let left_out = body.cause.shorten();
        if left_out > 0 {
            body.left_out = body.left_out.saturating_add(left_out);
            continue;
        }
        if body.shortages.len() <= 1 {
            body.cause = Cause::Malformed { what: "too large to be recorded whole".into() };
            break;
        }
        body.shortages.pop();
    }
    body
}

/// The refusal that a record of one tells: what a command with an id is answered, the first time
/// as every other time.
pub(super) fn refusal_of(body: &Rejected) -> Refusal {
    Refusal {
        cause: body.cause.clone(),
        shortages: body.shortages.clone(),
        passed_over: body.passed_over.clone(),
        options: body.options,
        held_by: body.held_by.clone(),
        move_id: body.move_id,
        index: body.index,
        left_out: body.left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Name;
    use crate::stamp::Actor;

    /// What limits of what a command may name rest on.
    #[test]
    fn no_record_is_smaller_than_the_limits_count_with() {
        let now = Timestamp::from_micros(1);
        let stamp = Stamp {
            seed: [0; 16],
            received_at: now,
            actor: Actor::default(),
            request_id: None,
            command_id: None,
        };
        let ledger_id = LedgerId::default();
        let envelope =
            Envelope { ledger_id, epoch: 0, stamp: &stamp, recorded_at: now, digest: None };
        let event = Event::TraitCreated(Name { name: "CUSTOM_A".into() });
        let head = Head { sequence: 0, hash: Hash::default() };
        let records = records(&envelope, head, &[event]).unwrap();
        let bytes = records[0].0.bytes().len();
        assert!(bytes >= limits::RECORD_BYTES_LEAST, "{bytes}");
    }
}
