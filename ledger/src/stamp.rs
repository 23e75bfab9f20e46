//! What the outside world adds to a command: who, when, on whose behalf. With it `decide` needs
//! neither clock nor randomness.

use crate::time::Timestamp;

/// An id that a client chose for a command, so that it can safely send it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandId {
    /// The project whose id this is: ids of different projects never meet.
    pub project: String,
    /// The id itself, 1 to [`crate::limits::COMMAND_ID_BYTES`] bytes.
    pub id: String,
}

/// Facts about one submission, drawn once when it is received.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// 16 random bytes: event and move ids are derived from them.
    pub seed: [u8; 16],
    /// When the request was received.
    pub received_at: Timestamp,
    /// Who asked; kept apart from the event's body because it names a person.
    pub actor: Actor,
    /// OpenStack's global request id: one id runs through all calls of one user action.
    pub request_id: Option<String>,
    /// The client's id for this command, if it chose one.
    pub command_id: Option<CommandId>,
}

/// Who asked. Stored in the erasable part of the record only.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Actor {
    /// The authenticated user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The project that the user acted in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The address the request came from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
}
