//! Records: events as stored, and the hash chain over them.
//!
//! ```text
//! record  = format byte (1) | header length, 4 bytes, big endian | header | body
//! private = format byte (1) | salt, 16 bytes | who asked            (kept apart, erasable)
//! hash    = BLAKE3, domain-separated, over the format byte and the header as stored
//! ```
//!
//! Header and body are named-field MessagePack. All hashes are over stored bytes; nothing is ever
//! encoded again. A header decodes without knowing the event's kind.

use crate::event::{DecodeError, Event};
use crate::ids::{EventId, LedgerId, MoveId};
use crate::stamp::Actor;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The first byte of every record and private part.
pub const FORMAT: u8 = 1;
/// How hashes are made, as the genesis record says.
pub const HASH_NAME: &str = "blake3";
/// How headers and bodies are written, as the genesis record says.
pub const ENCODING_NAME: &str = "messagepack-named";

const RECORD_CONTEXT: &str = "allocd 2026 record: format byte and header";
const BODY_CONTEXT: &str = "allocd 2026 record: body";
const PRIVATE_CONTEXT: &str = "allocd 2026 record: private part with salt";
const SALT_CONTEXT: &str = "allocd 2026 record: salt of the private part";
const PREFIX: usize = 5;

/// 32 bytes of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    fn derive(context: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in parts {
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            return to.collect_str(self);
        }
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = serde_bytes::ByteBuf::deserialize(from)?;
        let bytes: [u8; 32] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| serde::de::Error::custom("a hash has 32 bytes"))?;
        Ok(Self(bytes))
    }
}

/// What is known of an event without its body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Which ledger.
    pub ledger_id: LedgerId,
    /// Which writer: goes up by one with each opening.
    pub epoch: u64,
    /// Its place: 1, 2, 3 ... without gaps.
    pub sequence: u64,
    /// Its own id.
    pub id: EventId,
    /// The sequence of the first event of its group.
    pub group_first: u64,
    /// How many events its group has; a reader applies a group when it has its last.
    pub group_count: u32,
    /// When the command was received.
    pub received_at: Timestamp,
    /// When the event was decided; never goes back even when the clock does.
    pub recorded_at: Timestamp,
    /// The version of the kind's body.
    pub schema: u16,
    /// The kind of event.
    pub kind: String,
    /// The client's id for the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// The project whose command id it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_project: Option<String>,
    /// BLAKE3 of the parsed command without its stamp, if it has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_digest: Option<Hash>,
    /// OpenStack's global request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The move it belongs to (the first, if it touches several).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
    /// The hash of the record before.
    pub previous_hash: Hash,
    /// The digest of the body as stored.
    pub body_digest: Hash,
    /// The salted digest of the private part; none: there never was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_digest: Option<Hash>,
}

/// A record as stored, with its header decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The header.
    pub header: Header,
    /// The record's hash, as the next header names it.
    pub hash: Hash,
    bytes: Box<[u8]>,
    body_at: usize,
}

/// The erasable part of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Private {
    bytes: Box<[u8]>,
}

/// Why stored bytes are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The first byte is not known.
    #[error("record format {0} is not known to this version")]
    Format(u8),
    /// Too short, or no MessagePack.
    #[error("the record is damaged: {0}")]
    Damaged(String),
    /// The header names another sequence than the key.
    #[error("the record says it is event {found}")]
    Sequence {
        /// What it says.
        found: u64,
    },
    /// The header does not name the hash of the record before.
    #[error(
        "the chain is broken: the record names {named} as the hash before it, which is {actual}"
    )]
    Chain {
        /// The hash the header names.
        named: Hash,
        /// The hash of the record before.
        actual: Hash,
    },
    /// The body is not the one the header was made for.
    #[error("the body does not have the digest that the header names")]
    Body,
    /// The private part is not the one the header was made for.
    #[error("the private part does not have the digest that the header names")]
    Private,
    /// The body cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Record {
    /// Encodes an event. `header`'s `body_digest`, `kind` and `schema` are filled in here.
    pub fn encode(mut header: Header, event: &Event) -> Result<Self, RecordError> {
        let body = event.encode_body().map_err(|error| RecordError::Damaged(error.to_string()))?;
        header.kind = event.kind().to_owned();
        header.schema = event.schema();
        header.body_digest = Hash::derive(BODY_CONTEXT, &[&body]);
        let encoded = rmp_serde::to_vec_named(&header)
            .map_err(|error| RecordError::Damaged(error.to_string()))?;
        let length = u32::try_from(encoded.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(PREFIX + encoded.len() + body.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&encoded);
        let body_at = bytes.len();
        bytes.extend_from_slice(&body);
        let hash = Hash::derive(RECORD_CONTEXT, &[&[FORMAT], &encoded]);
        Ok(Self { header, hash, bytes: bytes.into(), body_at })
    }

    /// Reads a stored record. Its place in the chain is checked by [`Self::check_follows`].
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are no record.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let damaged = |what: &str| RecordError::Damaged(what.to_owned());
        let (&format, _) = bytes.split_first().ok_or_else(|| damaged("it is empty"))?;
        if format != FORMAT {
            return Err(RecordError::Format(format));
        }
        let length = bytes.get(1..PREFIX).ok_or_else(|| damaged("it ends in its first bytes"))?;
        let length = u32::from_be_bytes(length.try_into().map_err(|_| damaged("length"))?) as usize;
        let body_at =
            PREFIX.checked_add(length).ok_or_else(|| damaged("its header is too long"))?;
        let encoded = bytes.get(PREFIX..body_at).ok_or_else(|| damaged("it ends in its header"))?;
        let header: Header =
            rmp_serde::from_slice(encoded).map_err(|error| damaged(&format!("header: {error}")))?;
        let hash = Hash::derive(RECORD_CONTEXT, &[&[FORMAT], encoded]);
        Ok(Self { header, hash, bytes: bytes.into(), body_at })
    }

    /// Checks that this is the record after the one with `sequence` and `hash`, with its own body.
    ///
    /// # Errors
    /// [`RecordError`] names what does not fit.
    pub fn check_follows(&self, sequence: u64, hash: Hash) -> Result<(), RecordError> {
        if self.header.sequence != sequence + 1 {
            return Err(RecordError::Sequence { found: self.header.sequence });
        }
        if self.header.previous_hash != hash {
            return Err(RecordError::Chain { named: self.header.previous_hash, actual: hash });
        }
        if Hash::derive(BODY_CONTEXT, &[self.body()]) != self.header.body_digest {
            return Err(RecordError::Body);
        }
        Ok(())
    }

    /// The record as stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The body as stored. Both ways to make a record put the body's place within its bytes.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// The event.
    ///
    /// # Errors
    /// [`DecodeError`] if this program does not know its kind, or the body is damaged.
    pub fn event(&self) -> Result<Event, DecodeError> {
        Event::decode(&self.header.kind, self.header.schema, self.body())
    }

    /// Checks a private part against the header.
    ///
    /// # Errors
    /// [`RecordError::Private`] if it is another.
    pub fn check_private(&self, private: &Private) -> Result<(), RecordError> {
        if self.header.private_digest == Some(private.digest()) {
            Ok(())
        } else {
            Err(RecordError::Private)
        }
    }
}

impl Private {
    /// Encodes who asked. The salt comes from the stamp's seed, which is stored nowhere else: once
    /// the part is erased, nobody can find out by trying names what the digest was made of.
    pub fn encode(actor: &Actor, seed: &[u8; 16], index: u32) -> Result<Self, RecordError> {
        let encoded = rmp_serde::to_vec_named(actor)
            .map_err(|error| RecordError::Damaged(error.to_string()))?;
        let salt = Hash::derive(SALT_CONTEXT, &[seed, &index.to_be_bytes()]);
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&salt.0[..16]);
        bytes.extend_from_slice(&encoded);
        Ok(Self { bytes: bytes.into() })
    }

    /// A stored private part.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into() }
    }

    /// As stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest that the header names.
    pub fn digest(&self) -> Hash {
        Hash::derive(PRIVATE_CONTEXT, &[&self.bytes])
    }

    /// Who asked.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are damaged.
    pub fn actor(&self) -> Result<Actor, RecordError> {
        let encoded = self
            .bytes
            .get(17..)
            .ok_or_else(|| RecordError::Damaged("the private part is too short".into()))?;
        rmp_serde::from_slice(encoded).map_err(|error| RecordError::Damaged(error.to_string()))
    }
}
