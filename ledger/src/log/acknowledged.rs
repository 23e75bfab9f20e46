//! The acknowledged file: the newest sequence and hash that anybody was told of.
//!
//! It is written after each batch without fsync. If what is recovered ends below it, acknowledged
//! events are gone (a restored backup, a disk that lied about its sync), and starting would hand
//! out their sequences a second time.
//!
//! ```text
//! "ALLOCACK" (8) | sequence, big endian (8) | hash (32) | first 8 bytes of BLAKE3 of the rest
//! ```

use super::{Head, LogError};
use crate::record::Hash;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

const NAME: &str = "acknowledged";
const MAGIC: &[u8; 8] = b"ALLOCACK";
const LENGTH: usize = 56;

/// The open file.
pub struct Acknowledged {
    file: File,
}

impl Acknowledged {
    /// Opens the file of a ledger's directory to write it.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(NAME);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| LogError::Engine(format!("{}: {error}", path.display())))?;
        Ok(Self { file })
    }

    /// Notes that events up to `head` were acknowledged.
    ///
    /// # Errors
    /// [`LogError`] if the file cannot be written; the events are durable all the same.
    pub fn note(&self, head: Head) -> Result<(), LogError> {
        self.file
            .write_all_at(&encode(head), 0)
            .map_err(|error| LogError::Engine(format!("{NAME}: {error}")))
    }
}

/// What the file of a ledger's directory says; none: there is no such file, or it is no whole one
/// (it is written without fsync, so after a power cut it may be).
///
/// # Errors
/// [`LogError`] if it is there and cannot be read.
pub fn acknowledged(dir: &Path) -> Result<Option<Head>, LogError> {
    let path = dir.join(NAME);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(decode(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::Engine(format!("{}: {error}", path.display()))),
    }
}

fn encode(head: Head) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&head.sequence.to_be_bytes());
    bytes[16..48].copy_from_slice(&head.hash.0);
    let check = blake3::hash(&bytes[..48]);
    bytes[48..].copy_from_slice(&check.as_bytes()[..8]);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Head> {
    let sequence = u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?);
    let hash = Hash(bytes.get(16..48)?.try_into().ok()?);
    let head = Head { sequence, hash };
    (bytes == encode(head)).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_back_and_a_damaged_file_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(acknowledged(dir.path()).unwrap(), None);
        let file = Acknowledged::open(dir.path()).unwrap();
        for sequence in [7, 8] {
            let head = Head { sequence, hash: Hash([sequence as u8; 32]) };
            file.note(head).unwrap();
            assert_eq!(acknowledged(dir.path()).unwrap(), Some(head));
        }
        std::fs::write(dir.path().join(NAME), [0; LENGTH]).unwrap();
        assert_eq!(acknowledged(dir.path()).unwrap(), None);
    }
}
