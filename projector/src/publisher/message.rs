//! Which message an event becomes.
//!
//! ```text
//! subject   <prefix>.event.<kind>.p.<provider uuid>   what happened to one provider
//!           <prefix>.event.<kind>.c.<000-fff>         what happened to a consumer's allocations,
//!                                                     and refusals of what it asked for
//!           <prefix>.event.<kind>.x.-                 everything else
//! body      the record as stored: format byte, header, body; never the private part
//! ```
//!
//! A subject for each consumer would fill the server's memory, so consumers share 4,096 of them:
//! the token is made of the first 12 bits of the BLAKE3 hash of the consumer's 16 bytes. The
//! consumer itself is in the header `Alloc-Consumer`. An event of several consumers (a move) goes
//! by the first; all of them are in the header. A reshape goes by its provider if it has only one.

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SEQUENCE, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use bytes::Bytes;
use ledger::allocation_event;
use ledger::event::Event;
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::record::Record;

/// The type of a message's body: a record as `docs/format.md` draws it.
pub const CONTENT_TYPE: &str = "application/vnd.allocd.record";

/// Consumers that a message's headers name.
const CONSUMERS_NAMED: usize = 32;
const EXPECTED_LAST_MESSAGE_ID: &str = "Nats-Expected-Last-Msg-Id";

/// What an event is about.
enum About {
    Provider(ProviderUuid),
    Consumers(Vec<ConsumerUuid>),
    Other,
}

/// A message to be published.
pub(super) struct Message {
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The subject of a record.
pub fn subject(prefix: &str, record: &Record) -> String {
    place(prefix, &record.header.kind, &about(record))
}

/// A consumer's token in subjects: three hexadecimal digits.
pub fn consumer_token(consumer: ConsumerUuid) -> String {
    let hash = blake3::hash(consumer.0.as_bytes());
    hash.to_hex()[..3].to_owned()
}

/// The message of a record for a stream. `previous_id` is the id of the message before it, if it
/// was published in the same session.
pub(super) fn message(
    prefix: &str,
    stream: &str,
    record: &Record,
    previous_id: Option<&str>,
) -> Message {
    let about = about(record);
    let header = &record.header;
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, header.id.to_string());
    headers.insert(NATS_EXPECTED_STREAM, stream);
    headers.insert(NATS_EXPECTED_LAST_SEQUENCE, header.sequence.saturating_sub(1).to_string());
    if let Some(id) = previous_id {
        headers.insert(EXPECTED_LAST_MESSAGE_ID, id);
    }
    if let About::Consumers(consumers) = &about {
        for consumer in consumers.iter().take(CONSUMERS_NAMED) {
            headers.append("Alloc-Consumer", consumer.to_string());
        }
    }
    headers.insert("Alloc-Group", format!("{}/{}", header.group_first, header.group_count));
    headers.insert("Content-Type", CONTENT_TYPE);
    headers.insert("ce-specversion", "1.0");
    headers.insert("ce-id", header.id.to_string());
    headers.insert("ce-source", format!("/allocd/{}", header.ledger_id));
    headers.insert("ce-type", format!("allocd.v1.{}", header.kind));
    headers.insert("ce-time", header.recorded_at.to_string());
    headers.insert("ce-sequence", header.sequence.to_string());
    Message {
        subject: place(prefix, &header.kind, &about),
        headers,
        body: Bytes::copy_from_slice(record.bytes()),
    }
}

fn place(prefix: &str, kind: &str, about: &About) -> String {
    match about {
        About::Provider(provider) => format!("{prefix}.event.{kind}.p.{provider}"),
        About::Consumers(consumers) if !consumers.is_empty() => {
            format!("{prefix}.event.{kind}.c.{}", consumer_token(consumers[0]))
        }
        About::Consumers(_) | About::Other => format!("{prefix}.event.{kind}.x.-"),
    }
}

fn about(record: &Record) -> About {
    // An event that this program does not know is published all the same.
    let Ok(event) = record.event() else {
        return About::Other;
    };
    match event {
        allocation_event!(body) => {
            About::Consumers(body.consumers.iter().map(|change| change.consumer).collect())
        }
        Event::Rejected(body) => {
            About::Consumers(body.asked.iter().map(|asked| asked.consumer).collect())
        }
        Event::ProviderCreated(body) => About::Provider(body.provider),
        Event::ProviderUpdated(body) => About::Provider(body.provider),
        Event::ProviderDeleted(body) => About::Provider(body.provider),
        Event::InventoryChanged(body) => About::Provider(body.provider),
        Event::RetirementChanged(body) => About::Provider(body.provider),
        Event::TraitsChanged(body) => About::Provider(body.provider),
        Event::AggregatesChanged(body) => About::Provider(body.provider),
        Event::Reshaped(body) => match body.inventories.as_slice() {
            [only] => About::Provider(only.provider),
            _ => About::Other,
        },
        Event::Genesis(_)
        | Event::TraitCreated(_)
        | Event::TraitDeleted(_)
        | Event::ResourceClassCreated(_)
        | Event::ResourceClassRenamed(_)
        | Event::ResourceClassDeleted(_)
        | Event::RefusalsSuppressed(_)
        | Event::SearchFailed(_)
        | Event::Answered(_)
        | Event::SettingsChanged(_)
        | Event::QuotaChanged(_)
        | Event::EventSkipped(_)
        | Event::Erased(_) => About::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_share_4096_subjects() {
        let token = consumer_token(ConsumerUuid(uuid::Uuid::nil()));
        assert_eq!(token.len(), 3);
        assert!(u16::from_str_radix(&token, 16).is_ok());
        let tokens: std::collections::BTreeSet<String> = (0..100_000u128)
            .map(|number| consumer_token(ConsumerUuid(uuid::Uuid::from_u128(number))))
            .collect();
        assert_eq!(tokens.len(), 4_096);
    }
}
