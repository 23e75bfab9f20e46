//! Whether a stream is what the publisher left: nothing foreign, no hole, no other history.

use super::Source;
use super::fault::Fault;
use super::message::subject;
use super::stream::LEDGER_KEY;
use async_nats::jetstream::stream::{Config, Info, LastRawMessageErrorKind, Stream};

/// What a stream is.
pub(super) enum Verdict {
    /// Message n is event n, from its first to its last.
    Good,
    /// It is the ledger's, and damaged: it is to be made anew.
    Damaged(String),
    /// It was made for something else and is none of our business.
    NotOurs(String),
}

/// Judges a stream by its configuration, its counts, and its first and last message. The last one
/// carries the hash of the record before it, so a stream that ends as the log does has the same
/// history.
pub(super) async fn judge(source: &Source, stream: &Stream) -> Result<Verdict, Fault> {
    let info = stream.cached_info();
    let owner = info.config.metadata.get(LEDGER_KEY);
    if let Some(owner) = owner.filter(|owner| **owner != source.ledger_id.to_string()) {
        return Ok(Verdict::NotOurs(format!("belongs to ledger {owner}")));
    }
    let found = match unlike(source, info) {
        Some(what) => Some(what),
        None => ends(source, stream, info).await?,
    };
    Ok(match found {
        None => Verdict::Good,
        Some(what) if owner.is_some() => Verdict::Damaged(what),
        Some(what) => Verdict::NotOurs(format!("was not made by a ledger: it {what}")),
    })
}

/// What a stream's configuration and counts have that ours would not.
pub(super) fn unlike(source: &Source, info: &Info) -> Option<String> {
    let state = &info.state;
    let subjects = source.options.subjects();
    if info.config.subjects != [subjects.as_str()] {
        return Some(format!("has the subjects {:?}, not {subjects}", info.config.subjects));
    }
    let durable = *source.durable.borrow();
    if state.last_sequence > durable {
        return Some(format!("ends at {}, beyond the ledger's {durable}", state.last_sequence));
    }
    if state.messages == 0 && state.last_sequence + 1 == source.options.first_sequence.max(1) {
        return None;
    }
    let spanned = (state.last_sequence + 1).saturating_sub(state.first_sequence);
    if state.messages != spanned || state.deleted_count.unwrap_or(0) > 0 {
        return Some(format!(
            "has {} messages from {} to {}: there are holes",
            state.messages, state.first_sequence, state.last_sequence
        ));
    }
    let first = info.config.first_sequence.unwrap_or(1).max(1);
    if state.first_sequence != first && !trims(&info.config) {
        return Some(format!("begins at {}, not at {first}", state.first_sequence));
    }
    None
}

/// Whether somebody set limits by which the server drops the oldest messages. That is no damage:
/// a reader that comes too late is told the stream's first sequence and reads the rest from the
/// ledger (I25).
fn trims(config: &Config) -> bool {
    config.max_messages > 0
        || config.max_bytes > 0
        || config.max_messages_per_subject > 0
        || !config.max_age.is_zero()
}

async fn ends(source: &Source, stream: &Stream, info: &Info) -> Result<Option<String>, Fault> {
    if info.state.messages == 0 {
        return Ok(None);
    }
    for sequence in [info.state.last_sequence, info.state.first_sequence] {
        if let Some(what) = differs(source, stream, sequence).await? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// How message `sequence` differs from event `sequence`, byte by byte.
async fn differs(source: &Source, stream: &Stream, sequence: u64) -> Result<Option<String>, Fault> {
    let record = source.reader.record(sequence)?.ok_or(Fault::Missing(sequence))?;
    let stored = match stream.get_raw_message(sequence).await {
        Ok(stored) => stored,
        Err(error) => match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => {
                return Ok(Some(format!("has no message {sequence}")));
            }
            _ => return Err(Fault::server("reading a message")(&error)),
        },
    };
    if stored.payload.as_ref() != record.bytes() {
        return Ok(Some(format!("has a message {sequence} that is not event {sequence}")));
    }
    if stored.subject.as_str() != subject(&source.options.subject_prefix, &record) {
        return Ok(Some(format!("has event {sequence} under the subject {}", stored.subject)));
    }
    Ok(None)
}
