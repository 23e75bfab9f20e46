//! A record as an auditor reads it: nothing but the bytes, BLAKE3 and MessagePack.
//!
//! The few lines are written here once more, and not taken from the ledger, so that the format
//! stays what it is said to be: a reader in any language can check a copy of the events.
//!
//! ```text
//! record = format byte (1) | header length, 4 bytes, big endian | header | body
//! hash   = BLAKE3, domain-separated, over the format byte and the header as stored
//! ```

use serde::Deserialize;
use serde_bytes::ByteBuf;
use uuid::Uuid;

const FORMAT: u8 = 1;
const PREFIX: usize = 5;
const RECORD_CONTEXT: &str = "allocd 2026 record: format byte and header";
const BODY_CONTEXT: &str = "allocd 2026 record: body";

/// The fields of a header that an auditor needs; others are passed over.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// Which ledger.
    pub ledger_id: Uuid,
    /// Its place.
    pub sequence: u64,
    /// Its own id.
    pub id: Uuid,
    /// What happened.
    pub kind: String,
    /// The client's id for the command.
    pub command_id: Option<String>,
    /// The hash of the record before.
    pub previous_hash: ByteBuf,
    /// The digest of the body.
    pub body_digest: ByteBuf,
}

/// A record that is sound by itself: its body is the one its header was made for.
#[derive(Debug)]
pub struct Record {
    /// Its header.
    pub header: Header,
    /// Its hash, which the next header names.
    pub hash: [u8; 32],
    /// Its body, MessagePack.
    pub body: Vec<u8>,
}

impl Record {
    /// Read it. The error says what is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Record, String> {
        let (prefix, rest) = bytes.split_first_chunk::<PREFIX>().ok_or("too short")?;
        let [FORMAT, length @ ..] = *prefix else {
            return Err(format!("format {}", prefix[0]));
        };
        let length = u32::from_be_bytes(length) as usize;
        let (encoded, body) = rest.split_at_checked(length).ok_or("it ends in its header")?;
        let header: Header = rmp_serde::from_slice(encoded).map_err(|error| error.to_string())?;
        if derive(BODY_CONTEXT, &[body]) != header.body_digest.as_slice() {
            return Err(format!("event {}: the body is another", header.sequence));
        }
        let hash = derive(RECORD_CONTEXT, &[&[FORMAT], encoded]);
        Ok(Record { header, hash, body: body.to_vec() })
    }

    /// Check that it comes right after another: the next sequence, and the hash of that one.
    pub fn follows(&self, before: &Record) -> Result<(), String> {
        let Header { ledger_id, sequence, previous_hash, .. } = &self.header;
        if *ledger_id != before.header.ledger_id {
            return Err(format!("event {sequence} is of another ledger"));
        }
        if *sequence != before.header.sequence + 1 {
            return Err(format!("event {sequence} comes after {}", before.header.sequence));
        }
        if previous_hash.as_slice() != before.hash {
            return Err(format!("event {sequence} does not name the hash of the one before"));
        }
        Ok(())
    }

    /// The consumers whose allocations it changed, in its order; none for other kinds.
    pub fn consumers(&self) -> Vec<Uuid> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(default)]
            consumers: Vec<Change>,
        }
        #[derive(Deserialize)]
        struct Change {
            consumer: Uuid,
        }
        let body: Result<Body, _> = rmp_serde::from_slice(&self.body);
        body.map_or_else(|_| Vec::new(), |body| body.consumers.iter().map(|c| c.consumer).collect())
    }
}

fn derive(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
