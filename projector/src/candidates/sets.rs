//! Sets of providers by trait or by aggregate.

use ledger::state::ProviderId;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// For each trait (or aggregate) number, the providers that have it.
#[derive(Clone, Default)]
pub(super) struct Sets {
    by_number: imbl::Vector<Arc<RoaringBitmap>>,
}

impl Sets {
    /// The providers of a number; none: it was never used.
    pub(super) fn get(&self, number: u32) -> Option<&RoaringBitmap> {
        self.by_number.get(number as usize).map(|set| &**set)
    }

    /// All sets with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &RoaringBitmap)> {
        (0..).zip(self.by_number.iter().map(|set| &**set))
    }

    /// Replaces what a provider has; both lists are sorted. Says whether that changed anything.
    pub(super) fn change(&mut self, provider: ProviderId, before: &[u32], now: &[u32]) -> bool {
        if before == now {
            return false;
        }
        for &number in before.iter().filter(|number| now.binary_search(number).is_err()) {
            self.set_mut(number).remove(provider);
        }
        for &number in now.iter().filter(|number| before.binary_search(number).is_err()) {
            self.set_mut(number).insert(provider);
        }
        true
    }

    fn set_mut(&mut self, number: u32) -> &mut RoaringBitmap {
        while self.by_number.len() <= number as usize {
            self.by_number.push_back(Arc::default());
        }
        Arc::make_mut(&mut self.by_number[number as usize])
    }
}
