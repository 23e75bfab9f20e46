//! How much of what is held: by provider, and by project, user and consumer type.
//!
//! All figures are in terms of `held`: a link group counts once, by its largest member. Without
//! links they are the plain sums of all allocations.

mod apply;
mod held_by_moves;
mod in_flight;
mod lines;
mod seed;
mod totals;

pub use held_by_moves::HeldByMoves;
pub use totals::TypeUsage;

use crate::class_names::{ClassNames, ClassNumber};
use crate::links::Links;
use crate::{Lines, Map, Projection};
use in_flight::InFlight;
use ledger::amounts::Inventory;
use ledger::ids::ProviderUuid;
use ledger::state::State;
use ledger::time::Timestamp;
use std::sync::Arc;
use totals::Totals;

/// The usage view at one sequence. Cheap to clone.
#[derive(Clone, Default)]
pub struct UsageView {
    sequence: u64,
    as_of: Timestamp,
    classes: ClassNames,
    providers: Map<ProviderUuid, Arc<ProviderUsage>>,
    totals: Totals,
    links: Links,
    in_flight: InFlight,
}

/// One provider's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderUsage {
    /// Its generation, which every answer about usage carries.
    pub generation: u32,
    /// One entry for each class it has an inventory of, in the order of class numbers.
    pub classes: Vec<ClassUsage>,
}

/// The figures of one class on one provider, in the class's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassUsage {
    /// Which class.
    pub class: ClassNumber,
    /// What there is: total, reserved, ratio and the rules for single amounts.
    pub inventory: Inventory,
    /// What is held of it.
    pub held: u64,
    /// The part of `held` that goes if all moves in flight are confirmed.
    pub held_by_moves: u64,
}

impl UsageView {
    /// When the last event in the view was recorded.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// The resource classes by number.
    pub fn classes(&self) -> &ClassNames {
        &self.classes
    }

    /// One provider's figures.
    pub fn provider(&self, provider: ProviderUuid) -> Option<&Arc<ProviderUsage>> {
        self.providers.get(&provider)
    }

    /// All providers, in no order.
    pub fn providers(&self) -> impl Iterator<Item = (&ProviderUuid, &Arc<ProviderUsage>)> {
        self.providers.iter()
    }

    /// What a project holds, one entry for each consumer type, those without a type first, then by
    /// name. `user` narrows it to one user's consumers. A project nobody knows holds nothing.
    pub fn project(&self, project: &str, user: Option<&str>) -> Vec<TypeUsage> {
        self.totals.project(&self.classes, project, user)
    }
}

// For quotas and dashboards.
impl UsageView {
    /// What everybody, a project or a user holds, by consumer type as [`Self::project`].
    pub fn held_of(&self, project: Option<&str>, user: Option<&str>) -> Vec<TypeUsage> {
        let whose = self.totals.whose(project, user);
        whose.map_or_else(Vec::new, |whose| self.totals.by_type(&self.classes, whose))
    }

    /// The part of [`Self::held_of`] that goes once all moves in flight are confirmed; the consumers
    /// counted are those that give something up.
    pub fn held_by_moves_of(&self, project: Option<&str>, user: Option<&str>) -> Vec<TypeUsage> {
        let Some(whose) = self.totals.whose(project, user) else { return Vec::new() };
        let mut found = totals::ByType::default();
        for (key, amounts) in self.in_flight.all_counted().filter(|(key, _)| whose.covers(*key)) {
            let amounts = amounts.iter().map(|&(_, class, amount)| (class, amount));
            self.totals.add_to(&mut found, &self.classes, key, 1, amounts);
        }
        found.into_values().collect()
    }
}

impl ProviderUsage {
    fn class_mut(&mut self, class: ClassNumber) -> Option<&mut ClassUsage> {
        self.classes.iter_mut().find(|usage| usage.class == class)
    }

    /// The figures of a class that the provider has an inventory of.
    pub fn class(&self, class: ClassNumber) -> Option<&ClassUsage> {
        self.classes.iter().find(|usage| usage.class == class)
    }
}

impl Projection for UsageView {
    const NAME: &'static str = "usage";

    fn from_state(
        state: &Arc<State>,
        _reader: &dyn ledger::log::LogReader,
    ) -> Result<Self, crate::ProjectionError> {
        Ok(seed::seed(state))
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn apply(&mut self, batch: &crate::Batch<'_>) -> Result<(), crate::ProjectionError> {
        for (header, event) in batch.after(self.sequence)? {
            self.apply_event(header.sequence, event)?;
            self.sequence = header.sequence;
            self.as_of = header.recorded_at;
        }
        Ok(())
    }
}

impl Lines for UsageView {
    fn lines(&self) -> Vec<String> {
        lines::lines(self)
    }
}
