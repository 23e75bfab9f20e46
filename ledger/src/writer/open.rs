//! Opening a ledger: taking it for this process, checking what is there, restoring the state.

use super::committed::Ring;
use super::committer::Committer;
use super::decider::Decider;
use super::disk::{self, Disk};
use super::encode::{self, Envelope};
use super::refusals::{Limiter, RefusalCounts};
use super::remembered::InFlight;
use super::space::{FreeSpace, Space};
use super::unwritable::{Unwritable, UnwritableCause};
use super::{Ledger, Shared};
use crate::event::{Event, Genesis};
use crate::fold::{FoldError, restore};
use crate::ids::{LedgerId, derived_uuid};
use crate::limits;
use crate::log::{
    Acknowledged, Appended, Batch, Head, Log, LogError, Owner, OwnerError, RocksLog, acknowledged,
};
use crate::record::{ENCODING_NAME, HASH_NAME, Hash};
use crate::stamp::Stamp;
use crate::state::{State, checkpoint};
use crate::time::Clock;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// How a ledger is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a second process that wants the ledger is told about this one.
    pub owner: String,
    /// Go on although acknowledged events are gone. Their sequences will be used again: only for
    /// a restored backup, when everything that followed the old ones starts anew as well.
    pub accept_lost_tail: bool,
    /// Events between checkpoints.
    pub checkpoint_every: u64,
    /// Writes are refused while the file system has less than this free.
    pub free_space: FreeSpace,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            owner: String::new(),
            accept_lost_tail: false,
            checkpoint_every: 200_000,
            free_space: FreeSpace::AtMost(limits::FREE_BYTES),
        }
    }
}

/// Why a ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it, or its directory cannot be used.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log cannot be folded into a state.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Events that somebody was told of are gone.
    #[error(
        "events up to {acknowledged} were acknowledged, but the ledger ends at {head}{differs}. \
         Restore a newer copy, or open it with --accept-lost-tail"
    )]
    LostTail {
        /// The newest acknowledged sequence.
        acknowledged: u64,
        /// Where the log ends.
        head: u64,
        /// How the same sequence differs, if it does.
        differs: String,
    },
    /// The first record could not be written.
    #[error("the ledger's first record cannot be written: {0}")]
    Genesis(String),
}

impl Ledger {
    /// Opens the ledger in `dir`, or makes one, and takes it for this process.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong, where.
    pub fn open(
        dir: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
        seed: [u8; 16],
    ) -> Result<Self, OpenError> {
        let owner = Owner::take(dir, &options.owner)?;
        let log = RocksLog::open(dir)?;
        check_tail(dir, &log, options.accept_lost_tail)?;
        checkpoint::remove_beyond(dir, log.head().sequence);
        let file = Acknowledged::open(dir)?;
        Self::start(
            Some(dir.to_owned()),
            Some(owner),
            Some(file),
            Box::new(log),
            options,
            clock,
            seed,
        )
    }

    /// Opens a ledger on any log, without a directory: no checkpoints, no acknowledged file.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong, where.
    pub fn open_on(
        log: Box<dyn Log>,
        options: Options,
        clock: Arc<dyn Clock>,
        seed: [u8; 16],
    ) -> Result<Self, OpenError> {
        Self::start(None, None, None, log, options, clock, seed)
    }

    fn start(
        dir: Option<PathBuf>,
        owner: Option<Owner>,
        acknowledged: Option<Acknowledged>,
        mut log: Box<dyn Log>,
        options: Options,
        clock: Arc<dyn Clock>,
        seed: [u8; 16],
    ) -> Result<Self, OpenError> {
        let reader = log.reader();
        if log.head().sequence == 0 {
            write_genesis(&mut *log, &*clock, &seed)?;
        }
        let target = log.head().sequence;
        let nowhere = PathBuf::new();
        let from = dir.as_deref().unwrap_or(&nowhere);
        let mut told = std::time::Instant::now();
        let (state, checkpoint_at) = restore(from, &*reader, target, &mut |at, target| {
            if told.elapsed().as_secs() >= 1 {
                told = std::time::Instant::now();
                tracing::info!(at, target, "folding the log");
            }
        })?;
        let head = Head { sequence: state.sequence(), hash: state.position().hash };
        if let Some(file) = &acknowledged {
            file.note(head)?;
        }
        let epoch = state.position().epoch + 1;
        let (queue_in, queue_out) = crossbeam_channel::bounded(limits::QUEUE);
        let (commits_in, commits_out) = crossbeam_channel::bounded(0);
        let view = Arc::new(state.clone());
        let shared = Arc::new(Shared {
            dir: dir.clone(),
            queue: Mutex::new(Some(queue_in)),
            view: ArcSwap::new(Arc::clone(&view)),
            durable: watch::Sender::new(head.sequence),
            readable: AtomicU64::new(head.sequence),
            ring: Mutex::new(Ring::starting_at(view)),
            reader,
            read_only: Mutex::new(None),
            disk: Disk::default(),
            watching: Mutex::new(None),
            incarnation: AtomicU64::new(0),
            recovered: Mutex::new(None),
            fatal: watch::Sender::new(None),
            refusals: RefusalCounts::default(),
            decisions: Default::default(),
            queued: AtomicU64::new(0),
            fsync_nanos: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            threads: Mutex::new(Vec::new()),
        });
        let committer = Committer {
            shared: Arc::clone(&shared),
            log,
            acknowledged,
            commits: commits_out,
            checkpoint_every: options.checkpoint_every.max(1),
            checkpoint_at,
            incarnation: 0,
            checkpointing: None,
        };
        let decider = Decider {
            shared: Arc::clone(&shared),
            clock,
            base: state.clone(),
            state,
            epoch,
            queue: queue_out,
            commits: commits_in,
            incarnation: 0,
            in_flight: InFlight::default(),
            limiter: Limiter::default(),
        };
        let mut threads = Vec::new();
        if let Some(dir) = dir {
            let space = Space::new(dir, options.free_space);
            // What the first command meets is known before it comes.
            disk::look(&shared, &space, &mut 0);
            let (watching, closed) = crossbeam_channel::bounded(0);
            *shared.watching.lock() = Some(watching);
            let watched = Arc::downgrade(&shared);
            threads.push(spawn("disk", &shared, move || disk::watch(&watched, &space, &closed))?);
        }
        threads.extend([
            spawn("decider", &shared, move || decider.run())?,
            spawn("committer", &shared, move || {
                committer.run();
                drop(owner);
            })?,
        ]);
        *shared.threads.lock() = threads;
        Ok(Self { shared })
    }
}

/// Starts a thread of the writer. If one ends by a panic nothing can be written any more: the
/// process is told to end, and the log tells what happened.
fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, LogError> {
    let shared = Arc::downgrade(shared);
    let told = format!("the {name} thread ended by a panic");
    let guarded = move || {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
            && let Some(shared) = shared.upgrade()
        {
            let why = Unwritable::new(UnwritableCause::Defect, told.clone());
            *shared.read_only.lock() = Some(why);
            shared.fatal.send_replace(Some(told));
        }
    };
    std::thread::Builder::new()
        .name(name.into())
        .spawn(guarded)
        .map_err(|error| LogError::Engine(format!("no thread {name}: {error}")))
}

/// Refuses a log that ends before what was acknowledged, or with another event there.
fn check_tail(dir: &Path, log: &RocksLog, accept: bool) -> Result<(), OpenError> {
    let Some(known) = acknowledged(dir)? else { return Ok(()) };
    let head = log.head();
    let there = match known.sequence {
        0 => return Ok(()),
        sequence => log.reader().record(sequence)?,
    };
    let differs = match there {
        Some(record) if record.hash == known.hash => return Ok(()),
        Some(_) => format!(", and event {} is not the one that was acknowledged", known.sequence),
        None => String::new(),
    };
    if accept {
        tracing::warn!(
            acknowledged = known.sequence,
            head = head.sequence,
            "going on without the lost tail"
        );
        return Ok(());
    }
    Err(OpenError::LostTail { acknowledged: known.sequence, head: head.sequence, differs })
}

fn write_genesis(log: &mut dyn Log, clock: &dyn Clock, seed: &[u8; 16]) -> Result<(), OpenError> {
    let now = clock.now();
    let ledger_id = LedgerId(derived_uuid(seed, now, u32::MAX));
    let stamp = Stamp {
        seed: *seed,
        received_at: now,
        actor: Default::default(),
        request_id: None,
        command_id: None,
    };
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    let event = Event::Genesis(Genesis {
        ledger_id,
        hash: HASH_NAME.into(),
        encoding: ENCODING_NAME.into(),
        base_sequence: 0,
        base_hash: Hash::default(),
        base_state_digest: State::default().digest(),
        standard_classes: lines(include_str!("../state/standard_classes.txt")),
        standard_traits: lines(include_str!("../state/standard_traits.txt")),
    });
    let envelope = Envelope { ledger_id, epoch: 1, stamp: &stamp, recorded_at: now, digest: None };
    let events = vec![event];
    let encoded = encode::records(&envelope, Head::default(), &events)
        .map_err(|error| OpenError::Genesis(error.to_string()))?;
    let (records, privates) =
        encoded.into_iter().map(|(record, part)| (record, Some(part))).unzip();
    match log.append(&Batch { records, privates, events }, Head::default()) {
        Appended::Committed => Ok(()),
        Appended::Refused(head) => {
            Err(OpenError::Genesis(format!("the log ends at {}", head.sequence)))
        }
        Appended::Unknown(reason) => Err(OpenError::Genesis(reason)),
    }
}
