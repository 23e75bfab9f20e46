//! Which hosts a search tries first, last and not at all.

use ledger::state::ProviderId;
use roaring::RoaringBitmap;

/// An order of hosts, by the roots of their trees. Without any, a search goes by provider numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostOrder {
    /// These come before all others.
    pub first: RoaringBitmap,
    /// These come after all others, unless they come first.
    pub last: RoaringBitmap,
    /// Nothing is found on these.
    pub ignored: RoaringBitmap,
}

impl HostOrder {
    /// An order of hosts.
    pub fn new(
        first: impl IntoIterator<Item = ProviderId>,
        last: impl IntoIterator<Item = ProviderId>,
        ignored: impl IntoIterator<Item = ProviderId>,
    ) -> Self {
        Self {
            first: first.into_iter().collect(),
            last: last.into_iter().collect(),
            ignored: ignored.into_iter().collect(),
        }
    }

    /// Whether a host comes after all others.
    pub(super) fn is_last(&self, host: ProviderId) -> bool {
        self.last.contains(host) && !self.first.contains(host)
    }

    /// Those of some hosts in this order that come neither first nor last.
    pub(super) fn between<'h>(&self, hosts: &'h mut [ProviderId]) -> &'h mut [ProviderId] {
        let start = hosts.partition_point(|&id| self.first.contains(id));
        let length = hosts[start..].partition_point(|&id| !self.is_last(id));
        &mut hosts[start..start + length]
    }

    /// Providers of a set that are hosts themselves, in this order.
    pub(super) fn sorted<'a>(
        &'a self,
        hosts: &'a RoaringBitmap,
    ) -> impl Iterator<Item = ProviderId> + 'a {
        let first = self.first.iter().filter(|&id| hosts.contains(id));
        let between =
            hosts.iter().filter(|&id| !self.first.contains(id) && !self.last.contains(id));
        let last = self.last.iter().filter(|&id| hosts.contains(id) && !self.first.contains(id));
        first.chain(between).chain(last).filter(|&id| !self.ignored.contains(id))
    }
}
