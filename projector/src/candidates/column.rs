//! A column of values by provider number, made for cheap snapshots.
//!
//! A block is there before a value is written into it, and a place in it is less than its length.

use ledger::state::ProviderId;
use std::sync::Arc;

/// Rows in a block: the unit that is copied when a row of it changes after a snapshot.
const BLOCK: usize = 256;

/// One value for each provider number; the default where none was set.
///
/// A clone shares all blocks; the first change after it copies the list of blocks and the one
/// block concerned. Reading a value follows two pointers.
#[derive(Clone)]
pub(super) struct Column<T> {
    blocks: Arc<Vec<Arc<[T; BLOCK]>>>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { blocks: Arc::default() }
    }
}

impl<T: Clone + Default + PartialEq> Column<T> {
    /// The value of a row, if its block was ever written to.
    pub(super) fn row(&self, id: ProviderId) -> Option<&T> {
        let id = id as usize;
        self.blocks.get(id / BLOCK).map(|block| &block[id % BLOCK])
    }

    /// The value of a row.
    pub(super) fn get(&self, id: ProviderId) -> T
    where
        T: Copy,
    {
        self.row(id).copied().unwrap_or_default()
    }

    /// Sets the value of a row.
    pub(super) fn set(&mut self, id: ProviderId, value: T) {
        let id = id as usize;
        let present = self.blocks.get(id / BLOCK).map(|block| &block[id % BLOCK]);
        if present == Some(&value) || (present.is_none() && value == T::default()) {
            return;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        while blocks.len() <= id / BLOCK {
            blocks.push(Arc::new(std::array::from_fn(|_| T::default())));
        }
        Arc::make_mut(&mut blocks[id / BLOCK])[id % BLOCK] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::Column;

    #[test]
    fn a_snapshot_keeps_its_values() {
        let mut column = Column::default();
        column.set(3, 7u32);
        column.set(1000, 8);
        let snapshot = column.clone();
        column.set(3, 9);
        column.set(5000, 1);
        assert_eq!((snapshot.get(3), snapshot.get(1000), snapshot.get(5000)), (7, 8, 0));
        assert_eq!((column.get(3), column.get(1000), column.get(5000)), (9, 8, 1));
        assert_eq!(column.get(u32::MAX), 0);
    }
}
