//! Typed identifiers, so that a provider's id cannot be passed where a consumer's is meant.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! typed_uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    };
}

typed_uuid!(
    /// A resource provider.
    ProviderUuid
);
typed_uuid!(
    /// A consumer: a server, a volume, a migration.
    ConsumerUuid
);
typed_uuid!(
    /// One resize, migration or evacuation of one consumer, all its attempts included.
    MoveId
);
typed_uuid!(
    /// Consumers of which only the largest amount counts, for each (provider, class).
    LinkId
);
typed_uuid!(
    /// One event (UUIDv7, made from its command's stamp).
    EventId
);
typed_uuid!(
    /// One ledger: drawn when its directory is made, kept in every header.
    LedgerId
);

/// The UUIDv7 number `index` of the command with `seed`, received at `received_at`.
///
/// The same stamp always gives the same ids: a command that is decided anew (after another
/// writer's batch went first) keeps them.
pub fn derived_uuid(seed: &[u8; 16], received_at: crate::time::Timestamp, index: u32) -> Uuid {
    let mut hasher = blake3::Hasher::new_derive_key("allocd 2026 event and move ids");
    hasher.update(seed);
    hasher.update(&index.to_be_bytes());
    let mut random = [0u8; 10];
    hasher.finalize_xof().fill(&mut random);
    let millis = u64::try_from(received_at.micros() / 1000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// A uuid for what a write with a command id makes and does not name: the same each time it is
/// sent, another in every ledger.
pub fn drawn_uuid(id: &crate::stamp::CommandId, ledger: LedgerId) -> Uuid {
    let mut hasher = blake3::Hasher::new_derive_key("allocd 2026 uuid of what a command id makes");
    hasher.update(ledger.0.as_bytes());
    hasher.update(&(id.project.len() as u64).to_be_bytes());
    hasher.update(id.project.as_bytes());
    hasher.update(id.id.as_bytes());
    let mut random = [0; 16];
    hasher.finalize_xof().fill(&mut random);
    uuid::Builder::from_random_bytes(random).into_uuid()
}
