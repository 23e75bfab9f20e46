//! Folding one event into the usage view.

use super::totals::{Negative, OwnerKey};
use super::{ClassUsage, ProviderUsage, UsageView, in_flight};
use crate::ProjectionError;
use crate::class_names::{ClassNames, ClassNumber};
use crate::links::Amounts;
use ledger::allocation_event;
use ledger::event::{AllocationEvent, ConsumerChange, Event, InventoryChanged, ProviderChange};
use ledger::ids::{ConsumerUuid, LinkId, ProviderUuid};
use ledger::state::Covered;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What does not fit; the caller adds the sequence.
type Fits = Result<(), String>;

impl UsageView {
    pub(super) fn apply_event(
        &mut self,
        sequence: u64,
        event: &Event,
    ) -> Result<(), ProjectionError> {
        self.classes.apply(event);
        self.fold(event).map_err(|what| ProjectionError::Contradiction { sequence, what })
    }

    fn fold(&mut self, event: &Event) -> Fits {
        match event {
            allocation_event!(body) => self.allocations(body),
            Event::ProviderCreated(body) => {
                let row = ProviderUsage { generation: body.generation, classes: Vec::new() };
                self.providers.insert(body.provider, Arc::new(row));
                Ok(())
            }
            Event::ProviderUpdated(body) => self.generation(body.provider, body.generation),
            Event::ProviderDeleted(body) => {
                self.providers.remove(&body.provider);
                Ok(())
            }
            Event::TraitsChanged(body) => self.generation(body.provider, body.generation),
            Event::AggregatesChanged(body) => self.generation(body.provider, body.generation),
            Event::InventoryChanged(body) => {
                self.put_inventories(body)?;
                self.drop_inventories(body)
            }
            Event::Reshaped(body) => {
                // Inventories come before the allocations that use them, and go after those that
                // used them.
                body.inventories.iter().try_for_each(|change| self.put_inventories(change))?;
                self.allocations(&body.allocations)?;
                body.inventories.iter().try_for_each(|change| self.drop_inventories(change))
            }
            Event::ResourceClassRenamed(body) => {
                self.in_flight.rename_class(&body.name_before, &body.name);
                Ok(())
            }
            Event::Genesis(_)
            | Event::RetirementChanged(_)
            | Event::QuotaChanged(_)
            | Event::TraitCreated(_)
            | Event::TraitDeleted(_)
            | Event::ResourceClassCreated(_)
            | Event::ResourceClassDeleted(_)
            | Event::Rejected(_)
            | Event::RefusalsSuppressed(_)
            | Event::SearchFailed(_)
            | Event::Answered(_)
            | Event::SettingsChanged(_)
            | Event::EventSkipped(_)
            | Event::Erased(_) => Ok(()),
        }
    }

    fn provider_mut(&mut self, provider: ProviderUuid) -> Result<&mut ProviderUsage, String> {
        self.providers
            .get_mut(&provider)
            .map(Arc::make_mut)
            .ok_or_else(|| format!("provider {provider} is not known"))
    }

    fn generation(&mut self, provider: ProviderUuid, generation: u32) -> Fits {
        self.provider_mut(provider)?.generation = generation;
        Ok(())
    }

    fn class(&self, name: &str) -> Result<ClassNumber, String> {
        number(&self.classes, name)
    }

    fn put_inventories(&mut self, body: &InventoryChanged) -> Fits {
        for change in &body.changes {
            let Some(inventory) = change.after else {
                continue;
            };
            let class = self.class(&change.class)?;
            let row = self.provider_mut(body.provider)?;
            match row.class_mut(class) {
                Some(usage) => usage.inventory = inventory,
                None => {
                    row.classes.push(ClassUsage { class, inventory, held: 0, held_by_moves: 0 });
                    row.classes.sort_unstable_by_key(|usage| usage.class);
                }
            }
        }
        self.generation(body.provider, body.generation)
    }

    fn drop_inventories(&mut self, body: &InventoryChanged) -> Fits {
        for change in body.changes.iter().filter(|change| change.after.is_none()) {
            let class = self.class(&change.class)?;
            self.provider_mut(body.provider)?.classes.retain(|usage| usage.class != class);
        }
        self.generation(body.provider, body.generation)
    }

    fn allocations(&mut self, body: &AllocationEvent) -> Fits {
        for change in &body.providers {
            self.held(change)?;
        }
        let groups = self.groups_touched(body);
        let holders = self.holders_touched(body, &groups);
        for &holder in &holders {
            let counted = self.in_flight.counted(holder);
            self.held_by_moves(&counted, |held, amount| held.checked_sub(amount))?;
        }
        self.uncount(body, &groups).map_err(|Negative| "a total falls below zero".to_owned())?;
        for this in &body.moves {
            self.in_flight.put(this);
        }
        self.count(body, &groups)?;
        for holder in holders {
            let counted = self.in_flight.count(holder, &self.classes, &self.links);
            self.held_by_moves(&counted, |held, amount| held.checked_add(amount))?;
        }
        Ok(())
    }

    fn held(&mut self, change: &ProviderChange) -> Fits {
        for amount in &change.held {
            let class = self.class(&amount.class)?;
            let row = self.provider_mut(change.provider)?;
            match row.class_mut(class) {
                Some(usage) if usage.held == amount.before => usage.held = amount.after,
                Some(usage) => {
                    return Err(format!(
                        "{} {} is held of {}, not {}",
                        usage.held, amount.class, change.provider, amount.before
                    ));
                }
                None if amount.after == 0 => {}
                None => return Err(format!("{} has no {}", change.provider, amount.class)),
            }
        }
        self.generation(change.provider, change.generation)
    }

    fn held_by_moves(&mut self, amounts: &Amounts, with: impl Fn(u64, u64) -> Option<u64>) -> Fits {
        for &(provider, class, amount) in amounts {
            // A provider or class that is gone holds nothing any more.
            let Some(row) = self.providers.get_mut(&provider) else {
                continue;
            };
            let Some(usage) = Arc::make_mut(row).class_mut(class) else {
                continue;
            };
            usage.held_by_moves = with(usage.held_by_moves, amount)
                .ok_or_else(|| format!("what moves hold of {provider} falls below zero"))?;
        }
        Ok(())
    }

    /// Who holds, or held, the source of a move that changes with the event: by the move itself,
    /// by a change of one of its sides, or by a share of a group.
    fn holders_touched(
        &self,
        body: &AllocationEvent,
        groups: &BTreeSet<LinkId>,
    ) -> BTreeSet<ConsumerUuid> {
        let mut holders: BTreeSet<ConsumerUuid> = BTreeSet::new();
        for this in &body.moves {
            holders.insert(in_flight::holder(this));
            holders.extend(self.in_flight.holder_of(this.id));
        }
        for change in &body.consumers {
            holders.insert(change.consumer);
            let moves = self.in_flight.of(change.consumer);
            holders.extend(moves.filter_map(|id| self.in_flight.holder_of(id)));
        }
        for group in groups {
            holders.extend(self.links.members_of(*group));
        }
        holders
    }

    /// The groups that gain, lose or rewrite a member, or one of whose members changes its part
    /// in a move.
    fn groups_touched(&self, body: &AllocationEvent) -> BTreeSet<LinkId> {
        let changed = body.consumers.iter().map(|change| change.consumer);
        let sides =
            body.moves.iter().flat_map(|this| std::iter::once(this.instance).chain(this.migration));
        let before = changed
            .chain(sides)
            .filter_map(|consumer| self.links.member(consumer))
            .map(|member| member.group);
        let after = body.consumers.iter().filter_map(|change| change.link.as_ref());
        before.chain(after.map(|link| link.group)).collect()
    }

    /// Takes what the event changes out of the totals, and changed consumers out of their groups.
    fn uncount(
        &mut self,
        body: &AllocationEvent,
        groups: &BTreeSet<LinkId>,
    ) -> Result<(), Negative> {
        for group in groups {
            for &consumer in self.links.members_of(*group) {
                let Some(member) = self.links.member(consumer) else {
                    continue;
                };
                self.totals.take(member.owner, 0, member.shares())?;
            }
        }
        for change in &body.consumers {
            let before = existed(change);
            if before {
                let key = self.totals.key_before(change);
                self.totals.take(key, 1, std::iter::empty())?;
                if self.links.member(change.consumer).is_none() {
                    let amounts = amounts(&self.classes, change, |amount| amount.before);
                    self.totals.take(key, 0, by_class(amounts))?;
                }
            }
            self.links.leave(change.consumer);
        }
        Ok(())
    }

    /// Puts what the event changed into the totals as it stands now.
    fn count(&mut self, body: &AllocationEvent, groups: &BTreeSet<LinkId>) -> Fits {
        for change in &body.consumers {
            if change.generation.is_none() {
                self.in_flight.note_owner(change.consumer, None);
                continue;
            }
            let key: OwnerKey = self.totals.key_after(change);
            self.in_flight.note_owner(change.consumer, Some(key));
            let holds = amounts(&self.classes, change, |amount| amount.after);
            match &change.link {
                Some(link) => {
                    self.totals.add(key, 1, std::iter::empty());
                    let covered = Covered::resolve(&link.overlap, |it| self.classes.number(it));
                    self.links.join(change.consumer, (link.group, covered), holds, key);
                }
                None => self.totals.add(key, 1, by_class(holds)),
            }
        }
        for group in groups {
            let in_flight = &self.in_flight;
            self.links.share_out(*group, |consumer| in_flight.is_migration(consumer));
            for &consumer in self.links.members_of(*group) {
                let Some(member) = self.links.member(consumer) else {
                    continue;
                };
                self.totals.add(member.owner, 0, member.shares());
            }
        }
        Ok(())
    }
}

/// Whether the consumer held something before: a consumer exists while it does.
fn existed(change: &ConsumerChange) -> bool {
    change.holdings.iter().flat_map(|holding| &holding.amounts).any(|amount| amount.before > 0)
}

/// A consumer's amounts before or after a change. A class without a number never counted.
fn amounts(
    classes: &ClassNames,
    change: &ConsumerChange,
    which: impl Fn(&ledger::event::AmountChange) -> u64,
) -> Amounts {
    let mut found = Amounts::new();
    for holding in &change.holdings {
        for amount in holding.amounts.iter().filter(|amount| which(amount) > 0) {
            if let Some(class) = classes.number(&amount.class) {
                found.push((holding.provider, class, which(amount)));
            }
        }
    }
    found
}

fn by_class(amounts: Amounts) -> impl Iterator<Item = (ClassNumber, u64)> {
    amounts.into_iter().map(|(_, class, amount)| (class, amount))
}

fn number(classes: &ClassNames, name: &str) -> Result<ClassNumber, String> {
    classes.number(name).ok_or_else(|| format!("class {name} is not known"))
}
