//! The thread that watches the disk: room, whether the file system takes writes, files that are
//! gone, and what RocksDB's own threads could not do.

use super::Shared;
use super::space::Space;
use super::unwritable::{Unwritable, UnwritableCause};
use crate::log::Faults;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);
/// How long a commit may be at the disk before that is told: far above the seconds that a crowded
/// disk needs.
const LATE: Duration = Duration::from_secs(10);

/// What is known of the disk.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(super) free: AtomicU64,
    pub(super) least: AtomicU64,
    pub(super) background_errors: AtomicU64,
    /// Why nothing may be written, as the disk was looked at last.
    found: parking_lot::Mutex<Option<Unwritable>>,
    /// Since when a commit has been at the disk.
    committing: parking_lot::Mutex<Option<Instant>>,
}

impl Disk {
    pub(super) fn unwritable(&self) -> Option<Unwritable> {
        self.found.lock().clone()
    }

    /// A commit goes to the disk, or has come back from it.
    pub(super) fn committing(&self, since: Option<Instant>) {
        *self.committing.lock() = since;
    }

    /// That a commit does not come back, if one does not.
    pub(super) fn late(&self) -> Option<Unwritable> {
        let since = (*self.committing.lock())?;
        let taken = since.elapsed();
        (taken >= LATE).then(|| {
            let reason = format!(
                "a commit has been at the disk for {} seconds; the disk does not answer",
                taken.as_secs()
            );
            Unwritable::new(UnwritableCause::DiskFailed, reason)
        })
    }

    /// Notes what was found, and logs what is news.
    fn note(&self, unwritable: Option<Unwritable>) {
        let mut found = self.found.lock();
        let cause = |it: &Option<Unwritable>| it.as_ref().map(|it| it.cause);
        if cause(&found) != cause(&unwritable) {
            match &unwritable {
                Some(why) => {
                    tracing::error!(cause = why.cause.name(), "no commands are taken: {why}")
                }
                None => tracing::warn!("commands are taken again"),
            }
        }
        *found = unwritable;
    }
}

/// Looks until the ledger is closed or dropped.
pub(super) fn watch(shared: &Weak<Shared>, space: &Space, closed: &Receiver<()>) {
    let mut known = 0;
    while let Some(shared) = shared.upgrade() {
        look(&shared, space, &mut known);
        drop(shared);
        match closed.recv_timeout(EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Looks once. `known`: errors of RocksDB's threads that were counted already.
pub(super) fn look(shared: &Shared, space: &Space, known: &mut u64) {
    let disk = &shared.disk;
    let full = disk.unwritable().is_some_and(|why| why.cause == UnwritableCause::DiskFull);
    let found = space.look(full);
    disk.free.store(found.free, Ordering::Relaxed);
    disk.least.store(found.least, Ordering::Relaxed);
    let Faults { background_errors, missing } = shared.reader.faults();
    // The engine counts anew when it is opened again.
    let news =
        background_errors.saturating_sub(if background_errors < *known { 0 } else { *known });
    *known = background_errors;
    if news > 0 {
        disk.background_errors.fetch_add(news, Ordering::Relaxed);
        tracing::error!(news, "RocksDB could not flush or compact; its file LOG says why");
    }
    let gone = missing.map(|file| {
        let reason = format!("{file} is gone: put it back, from a copy if need be");
        Unwritable::new(UnwritableCause::DiskFailed, reason)
    });
    disk.note(found.unwritable.or(gone));
}
