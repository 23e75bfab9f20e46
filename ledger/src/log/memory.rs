//! A log in memory, for tests: the same contract without a disk, and faults on demand.

use super::index::{IndexKey, keys_of};
use super::{Appended, Batch, Head, Log, LogError, LogReader};
use crate::record::{Private, Record};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the next append does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The outcome is unknown, and the batch is in the log.
    UnknownWritten,
    /// The outcome is unknown, and the batch is not in the log.
    UnknownLost,
}

#[derive(Default)]
struct Inner {
    records: Vec<Record>,
    privates: Vec<Option<Private>>,
    index: BTreeSet<([u8; 17], u64)>,
    poisoned: bool,
    faults: Vec<Fault>,
}

/// A log in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryLog {
    inner: Arc<RwLock<Inner>>,
}

impl MemoryLog {
    /// Lets the next append fail.
    pub fn fail_next(&self, fault: Fault) {
        self.inner.write().faults.push(fault);
    }
}

impl Inner {
    fn head(&self) -> Head {
        self.records
            .last()
            .map(|record| Head { sequence: record.header.sequence, hash: record.hash })
            .unwrap_or_default()
    }

    fn put(&mut self, batch: &Batch) {
        for (record, event) in batch.records.iter().zip(&batch.events) {
            let sequence = record.header.sequence;
            let keys = keys_of(&record.header, event);
            self.index.extend(keys.into_iter().map(|key| (key, sequence)));
        }
        self.records.extend(batch.records.iter().cloned());
        self.privates.extend(batch.privates.iter().cloned());
    }

    fn at(&self, sequence: u64) -> Option<usize> {
        let at = usize::try_from(sequence.checked_sub(1)?).ok()?;
        (at < self.records.len()).then_some(at)
    }
}

impl Log for MemoryLog {
    fn head(&self) -> Head {
        self.inner.read().head()
    }

    fn append(&mut self, batch: &Batch, expected: Head) -> Appended {
        let mut inner = self.inner.write();
        assert!(!inner.poisoned, "a log is not used after an unknown outcome");
        if inner.head() != expected {
            return Appended::Refused(inner.head());
        }
        match inner.faults.pop() {
            None => inner.put(batch),
            Some(fault) => {
                if fault == Fault::UnknownWritten {
                    inner.put(batch);
                }
                inner.poisoned = true;
                return Appended::Unknown(format!("{fault:?}"));
            }
        }
        Appended::Committed
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.inner.write().poisoned = false;
        Ok(())
    }

    fn close(&mut self) {}

    fn reader(&self) -> Arc<dyn LogReader> {
        Arc::new(self.clone())
    }
}

impl LogReader for MemoryLog {
    fn head(&self) -> Result<Head, LogError> {
        Ok(self.inner.read().head())
    }

    fn read(&self, from: u64, max_records: usize) -> Result<Vec<Record>, LogError> {
        let inner = self.inner.read();
        let Some(at) = inner.at(from) else { return Ok(Vec::new()) };
        Ok(inner.records[at..].iter().take(max_records).cloned().collect())
    }

    fn record(&self, sequence: u64) -> Result<Option<Record>, LogError> {
        let inner = self.inner.read();
        Ok(inner.at(sequence).map(|at| inner.records[at].clone()))
    }

    fn private(&self, sequence: u64) -> Result<Option<Private>, LogError> {
        let inner = self.inner.read();
        Ok(inner.at(sequence).and_then(|at| inner.privates[at].clone()))
    }

    fn index(&self, key: &IndexKey, after: u64, limit: usize) -> Result<Vec<u64>, LogError> {
        let inner = self.inner.read();
        let key = key.bytes();
        let from = after.saturating_add(1);
        Ok(inner
            .index
            .range((key, from)..=(key, u64::MAX))
            .take(limit)
            .map(|(_, at)| *at)
            .collect())
    }
}
