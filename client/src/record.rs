//! A record as it is stored and published, and the chain of hashes.
//!
//! ```text
//! record = format byte (1) | header length, 4 bytes, big endian | header | body
//! hash   = BLAKE3, domain-separated, over the format byte and the header as stored
//! ```
//!
//! Header and body are named-field MessagePack.

use crate::error::RecordError;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;
use std::fmt;
use uuid::Uuid;

const FORMAT: u8 = 1;
const PREFIX: usize = 5;
const RECORD_CONTEXT: &str = "allocd 2026 record: format byte and header";
const BODY_CONTEXT: &str = "allocd 2026 record: body";

/// 32 bytes of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

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

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = serde_bytes::ByteBuf::deserialize(from)?;
        let bytes = bytes.as_slice().try_into();
        bytes.map(Self).map_err(|_| D::Error::custom("a hash has 32 bytes"))
    }
}

/// What is known of an event without its body. Fields that are not listed are passed over.
#[derive(Clone, Debug, Deserialize)]
pub struct Header {
    /// Which ledger.
    pub ledger_id: Uuid,
    /// Its place: 1, 2, 3 ... without gaps.
    pub sequence: u64,
    /// Its own id.
    pub id: Uuid,
    /// The sequence of the first event of its group.
    pub group_first: u64,
    /// How many events its group has: apply a group when you have its last.
    pub group_count: u32,
    /// When it was decided, in microseconds since 1970.
    pub recorded_at: i64,
    /// What happened.
    pub kind: String,
    /// The client's id for the command.
    #[serde(default)]
    pub command_id: Option<String>,
    /// OpenStack's global request id.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The hash of the record before.
    pub previous_hash: Hash,
    /// The digest of the body.
    pub body_digest: Hash,
}

/// A record that is sound by itself: its body is the one that its header was made for.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its header.
    pub header: Header,
    /// Its hash, which the next header names.
    pub hash: Hash,
    bytes: Vec<u8>,
    body_at: usize,
}

impl Record {
    /// Reads one.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes are no record.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let damaged = |what: &str| RecordError::Damaged(what.to_owned());
        let (prefix, rest) =
            bytes.split_first_chunk::<PREFIX>().ok_or_else(|| damaged("it is too short"))?;
        let [format, length @ ..] = *prefix;
        if format != FORMAT {
            return Err(damaged(&format!("its format is {format}")));
        }
        let length = u32::from_be_bytes(length) as usize;
        let (encoded, body) =
            rest.split_at_checked(length).ok_or_else(|| damaged("it ends in its header"))?;
        let header: Header =
            rmp_serde::from_slice(encoded).map_err(|error| damaged(&error.to_string()))?;
        if derive(BODY_CONTEXT, &[body]) != header.body_digest {
            return Err(RecordError::Body(header.sequence));
        }
        let hash = derive(RECORD_CONTEXT, &[&[FORMAT], encoded]);
        Ok(Self { header, hash, bytes: bytes.to_vec(), body_at: PREFIX + length })
    }

    /// Checks that it comes right after another.
    ///
    /// # Errors
    /// [`RecordError`] names what does not fit.
    pub fn follows(&self, before: &Self) -> Result<(), RecordError> {
        let sequence = self.header.sequence;
        if self.header.ledger_id != before.header.ledger_id {
            return Err(RecordError::Ledger(sequence));
        }
        if sequence != before.header.sequence + 1 {
            return Err(RecordError::Sequence { before: before.header.sequence, found: sequence });
        }
        if self.header.previous_hash != before.hash {
            return Err(RecordError::Chain(sequence));
        }
        Ok(())
    }

    /// As stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The body as stored: MessagePack.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// The body as one of your own types.
    ///
    /// # Errors
    /// [`rmp_serde::decode::Error`] if it is none of it.
    pub fn decode<T: for<'de> Deserialize<'de>>(&self) -> Result<T, rmp_serde::decode::Error> {
        rmp_serde::from_slice(self.body())
    }

    /// The body as JSON. Uuids and hashes, which are bytes in MessagePack, are lists of numbers
    /// there: for people, ask the ledger's HTTP API, which spells them.
    pub fn body_json(&self) -> Value {
        self.decode().unwrap_or(Value::Null)
    }
}

fn derive(context: &str, parts: &[&[u8]]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part);
    }
    Hash(*hasher.finalize().as_bytes())
}
