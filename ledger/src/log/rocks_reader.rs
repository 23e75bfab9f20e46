//! Reading the log on RocksDB: beside the writer in its process, or from another process as a
//! secondary, which does not disturb the writer.

use super::index::IndexKey;
use super::rocks::{FAMILIES, HEAD, INDEX, META, PRIVATE, RECORDS, families, options, rocks_path};
use super::{Faults, Head, LogError, LogReader, READ_BYTES};
use crate::memory::Part;
use crate::record::{Hash, Private, Record};
use parking_lot::RwLock;
use rocksdb::properties::BACKGROUND_ERRORS;
use rocksdb::{ColumnFamily, DB, Direction, IteratorMode, ReadOptions};
use std::path::Path;
use std::sync::Arc;

/// The reading side.
pub struct RocksReader {
    db: Arc<RwLock<Option<Arc<DB>>>>,
}

impl RocksReader {
    pub(super) fn shared(db: Arc<RwLock<Option<Arc<DB>>>>) -> Self {
        Self { db }
    }

    /// Opens the log of a ledger's directory without disturbing a process that writes it.
    /// `scratch` is an empty directory for RocksDB's own notes.
    ///
    /// # Errors
    /// [`LogError`] if there is no log or RocksDB cannot open it.
    pub fn open_secondary(dir: &Path, scratch: &Path) -> Result<Self, LogError> {
        let path = rocks_path(dir);
        if !path.join("CURRENT").exists() {
            return Err(LogError::Engine(format!("{} holds no ledger", dir.display())));
        }
        let mut options = options();
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        options.set_max_open_files(-1);
        let db = DB::open_cf_descriptors_as_secondary(
            &options,
            &path,
            &scratch.to_path_buf(),
            families(),
        )
        .map_err(engine)?;
        let reader = Self { db: Arc::new(RwLock::new(Some(Arc::new(db)))) };
        reader.catch_up()?;
        Ok(reader)
    }

    /// Takes in what the writing process has appended since. Only for a secondary.
    ///
    /// # Errors
    /// [`LogError`] if RocksDB cannot.
    pub fn catch_up(&self) -> Result<(), LogError> {
        self.db()?.try_catch_up_with_primary().map_err(engine)
    }

    fn db(&self) -> Result<Arc<DB>, LogError> {
        self.db.read().clone().ok_or(LogError::Reopening)
    }
}

impl LogReader for RocksReader {
    fn head(&self) -> Result<Head, LogError> {
        head_of(&*self.db()?)
    }

    fn read(&self, from: u64, max_records: usize) -> Result<Vec<Record>, LogError> {
        let db = self.db()?;
        let mut records = Vec::new();
        let (mut expected, mut bytes) = (from, 0);
        let start = from.to_be_bytes();
        let mode = IteratorMode::From(&start, Direction::Forward);
        for entry in db.iterator_cf(family(&db, RECORDS)?, mode) {
            // An error ends the iteration like the end does: it must not be taken for it.
            let (key, value) = entry
                .map_err(|error| LogError::Engine(format!("reading event {expected}: {error}")))?;
            if records.len() >= max_records || bytes >= READ_BYTES {
                return Ok(records);
            }
            if *key != expected.to_be_bytes() {
                return Err(LogError::Missing { sequence: expected, head: head_of(&db)?.sequence });
            }
            let record = Record::decode(&value).map_err(|error| LogError::at(expected, error))?;
            bytes += value.len();
            records.push(record);
            expected += 1;
        }
        let head = head_of(&db)?.sequence;
        if records.len() < max_records && bytes < READ_BYTES && expected <= head {
            return self.check_end(expected, head, records);
        }
        Ok(records)
    }

    fn record(&self, sequence: u64) -> Result<Option<Record>, LogError> {
        let db = self.db()?;
        let value = db
            .get_pinned_cf(family(&db, RECORDS)?, sequence.to_be_bytes())
            .map_err(|error| LogError::Engine(format!("reading event {sequence}: {error}")))?;
        value
            .map(|value| Record::decode(&value).map_err(|error| LogError::at(sequence, error)))
            .transpose()
    }

    fn private(&self, sequence: u64) -> Result<Option<Private>, LogError> {
        let db = self.db()?;
        let value =
            db.get_pinned_cf(family(&db, PRIVATE)?, sequence.to_be_bytes()).map_err(|error| {
                LogError::Engine(format!("reading the private part of {sequence}: {error}"))
            })?;
        Ok(value.map(|value| Private::from_bytes(&value)))
    }

    fn memory(&self) -> Vec<Part> {
        let Ok(db) = self.db() else { return Vec::new() };
        let sum = |property: &str| {
            let families = FAMILIES.iter().filter_map(|name| db.cf_handle(name));
            let values = families.map(|family| db.property_int_value_cf(family, property));
            values.filter_map(|value| value.ok().flatten()).sum()
        };
        // All families have one cache in common.
        let cache = db.cf_handle(RECORDS).map(|family| {
            db.property_int_value_cf(family, "rocksdb.block-cache-usage").ok().flatten()
        });
        vec![
            ("write_buffers", sum("rocksdb.size-all-mem-tables")),
            ("block_cache", cache.flatten().unwrap_or(0)),
            ("table_readers", sum("rocksdb.estimate-table-readers-mem")),
        ]
    }

    fn faults(&self) -> Faults {
        let Ok(db) = self.db() else { return Faults::default() };
        let count = db.property_int_value(BACKGROUND_ERRORS).ok().flatten();
        Faults { background_errors: count.unwrap_or(0), missing: missing(&db) }
    }

    fn index(&self, key: &IndexKey, after: u64, limit: usize) -> Result<Vec<u64>, LogError> {
        let db = self.db()?;
        let key = key.bytes();
        let mut start = [0; 25];
        start[..17].copy_from_slice(&key);
        start[17..].copy_from_slice(&after.saturating_add(1).to_be_bytes());
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mode = IteratorMode::From(&start, Direction::Forward);
        let mut found = Vec::new();
        for entry in db.iterator_cf_opt(family(&db, INDEX)?, options, mode) {
            let (entry, _) = entry.map_err(engine)?;
            let Some(sequence) = entry.strip_prefix(&key[..]) else { break };
            if found.len() >= limit {
                break;
            }
            let sequence: [u8; 8] = sequence
                .try_into()
                .map_err(|_| LogError::Engine("an index entry is damaged".into()))?;
            found.push(u64::from_be_bytes(sequence));
        }
        Ok(found)
    }
}

impl RocksReader {
    /// The iterator ended below the head. Either the head moved on meanwhile, or a record is gone.
    fn check_end(
        &self,
        expected: u64,
        head: u64,
        records: Vec<Record>,
    ) -> Result<Vec<Record>, LogError> {
        match self.record(expected)? {
            Some(_) => Ok(records),
            None => Err(LogError::Missing { sequence: expected, head }),
        }
    }
}

/// A file that the database needs and that has lost its name: it goes with the process.
fn missing(db: &DB) -> Option<String> {
    let tables = || db.live_files().unwrap_or_default().into_iter().map(|file| file.name);
    let path = |name: &str| db.path().join(name.trim_start_matches('/'));
    // What was compacted away while this looked is no part of it any more.
    let gone = tables().find(|name| !path(name).exists());
    if let Some(name) = gone.filter(|name| tables().any(|other| other == *name)) {
        return Some(path(&name).display().to_string());
    }
    if !path("CURRENT").exists() {
        return Some(path("CURRENT").display().to_string());
    }
    let entries = std::fs::read_dir(db.path()).ok()?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    if names.any(|name| name.to_string_lossy().ends_with(".log")) {
        return None;
    }
    // Everything that was in it is in memory, and goes to tables and a new one.
    let families = FAMILIES.map(|name| db.cf_handle(name));
    let flushed = families.into_iter().flatten().try_for_each(|family| db.flush_cf(family));
    match flushed {
        Ok(()) => {
            tracing::error!(
                "the write-ahead log was gone; what was in it has been written to tables"
            );
            None
        }
        Err(error) => Some(format!("the write-ahead log in {} ({error})", db.path().display())),
    }
}

fn family<'a>(db: &'a DB, name: &str) -> Result<&'a ColumnFamily, LogError> {
    db.cf_handle(name)
        .ok_or_else(|| LogError::Engine(format!("the log has no column family {name}")))
}

pub(super) fn engine(error: rocksdb::Error) -> LogError {
    LogError::Engine(error.to_string())
}

/// The head as the database says.
pub(super) fn head_of(db: &DB) -> Result<Head, LogError> {
    let Some(value) = db.get_pinned_cf(family(db, META)?, HEAD).map_err(engine)? else {
        return Ok(Head::default());
    };
    let damaged = || LogError::Engine("the head record is damaged".into());
    let sequence = value.get(..8).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
    let hash = value.get(8..40).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
    Ok(Head { sequence: u64::from_be_bytes(sequence), hash: Hash(hash) })
}
