//! What can go wrong, by what was wanted.

use serde_json::Value;

/// Why a command has no known outcome, or a bad one.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The ledger said no; nothing changed.
    #[error("refused ({code}): {text}")]
    Refused {
        /// The code, as HTTP would have it: 409, 404, 400 ...
        code: u16,
        /// Why, in words.
        text: String,
        /// The error object: `cause`, `shortages`, `passed_over`, `repeated` ...
        error: Value,
    },
    /// No answer came in time. It may be done or not: ask again under the same id.
    #[error("no answer to {id} after {attempts} attempts: {last}")]
    Unknown {
        /// The command's id.
        id: String,
        /// How often it was sent.
        attempts: u32,
        /// What went wrong last.
        last: String,
    },
    /// The answer could not be read.
    #[error("an answer that cannot be read: {0}")]
    Answer(String),
    /// The command could not be written.
    #[error("the command cannot be written: {0}")]
    Command(#[from] serde_json::Error),
}

/// Why bytes are no record, or not the one that was to come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// They are no record.
    #[error("no record: {0}")]
    Damaged(String),
    /// The body is not the one that the header was made for.
    #[error("event {0} has another body")]
    Body(u64),
    /// It is of another ledger.
    #[error("event {0} is of another ledger")]
    Ledger(u64),
    /// It is not the next one.
    #[error("event {found} came after {before}")]
    Sequence {
        /// The sequence before.
        before: u64,
        /// What came.
        found: u64,
    },
    /// It does not name the hash of the one before.
    #[error("event {0} does not name the hash of the event before it")]
    Chain(u64),
}

/// Why the ledger could not be read over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// No answer.
    #[error("the ledger does not answer: {0}")]
    Away(String),
    /// Another answer than 200.
    #[error("the ledger answered {status}: {text}")]
    Status {
        /// The status.
        status: u16,
        /// The body.
        text: String,
    },
    /// An answer that cannot be read.
    #[error("an answer that cannot be read: {0}")]
    Answer(String),
}

/// Why events cannot be followed any further. Whatever passes by itself is not among these.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The ledger itself gave a record that does not follow on the last one: history was changed,
    /// or this is another ledger.
    #[error("the ledger's history is not what it was: {0}")]
    History(RecordError),
    /// The ledger ends before the position that was asked for.
    #[error("the ledger ends at event {head}, and event {wanted} was seen before")]
    BeyondEnd {
        /// Where it ends.
        head: u64,
        /// The last event that was seen.
        wanted: u64,
    },
}

/// Why a view cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// A value is no JSON.
    #[error("the value of {key} cannot be read: {error}")]
    Value {
        /// Its key.
        key: String,
        /// Why.
        error: serde_json::Error,
    },
}
