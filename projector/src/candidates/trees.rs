//! Which provider is below which.

use super::column::Column;
use ledger::state::ProviderId;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// The trees of providers.
#[derive(Clone, Default)]
pub(super) struct Trees {
    roots: Arc<RoaringBitmap>,
    /// Number of the parent plus one; 0: none.
    parent: Column<u32>,
    /// Number of the root plus one; 0: no such provider.
    root: Column<u32>,
    /// The members of each tree of two or more, ascending, under its root.
    members: Column<Option<Arc<[ProviderId]>>>,
    nested: u32,
}

/// Parent and root of a provider.
type Place = (Option<ProviderId>, ProviderId);

impl Trees {
    /// Providers without parent.
    pub(super) fn roots(&self) -> &RoaringBitmap {
        &self.roots
    }

    /// Whether any provider has a parent.
    pub(super) fn any_nested(&self) -> bool {
        self.nested > 0
    }

    /// The root of a provider's tree.
    pub(super) fn root(&self, id: ProviderId) -> ProviderId {
        self.root.get(id).checked_sub(1).unwrap_or(id)
    }

    /// The parent of a provider.
    pub(super) fn parent(&self, id: ProviderId) -> Option<ProviderId> {
        self.parent.get(id).checked_sub(1)
    }

    /// All providers of the tree with this root, ascending.
    pub(super) fn members<'a>(&'a self, root: &'a ProviderId) -> &'a [ProviderId] {
        match self.members.row(*root) {
            Some(Some(members)) => members,
            _ => std::slice::from_ref(root),
        }
    }

    /// Whether `top` is `id` or above it.
    pub(super) fn is_below(&self, id: ProviderId, top: ProviderId) -> bool {
        let mut at = id;
        loop {
            if at == top {
                return true;
            }
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }

    /// Moves a provider number from where it was to where it is now.
    pub(super) fn change(&mut self, id: ProviderId, before: Option<Place>, now: Option<Place>) {
        if before == now {
            return;
        }
        if let Some((parent, root)) = before {
            self.nested -= u32::from(parent.is_some());
            self.edit_members(root, |members| members.retain(|&member| member != id));
        }
        if let Some((parent, root)) = now {
            self.nested += u32::from(parent.is_some());
            self.edit_members(root, |members| {
                if let Err(at) = members.binary_search(&id) {
                    members.insert(at, id);
                }
            });
        }
        let is_root = matches!(now, Some((None, _)));
        if self.roots.contains(id) != is_root {
            let roots = Arc::make_mut(&mut self.roots);
            let _ = if is_root { roots.insert(id) } else { roots.remove(id) };
        }
        self.parent.set(id, now.and_then(|(parent, _)| parent).map_or(0, |parent| parent + 1));
        self.root.set(id, now.map_or(0, |(_, root)| root + 1));
    }

    fn edit_members(&mut self, root: ProviderId, edit: impl FnOnce(&mut Vec<ProviderId>)) {
        let mut members = match self.members.row(root) {
            Some(Some(members)) => members.to_vec(),
            _ if self.root.get(root) == root + 1 => vec![root],
            _ => Vec::new(),
        };
        edit(&mut members);
        let alone = members.is_empty() || members == [root];
        self.members.set(root, (!alone).then(|| members.into()));
    }
}
