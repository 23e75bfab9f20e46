//! The log on RocksDB. Column families:
//!
//! ```text
//! records   sequence, 8 bytes, big endian     -> record
//! private   sequence                          -> private part (can be erased)
//! index     letter | 16 bytes | sequence      -> nothing
//! meta      "head"                            -> sequence (8) | hash (32)
//! ```
//!
//! One batch is one `WriteBatch` with `sync`: after a crash it is there whole or not at all, with
//! its index and the head. docs/format.md has the argument.

use super::index::keys_of;
use super::rocks_reader::{RocksReader, engine, head_of};
use super::{Appended, Batch, Head, Log, LogError, LogReader};
use crate::memory;
use parking_lot::RwLock;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType,
    Options, WriteBatch, WriteBufferManager, WriteOptions,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const RECORDS: &str = "records";
pub(super) const PRIVATE: &str = "private";
pub(super) const INDEX: &str = "index";
pub(super) const META: &str = "meta";
pub(super) const FAMILIES: [&str; 4] = [RECORDS, PRIVATE, INDEX, META];
pub(super) const HEAD: &[u8] = b"head";

/// RocksDB's directory inside a ledger's.
const DIRECTORY: &str = "log";
/// The head is one small entry that is written over and over: only the newest is worth keeping.
const META_BUFFER: usize = 1024 * 1024;
/// Bytes of one part of a table's index or filter: what one look-up brings into the cache.
const METADATA_BLOCK: usize = 4 * 1024;
/// About the size of the index's first level after the files that were just flushed: few times as
/// much as those are together, so that each merge rewrites little that did not change.
const INDEX_BASE: u64 = 4 * memory::WRITE_BUFFER as u64 * 2;
/// How long a read of one page of records may take at most, on a disk that fails.
const LONGEST_READ: Duration = Duration::from_secs(10);

/// The log on RocksDB.
pub struct RocksLog {
    path: PathBuf,
    /// Empty between an unknown outcome and the reopening.
    db: Arc<RwLock<Option<Arc<DB>>>>,
    head: Head,
}

impl RocksLog {
    /// Opens the log of a ledger's directory, or makes one. Everything that is found is durable
    /// when this returns: after a kill the tail may have been in the page cache only.
    ///
    /// # Errors
    /// [`LogError`] if RocksDB cannot open it.
    pub fn open(dir: &Path) -> Result<Self, LogError> {
        let path = rocks_path(dir);
        let db = open_durable(&path)?;
        let head = head_of(&db)?;
        Ok(Self { path, db: Arc::new(RwLock::new(Some(Arc::new(db)))), head })
    }

    /// Closes the database. A read that is under way holds it open, and with it its lock.
    fn release(&self) -> Result<(), LogError> {
        let Some(db) = self.db.write().take() else { return Ok(()) };
        let until = Instant::now() + LONGEST_READ;
        while Arc::strong_count(&db) > 1 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        match Arc::try_unwrap(db) {
            Ok(db) => drop(db),
            Err(_) => return Err(LogError::Engine("a read of the log does not end".into())),
        }
        Ok(())
    }

    fn write(&self, batch: &Batch, head: Head) -> Result<(), LogError> {
        let db =
            self.db.read().clone().ok_or_else(|| LogError::Engine("the log is closed".into()))?;
        let family =
            |name| db.cf_handle(name).ok_or_else(|| LogError::Engine(format!("no family {name}")));
        let (records, private, index, meta) =
            (family(RECORDS)?, family(PRIVATE)?, family(INDEX)?, family(META)?);
        let mut writes = WriteBatch::default();
        for ((record, part), event) in batch.records.iter().zip(&batch.privates).zip(&batch.events)
        {
            let sequence = record.header.sequence.to_be_bytes();
            writes.put_cf(records, sequence, record.bytes());
            if let Some(part) = part {
                writes.put_cf(private, sequence, part.bytes());
            }
            for key in keys_of(&record.header, event) {
                let mut entry = [0; 25];
                entry[..17].copy_from_slice(&key);
                entry[17..].copy_from_slice(&sequence);
                writes.put_cf(index, entry, []);
            }
        }
        writes.put_cf(meta, HEAD, encode_head(head));
        let mut options = WriteOptions::default();
        options.set_sync(true);
        db.write_opt(writes, &options).map_err(engine)
    }
}

impl Log for RocksLog {
    fn head(&self) -> Head {
        self.head
    }

    fn append(&mut self, batch: &Batch, expected: Head) -> Appended {
        if self.head != expected {
            return Appended::Refused(self.head);
        }
        let Some(head) = batch.head() else { return Appended::Committed };
        // The writer, which alone appends, makes batches of records that follow on the head, each with
        // its private part and its event.
        assert_eq!(batch.records.len(), batch.privates.len(), "each record has its private part");
        assert_eq!(batch.records.len(), batch.events.len(), "each record has its event");
        assert_eq!(batch.records[0].header.sequence, expected.sequence + 1, "a batch follows on");
        match self.write(batch, head) {
            Ok(()) => {
                self.head = head;
                Appended::Committed
            }
            Err(error) => {
                // No fsync is tried again on this handle: the kernel may have dropped the pages
                // and say "fine" the second time. Opening the log again closes it.
                Appended::Unknown(error.to_string())
            }
        }
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.release()?;
        match reopen_durable(&self.path) {
            Ok((db, head)) => {
                self.head = head;
                *self.db.write() = Some(Arc::new(db));
                Ok(())
            }
            Err(error) => {
                // Reads go on where the files can be read.
                let mut options = options();
                options.create_if_missing(false);
                let read =
                    DB::open_cf_descriptors_read_only(&options, &self.path, families(), false);
                let read = read.inspect_err(|error| {
                    tracing::warn!(%error, "the log cannot be opened for reading either");
                });
                *self.db.write() = read.ok().map(Arc::new);
                Err(error)
            }
        }
    }

    fn close(&mut self) {
        *self.db.write() = None;
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        Arc::new(RocksReader::shared(Arc::clone(&self.db)))
    }
}

/// RocksDB's directory inside a ledger's.
pub(super) fn rocks_path(dir: &Path) -> PathBuf {
    dir.join(DIRECTORY)
}

fn encode_head(head: Head) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..8].copy_from_slice(&head.sequence.to_be_bytes());
    bytes[8..].copy_from_slice(&head.hash.0);
    bytes
}

/// Makes a directory and syncs the entry of it, and of each directory made for it, into its
/// parent: a power cut soon after the first start must not take the whole log with it.
fn make_durable_directory(path: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.exists()).collect();
    std::fs::create_dir_all(path)?;
    // The ledger's own directory may just have been made for its lock.
    for dir in missing.into_iter().chain(path.parent()) {
        match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all()?,
            _ => File::open(".")?.sync_all()?,
        }
    }
    Ok(())
}

fn open_durable(path: &Path) -> Result<DB, LogError> {
    make_durable_directory(path)
        .map_err(|error| LogError::Engine(format!("{}: {error}", path.display())))?;
    open_with(&options(), path)
}

/// The same for a log that was there: where it is gone, as with a volume that is not mounted, none
/// is made.
fn reopen_durable(path: &Path) -> Result<(DB, Head), LogError> {
    let mut options = options();
    options.create_if_missing(false);
    options.create_missing_column_families(false);
    let db = open_with(&options, path)?;
    let head = head_of(&db)?;
    Ok((db, head))
}

fn open_with(options: &Options, path: &Path) -> Result<DB, LogError> {
    let db = DB::open_cf_descriptors(options, path, families()).map_err(engine)?;
    // What was recovered from the write-ahead log goes to synced table files.
    for name in FAMILIES {
        if let Some(family) = db.cf_handle(name) {
            db.flush_cf(family).map_err(engine)?;
        }
    }
    db.flush_wal(true).map_err(engine)?;
    Ok(db)
}

pub(super) fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_max_background_jobs(2);
    options.set_bytes_per_sync(1024 * 1024);
    options.set_max_total_wal_size(memory::WRITE_AHEAD_LOG as u64);
    options.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        memory::WRITE_BUFFERS,
        false,
    ));
    options.set_max_open_files(memory::OPEN_FILES);
    options.set_keep_log_file_num(4);
    options.set_paranoid_checks(true);
    options
}

pub(super) fn families() -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(memory::BLOCK_CACHE);
    FAMILIES
        .into_iter()
        .map(|name| {
            let mut table = BlockBasedOptions::default();
            table.set_block_cache(&cache);
            table.set_format_version(5);
            // Indexes and filters are read in parts through the cache. Otherwise those of all
            // tables would stay in memory, ever more of them.
            table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
            table.set_metadata_block_size(METADATA_BLOCK);
            table.set_cache_index_and_filter_blocks(true);
            table.set_pin_l0_filter_and_index_blocks_in_cache(true);
            let mut options = Options::default();
            let buffer = if name == META { META_BUFFER } else { memory::WRITE_BUFFER };
            options.set_write_buffer_size(buffer);
            options.set_compression_type(DBCompressionType::Lz4);
            options.set_level_compaction_dynamic_level_bytes(true);
            if name == INDEX {
                // Only the index is asked for what is not there, and always for a whole prefix.
                options.set_prefix_extractor(rocksdb::SliceTransform::create_fixed_prefix(17));
                options.set_max_bytes_for_level_base(INDEX_BASE);
                table.set_bloom_filter(10.0, false);
                table.set_partition_filters(true);
                table.set_whole_key_filtering(false);
            }
            options.set_block_based_table_factory(&table);
            ColumnFamilyDescriptor::new(name, options)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::contract::batch;
    use super::*;

    /// Case J9 (facebook/rocksdb #4930): who follows the log keeps a position in it. Nothing is
    /// deleted behind the follower, so there are no tombstones to skip on the way to the next event.
    #[test]
    fn following_the_log_leaves_no_tombstones() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = RocksLog::open(dir.path()).unwrap();
        let reader = log.reader();
        let mut next = 1;
        for _ in 0..100 {
            let head = log.head();
            assert_eq!(log.append(&batch(head, 50), head), Appended::Committed);
            next += reader.read(next, 1000).unwrap().len() as u64;
        }
        assert_eq!(next, 5001);
        let db = log.db.read().clone().unwrap();
        for name in [RECORDS, PRIVATE, INDEX, META] {
            let family = db.cf_handle(name).unwrap();
            let count = |property| db.property_int_value_cf(family, property).unwrap().unwrap();
            assert_eq!(count("rocksdb.num-deletes-active-mem-table"), 0, "{name}");
            assert!(count("rocksdb.num-entries-active-mem-table") > 0, "{name}");
        }
    }
}
