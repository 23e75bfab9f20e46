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
    /// Message n is event n up to a place, and from there on something else is in it.
    Foreign {
        /// The first message of the stream.
        begins: u64,
        /// The first message that is not the event of its number.
        from: u64,
        /// What is wrong.
        what: String,
    },
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
    let found = match misshapen(source, info) {
        Some(what) => Some(Verdict::Damaged(what)),
        None => contents(source, stream, info).await?,
    };
    Ok(match found {
        None => Verdict::Good,
        Some(verdict) if owner.is_some() => verdict,
        Some(Verdict::Damaged(what) | Verdict::Foreign { what, .. }) => {
            Verdict::NotOurs(format!("was not made by a ledger: it {what}"))
        }
        Some(verdict) => verdict,
    })
}

/// What a stream's configuration and counts have that ours would not.
pub(super) fn unlike(source: &Source, info: &Info) -> Option<String> {
    misshapen(source, info).or_else(|| beyond(source, info))
}

/// A stream that ends where the ledger has not been yet.
fn beyond(source: &Source, info: &Info) -> Option<String> {
    let (last, durable) = (info.state.last_sequence, *source.durable.borrow());
    (last > durable).then(|| format!("ends at {last}, beyond the ledger's {durable}"))
}

/// What makes a stream useless as a whole: other subjects, holes, another beginning.
fn misshapen(source: &Source, info: &Info) -> Option<String> {
    let state = &info.state;
    let subjects = source.options.subjects();
    if info.config.subjects != [subjects.as_str()] {
        return Some(format!("has the subjects {:?}, not {subjects}", info.config.subjects));
    }
    let first = info.config.first_sequence.unwrap_or(1).max(1);
    if state.messages == 0 && state.last_sequence + 1 == first {
        return None;
    }
    let spanned = state.last_sequence.saturating_add(1).saturating_sub(state.first_sequence);
    if state.messages != spanned || state.deleted_count.unwrap_or(0) > 0 {
        return Some(format!(
            "has {} messages from {} to {}: there are holes",
            state.messages, state.first_sequence, state.last_sequence
        ));
    }
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

/// What is in the stream that is not the ledger's.
async fn contents(source: &Source, stream: &Stream, info: &Info) -> Result<Option<Verdict>, Fault> {
    let (begins, last) = (info.state.first_sequence, info.state.last_sequence);
    let beyond = beyond(source, info);
    if info.state.messages == 0 {
        return Ok(beyond.map(Verdict::Damaged));
    }
    let end = last.min(*source.durable.borrow());
    if end < begins {
        return Ok(beyond.map(Verdict::Damaged));
    }
    if let Some(what) = differs(source, stream, begins).await? {
        return Ok(Some(Verdict::Damaged(what)));
    }
    let what = match differs(source, stream, end).await? {
        None => match beyond {
            None => return Ok(None),
            Some(what) => return Ok(Some(Verdict::Foreign { begins, from: end + 1, what })),
        },
        Some(what) => what,
    };
    // Nothing of ours goes behind something foreign, so the place is found by halving.
    let (mut good, mut bad) = (begins, end);
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        match differs(source, stream, middle).await? {
            None => good = middle,
            Some(_) => bad = middle,
        }
    }
    Ok(Some(Verdict::Foreign { begins, from: bad, what }))
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
