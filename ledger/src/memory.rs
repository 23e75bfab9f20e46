//! How much memory each part of a ledger may hold, in bytes, whatever its age and load.
//!
//! What is not here grows with what is held (the state and the views) or is gone with the request
//! that needed it.

/// The latest batches, kept decoded so that what follows the ledger closely reads no disk: a few
/// tenths of a second at full load. What lags further reads the log, which costs it more than it
/// costs the ledger.
pub const LATEST_EVENTS: usize = 4 * MIB;

/// What RocksDB has taken and not yet written to a table file, all families together. Each flush
/// becomes a file that is merged later: half as much here would mean twice as many merges, twice
/// as much buys little, since the records' own files are never merged (their keys only grow).
pub const WRITE_BUFFERS: usize = 16 * MIB;

/// The most of it in one family before it is flushed, so that two of them can be at the disk while
/// the others fill.
pub const WRITE_BUFFER: usize = WRITE_BUFFERS / 2;

/// RocksDB's write-ahead log on disk: read whole at the start after a kill, so that it bounds the
/// time of a start as well.
pub const WRITE_AHEAD_LOG: usize = 4 * WRITE_BUFFERS;

/// Blocks of table files that were read last, with the parts of their indexes and filters that were
/// needed. The operating system's page cache stands behind it.
pub const BLOCK_CACHE: usize = 16 * MIB;

/// Table files that are open at a time. Beyond these RocksDB closes one to open another.
pub const OPEN_FILES: i32 = 512;

const MIB: usize = 1024 * 1024;

/// A part that holds memory, by the name that metrics give it, and how much, in bytes.
pub type Part = (&'static str, u64);
