//! What the outside world adds to a command: who, when, on whose behalf. With it `decide` needs
//! neither clock nor randomness.

use crate::limits::{COMMAND_ID_BYTES, NAME_CHARS, REQUEST_ID_BYTES};
use crate::refusal::Cause;
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

impl Stamp {
    /// Checks that everything in it is within its limit: each record of a group repeats it.
    ///
    /// # Errors
    /// [`Cause::TooLarge`] naming what is too long.
    pub fn check(&self) -> Result<(), Cause> {
        let id = self.command_id.as_ref();
        let sizes = [
            ("characters of the user", self.actor.user.chars().count(), NAME_CHARS),
            ("characters of the project", self.actor.project.chars().count(), NAME_CHARS),
            ("characters of the address", self.actor.address.chars().count(), NAME_CHARS),
            (
                "bytes of the request id",
                self.request_id.as_ref().map_or(0, String::len),
                REQUEST_ID_BYTES,
            ),
            ("bytes of the command id", id.map_or(0, |id| id.id.len()), COMMAND_ID_BYTES),
            (
                "characters of the command id's project",
                id.map_or(0, |id| id.project.chars().count()),
                NAME_CHARS,
            ),
        ];
        match sizes.into_iter().find(|(_, size, most)| size > most) {
            Some((what, _, most)) => Err(Cause::TooLarge { what: what.into(), limit: most as u64 }),
            None => Ok(()),
        }
    }
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
