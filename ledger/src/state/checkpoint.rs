//! Checkpoints: the whole state at a sequence, so that a start need not fold the log from its
//! first record. A checkpoint is only a copy: one that is missing, damaged or of another version
//! is left alone and the log is folded instead.
//!
//! ```text
//! "ALLOCKPT" (8) | version (2) | sequence (8) | record hash (32) | state digest (32) | zstd stream
//! ```
//!
//! The digest is BLAKE3 over the stream before compression, which is the state written in the
//! order of its numbers: two processes that folded the same records have the same digest.

use super::vocabulary::{Entry, Vocabulary};
use super::{Consumer, Group, MoveEntry, Names, Position, Provider, Slots, State};
use crate::event::Settings;
use crate::ids::LinkId;
use crate::record::Hash;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Goes up whenever the stream, or how events are folded, changes.
pub const VERSION: u16 = 3;

const MAGIC: &[u8; 8] = b"ALLOCKPT";
const DIRECTORY: &str = "checkpoints";
const SUFFIX: &str = "ckpt";
/// How many are kept: the newest, and the one before in case the newest is damaged.
const KEPT: usize = 2;
const DIGEST_CONTEXT: &str = "allocd 2026 state digest";

/// Why a checkpoint is not used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another program version wrote it.
    #[error("it has version {0}, this program reads {VERSION}")]
    Version(u16),
    /// It is no whole checkpoint.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

#[derive(Serialize, Deserialize)]
struct Counts {
    position: Position,
    roomier: u64,
    settings: Settings,
    classes: u32,
    traits: u32,
    aggregates: u32,
    projects: u32,
    users: u32,
    consumer_types: u32,
    providers: u32,
    free_providers: u32,
    consumers: u32,
    free_consumers: u32,
    moves: u32,
    links: u32,
    quotas: u32,
}

impl State {
    /// The digest of everything in the state: equal in every process that folded the same records.
    pub fn digest(&self) -> Hash {
        let mut digest = DigestWriter::new(io::sink());
        // Writing into a sink cannot fail, and the state holds nothing that has no encoding.
        // Writing into a hash cannot fail, and all of the state can be encoded: it came from events.
        self.write_stream(&mut digest).expect("the state can be encoded");
        digest.finish().0
    }

    /// Writes a checkpoint into a ledger's directory, durably, and removes all but the newest two.
    /// Those of later events do not count: a state never goes back, so they are of another history.
    ///
    /// # Errors
    /// [`CheckpointError`] if it cannot be written; the ledger does not need it.
    pub fn write_checkpoint(&self, dir: &Path) -> Result<PathBuf, CheckpointError> {
        let dir = dir.join(DIRECTORY);
        std::fs::create_dir_all(&dir)?;
        let path = dir.join(format!("{:020}.{SUFFIX}", self.sequence()));
        let unfinished = path.with_extension("unfinished");
        let body = self.encode_stream()?;
        let write = || -> io::Result<()> {
            let mut file = File::create(&unfinished)?;
            file.write_all(&self.checkpoint_head(body.1))?;
            file.write_all(&body.0)?;
            file.sync_all()?;
            std::fs::rename(&unfinished, &path)
        };
        write().inspect_err(|_| {
            // What room it took is needed more elsewhere. It is no checkpoint, also where it stays.
            let _ = std::fs::remove_file(&unfinished);
        })?;
        File::open(&dir)?.sync_all()?;
        let found = checkpoints(&dir)?.into_iter().rev();
        for (_, old) in found.filter(|(at, _)| *at <= self.sequence()).skip(KEPT) {
            std::fs::remove_file(old)?;
        }
        Ok(path)
    }

    fn checkpoint_head(&self, digest: Hash) -> Vec<u8> {
        let mut head = Vec::with_capacity(82);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_be_bytes());
        head.extend_from_slice(&self.sequence().to_be_bytes());
        head.extend_from_slice(&self.position.hash.0);
        head.extend_from_slice(&digest.0);
        head
    }

    fn encode_stream(&self) -> Result<(Vec<u8>, Hash), CheckpointError> {
        let encoder = zstd::Encoder::new(Vec::new(), 1)?;
        let mut writer = DigestWriter::new(encoder);
        self.write_stream(&mut writer)?;
        let (digest, encoder) = writer.finish();
        Ok((encoder.finish()?, digest))
    }

    fn write_stream<W: Write>(&self, to: &mut DigestWriter<W>) -> Result<(), CheckpointError> {
        let mut to = BufWriter::with_capacity(64 * 1024, to);
        put(&mut to, &self.counts())?;
        for vocabulary in [&self.classes, &self.traits] {
            for row in vocabulary.rows() {
                put(&mut to, &row)?;
            }
        }
        for names in [&self.aggregates, &self.projects, &self.users, &self.consumer_types] {
            for name in names.iter() {
                put(&mut to, name)?;
            }
        }
        put_slots(&mut to, &self.providers)?;
        put_slots(&mut to, &self.consumers)?;
        let mut moves: Vec<&Arc<MoveEntry>> = self.moves.iter().collect();
        moves.sort_unstable_by_key(|entry| entry.this.id);
        for entry in moves {
            put_named(&mut to, entry)?;
        }
        let mut links: Vec<(&LinkId, &Arc<Group>)> = self.links.iter().collect();
        links.sort_unstable_by_key(|(id, _)| **id);
        for link in links {
            put(&mut to, &link)?;
        }
        for limit in &self.quotas.limits {
            put(&mut to, &limit)?;
        }
        to.flush()?;
        Ok(())
    }

    fn counts(&self) -> Counts {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Counts {
            position: self.position,
            roomier: self.roomier,
            settings: self.settings.clone(),
            classes: count(self.classes.numbers()),
            traits: count(self.traits.numbers()),
            aggregates: count(self.aggregates.len()),
            projects: count(self.projects.len()),
            users: count(self.users.len()),
            consumer_types: count(self.consumer_types.len()),
            providers: count(self.providers.rows.len()),
            free_providers: count(self.providers.free.len()),
            consumers: count(self.consumers.rows.len()),
            free_consumers: count(self.consumers.free.len()),
            moves: count(self.moves.len()),
            links: count(self.links.len()),
            quotas: count(self.quotas.limits.len()),
        }
    }
}

/// The good checkpoints of a ledger's directory at or below `target`, newest first, each read when
/// it is asked for. One that cannot be used is left alone with a line in the log.
pub fn newest_first(dir: &Path, target: u64) -> impl Iterator<Item = State> {
    let mut found = checkpoints(&dir.join(DIRECTORY)).unwrap_or_default();
    found.retain(|(sequence, _)| *sequence <= target);
    found.into_iter().rev().filter_map(|(_, path)| match read_checkpoint(&path) {
        Ok(state) => Some(state),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "checkpoint ignored; the log is folded instead");
            None
        }
    })
}

/// Removes the checkpoints above the head of a log that has lost its tail: they are of events that
/// are gone, and would count as the newest. One that cannot be removed is told in the log.
pub fn remove_beyond(dir: &Path, head: u64) {
    let found = checkpoints(&dir.join(DIRECTORY)).unwrap_or_default();
    for (_, path) in found.into_iter().filter(|(sequence, _)| *sequence > head) {
        let shown = path.display();
        match std::fs::remove_file(&path) {
            Ok(()) => {
                tracing::warn!(path = %shown, head, "checkpoint beyond the log's end removed")
            }
            Err(error) => tracing::warn!(path = %shown, %error, "a stale checkpoint stays"),
        }
    }
}

/// Reads one checkpoint and checks its digest.
///
/// # Errors
/// [`CheckpointError`] says why it cannot be used.
pub fn read_checkpoint(path: &Path) -> Result<State, CheckpointError> {
    let mut file = BufReader::new(File::open(path)?);
    let mut head = [0; 82];
    file.read_exact(&mut head)?;
    let damaged = |what: &str| CheckpointError::Damaged(what.to_owned());
    if &head[..8] != MAGIC {
        return Err(damaged("it does not begin like one"));
    }
    let version = u16::from_be_bytes([head[8], head[9]]);
    if version != VERSION {
        return Err(CheckpointError::Version(version));
    }
    let mut reader = DigestReader::new(zstd::Decoder::new(file)?);
    let state = read_stream(&mut reader)?;
    if reader.hasher.finalize().as_bytes()[..] != head[50..82] {
        return Err(damaged("it does not have the digest that it names"));
    }
    if state.sequence().to_be_bytes()[..] != head[10..18]
        || state.position.hash.0[..] != head[18..50]
    {
        return Err(damaged("it names another place than it holds"));
    }
    Ok(state)
}

fn read_stream<R: Read>(from: &mut DigestReader<R>) -> Result<State, CheckpointError> {
    let counts: Counts = get(from)?;
    let mut state = State {
        position: counts.position,
        roomier: counts.roomier,
        settings: counts.settings,
        ..State::default()
    };
    get_vocabulary(from, &mut state.classes, counts.classes)?;
    get_vocabulary(from, &mut state.traits, counts.traits)?;
    get_names(from, &mut state.aggregates, counts.aggregates)?;
    get_names(from, &mut state.projects, counts.projects)?;
    get_names(from, &mut state.users, counts.users)?;
    get_names(from, &mut state.consumer_types, counts.consumer_types)?;
    get_slots(
        from,
        &mut state.providers,
        counts.providers,
        counts.free_providers,
        |row: &Provider| row.uuid.0,
    )?;
    get_slots(
        from,
        &mut state.consumers,
        counts.consumers,
        counts.free_consumers,
        |row: &Consumer| row.uuid.0,
    )?;
    for _ in 0..counts.moves {
        state.moves.insert(get::<MoveEntry>(from)?);
    }
    for _ in 0..counts.links {
        let (id, group): (LinkId, Group) = get(from)?;
        state.links.insert(id, Arc::new(group));
    }
    for _ in 0..counts.quotas {
        let (whose, limit) = get(from)?;
        state.quotas.limits.insert(whose, limit);
    }
    state.rebuild_lookups();
    Ok(state)
}

impl State {
    fn rebuild_lookups(&mut self) {
        for (id, row) in self.providers.iter() {
            self.provider_names.insert(Arc::clone(&row.name), id);
            if let Some(parent) = row.parent {
                self.children.insert((parent, id));
            }
            if row.has_wishes() {
                self.retiring.insert(id);
            }
        }
        let mut pairs: Vec<(u32, u32)> = self
            .consumers
            .iter()
            .flat_map(|(id, row)| row.allocations.iter().map(move |held| (held.provider, id)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        self.holders = pairs.into_iter().collect();
        if self.has_quotas() {
            self.count_projects();
        }
    }
}

fn put<W: Write, T: Serialize + ?Sized>(to: &mut W, value: &T) -> Result<(), CheckpointError> {
    rmp_serde::encode::write(to, value).map_err(|error| CheckpointError::Damaged(error.to_string()))
}

/// With field names, for what leaves fields out that are empty.
fn put_named<W: Write, T: Serialize>(to: &mut W, value: &T) -> Result<(), CheckpointError> {
    rmp_serde::encode::write_named(to, value)
        .map_err(|error| CheckpointError::Damaged(error.to_string()))
}

fn get<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, CheckpointError> {
    rmp_serde::from_read(from).map_err(|error| CheckpointError::Damaged(error.to_string()))
}

fn put_slots<W: Write, T: Serialize>(to: &mut W, slots: &Slots<T>) -> Result<(), CheckpointError> {
    for row in &slots.rows {
        put(to, row)?;
    }
    for free in &slots.free {
        put(to, free)?;
    }
    Ok(())
}

fn get_slots<R: Read, T: DeserializeOwned + Clone>(
    from: &mut R,
    slots: &mut Slots<T>,
    rows: u32,
    free: u32,
    uuid: impl Fn(&T) -> Uuid,
) -> Result<(), CheckpointError> {
    for _ in 0..rows {
        let row: Option<T> = get(from)?;
        slots.push_row(row.as_ref().map(&uuid), row);
    }
    for _ in 0..free {
        slots.free.push_back(get(from)?);
    }
    Ok(())
}

fn get_vocabulary<R: Read>(
    from: &mut R,
    to: &mut Vocabulary,
    count: u32,
) -> Result<(), CheckpointError> {
    for _ in 0..count {
        let (name, entry): (String, Entry) = get(from)?;
        to.push_row(&name, entry);
    }
    Ok(())
}

fn get_names<R: Read>(from: &mut R, to: &mut Names, count: u32) -> Result<(), CheckpointError> {
    for _ in 0..count {
        to.intern(&get::<String>(from)?);
    }
    Ok(())
}

/// The checkpoints of a directory, oldest first.
fn checkpoints(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let is_one = path.extension().is_some_and(|suffix| suffix == SUFFIX);
        let sequence =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (true, Some(sequence)) = (is_one, sequence) {
            found.push((sequence, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

struct DigestWriter<W> {
    inner: W,
    hasher: blake3::Hasher,
}

impl<W: Write> DigestWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: blake3::Hasher::new_derive_key(DIGEST_CONTEXT) }
    }

    fn finish(self) -> (Hash, W) {
        (Hash(*self.hasher.finalize().as_bytes()), self.inner)
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

struct DigestReader<R> {
    inner: R,
    hasher: blake3::Hasher,
}

impl<R: Read> DigestReader<R> {
    fn new(inner: R) -> Self {
        Self { inner, hasher: blake3::Hasher::new_derive_key(DIGEST_CONTEXT) }
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }
}
