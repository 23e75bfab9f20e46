//! What lists of the living showed, kept in a file beside the log, so that it survives a restart.
//!
//! It is no event, since it is what a client reported and no fact: nothing is decided by it, the
//! ledger's history is the same without it, and the next list takes its place. Nor is it in the
//! store, where everything can be rebuilt from the records. A file that is damaged, or another
//! ledger's or version's, is discarded with a line in the log: the next lists fill it again.
//!
//! ```text
//! "ALLOCLIV" (8) | version (1) | ledger (16) | findings in MessagePack | BLAKE3 of all before (32)
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ledger::ids::LedgerId;

use super::fed::Fed;

/// The name in the data directory.
const NAME: &str = "living";
const MAGIC: &[u8; 8] = b"ALLOCLIV";
/// The form of the file. Whoever changes what a finding is made of takes the next number.
const VERSION: u8 = 1;
const HASH: usize = 32;
/// Bytes of the file. The most findings that are kept take some 35 MB, with two commands each.
const BYTES: usize = 64 * 1024 * 1024;

/// The file of one ledger.
pub(super) struct Kept {
    path: PathBuf,
    ledger: LedgerId,
}

impl Kept {
    pub(super) fn new(dir: &Path, ledger: LedgerId) -> Self {
        Self { path: dir.join(NAME), ledger }
    }

    /// What the file has; nothing if there is none, or none that can be used.
    pub(super) fn load(&self) -> Vec<Fed> {
        let read =
            self.read().and_then(|bytes| bytes.map_or(Ok(Vec::new()), |it| self.decode(&it)));
        read.unwrap_or_else(|error| {
            let path = self.path.display();
            tracing::warn!(%path, %error, "what lists of the living showed is discarded");
            Vec::new()
        })
    }

    /// Puts these in the place of what the file has, whole or not at all.
    ///
    /// # Errors
    /// If they are too much, or the file cannot be written; it then has what it had.
    pub(super) fn save(&self, findings: &[&Fed]) -> io::Result<()> {
        let bytes = self.encode(findings)?;
        if bytes.len() > BYTES {
            return Err(io::Error::other(format!("{} bytes are too many", bytes.len())));
        }
        let new = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn encode(&self, findings: &[&Fed]) -> io::Result<Vec<u8>> {
        let mut bytes = self.head();
        bytes.extend(rmp_serde::to_vec_named(findings).map_err(io::Error::other)?);
        let hash = blake3::hash(&bytes);
        bytes.extend(hash.as_bytes());
        Ok(bytes)
    }

    fn decode(&self, bytes: &[u8]) -> io::Result<Vec<Fed>> {
        let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let Some((rest, hash)) = bytes.split_last_chunk::<HASH>() else {
            return wrong("it is cut off");
        };
        if blake3::hash(rest) != blake3::Hash::from_bytes(*hash) {
            return wrong("it is damaged");
        }
        match rest.strip_prefix(&*self.head()) {
            Some(body) => rmp_serde::from_slice(body).map_err(io::Error::other),
            None => wrong("it is of another ledger or version"),
        }
    }

    fn head(&self) -> Vec<u8> {
        [&MAGIC[..], &[VERSION], self.ledger.0.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orphans::Source;
    use ledger::command::{Command, Release};
    use ledger::ids::ConsumerUuid;
    use ledger::time::Timestamp;
    use projector::orphans::{Finding, Kind};
    use uuid::Uuid;

    fn fed(number: u128) -> Fed {
        let consumer = ConsumerUuid(Uuid::from_u128(number));
        let at = Timestamp::from_micros(7);
        let mend = Command::Release(Release { consumer, ended: true, reason: Some("r".into()) });
        Fed {
            finding: Finding {
                kind: Kind::NotLiving,
                consumer,
                move_id: None,
                since: at,
                mend: vec![mend],
            },
            source: Source { as_of: at, user: "nova".into(), request_id: None, provider: None },
        }
    }

    #[test]
    fn what_was_saved_is_loaded_and_what_is_not_whole_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = |number| LedgerId(Uuid::from_u128(number));
        let kept = Kept::new(dir.path(), ledger(1));
        assert!(kept.load().is_empty(), "there is none yet");
        let (one, two) = (fed(1), fed(2));
        for findings in [&[&one][..], &[&one, &two]] {
            kept.save(findings).expect("written");
            let loaded = kept.load();
            assert_eq!(loaded.iter().collect::<Vec<_>>(), findings);
        }
        assert!(Kept::new(dir.path(), ledger(2)).load().is_empty(), "another ledger's");
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).expect("written");
            assert!(kept.load().is_empty(), "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert!(kept.load().is_empty(), "cut off at {at}");
        }
    }
}
