//! The search at one anchor: what has to be chosen there, and among which providers.
//!
//! Ranges of options and demands are those of the lists that they were pushed to, so slicing cannot
//! fail.

use super::plan::{Demand, GroupPlan, Many, Plan, Rule};
use ledger::state::ProviderId;
use std::ops::Range;

/// Combinations from which on it pays to ask first whether there is any solution at all.
const MANY_COMBINATIONS: u64 = 64;

/// One choice of a provider: for a whole group, or for one class of the group without suffix.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Which group of the plan.
    pub(super) group: usize,
    /// Which of the group's demands the provider serves.
    pub(super) demands: Range<usize>,
    /// Its options in [`Problem::options`].
    options: Range<usize>,
}

/// All choices at one anchor. One value is used for anchor after anchor, so that its memory is.
#[derive(Default)]
pub(super) struct Problem {
    /// The choices, in the order in which the walk makes them.
    pub(super) choices: Vec<Choice>,
    options: Vec<ProviderId>,
    lenders: Vec<ProviderId>,
    combinations: u64,
}

impl Problem {
    /// Sets up the choices at an anchor. False: there is no candidate there.
    pub(super) fn set_up(&mut self, plan: &Plan, anchor: ProviderId) -> bool {
        self.choices.clear();
        self.options.clear();
        self.lenders.clear();
        self.combinations = 1;
        if plan.index.sharing().is_some() {
            plan.index.lenders(anchor, &mut self.lenders);
        }
        for (at, group) in plan.groups.iter().enumerate() {
            let served = match &group.rule {
                Rule::One(eligible) => {
                    self.choose(plan, anchor, at, 0..group.demands.len(), |id, _| {
                        group.fits(id) && eligible.contains(id)
                    })
                }
                Rule::Many(rule) => self.choose_each(plan, anchor, at, group, rule),
            };
            if !served {
                return false;
            }
        }
        if self.combinations > 1 {
            self.order(plan);
            for choice in &self.choices {
                plan.generation.shuffle(anchor, &mut self.options[choice.options.clone()]);
            }
        }
        self.combinations < MANY_COMBINATIONS || self.may_be_solved(plan)
    }

    /// The options of a choice.
    pub(super) fn options(&self, choice: usize) -> &[ProviderId] {
        &self.options[self.choices[choice].options.clone()]
    }

    /// How many combinations there are, good or not.
    pub(super) fn combinations(&self) -> u64 {
        self.combinations
    }

    /// Adds a choice among the tree's providers and those that lend to it (`true`).
    fn choose(
        &mut self,
        plan: &Plan,
        anchor: ProviderId,
        group: usize,
        demands: Range<usize>,
        serves: impl Fn(ProviderId, bool) -> bool,
    ) -> bool {
        let first = self.options.len();
        let members = plan.index.trees().members(&anchor);
        self.options.extend(members.iter().copied().filter(|&id| serves(id, false)));
        self.options.extend(self.lenders.iter().copied().filter(|&id| serves(id, true)));
        let count = self.options.len() - first;
        self.combinations = self.combinations.saturating_mul(count as u64);
        self.choices.push(Choice { group, demands, options: first..self.options.len() });
        count > 0
    }

    fn choose_each(
        &mut self,
        plan: &Plan,
        anchor: ProviderId,
        at: usize,
        group: &GroupPlan,
        rule: &Many,
    ) -> bool {
        let from = self.options.len();
        if rule.tree.is_some_and(|tree| tree != anchor) || rule.outsiders.contains(anchor) {
            return false;
        }
        let anchor_is_member = rule.members.as_ref().is_none_or(|set| set.contains(anchor));
        for (number, demand) in group.demands.iter().enumerate() {
            let served = self.choose(plan, anchor, at, number..number + 1, |id, lent| {
                demand.fits(id) && rule.admits(id, lent, anchor_is_member)
            });
            if !served {
                return false;
            }
        }
        let found = &self.options[from..];
        rule.conditions.iter().all(|set| found.iter().any(|&id| set.contains(id)))
    }

    /// Puts first what fails first: choices without alternative, then those that conditions on
    /// several providers hang on, then those with few options.
    fn order(&mut self, plan: &Plan) {
        let in_subtree = |group| plan.subtrees.iter().any(|list| list.contains(&group));
        self.choices.sort_by_key(|choice| {
            let options = choice.options.len();
            let kind = match options {
                1 => 0,
                _ if !plan.groups[choice.group].suffixed => 1,
                _ if in_subtree(choice.group) => 2,
                _ => 3,
            };
            (kind, options)
        });
    }

    /// Whether the choices can be made at all, judged by counting: for each class the room of all
    /// options together suffices, and isolated groups can each have a provider of their own.
    fn may_be_solved(&self, plan: &Plan) -> bool {
        (0..self.choices.len()).all(|choice| {
            self.demands(plan, choice).iter().all(|demand| self.room_for_all(plan, demand))
        }) && (!plan.isolate || self.each_has_its_own(plan))
    }

    fn demands<'p>(&self, plan: &'p Plan, choice: usize) -> &'p [Demand<'p>] {
        let choice = &self.choices[choice];
        &plan.groups[choice.group].demands[choice.demands.clone()]
    }

    /// Whether the options of all choices that want a class have room for them together.
    fn room_for_all(&self, plan: &Plan, wanted: &Demand) -> bool {
        let mut needed = 0u64;
        let mut providers = Vec::new();
        for choice in 0..self.choices.len() {
            let same =
                self.demands(plan, choice).iter().filter(|demand| demand.class == wanted.class);
            let amount: u64 = same.map(|demand| demand.amount).fold(0, u64::saturating_add);
            if amount > 0 {
                needed = needed.saturating_add(amount);
                providers.extend_from_slice(self.options(choice));
            }
        }
        providers.sort_unstable();
        providers.dedup();
        let room = providers.iter().map(|&id| wanted.column.room(id)).fold(0, u64::saturating_add);
        needed <= room
    }

    /// Whether each group with suffix can have a provider of its own (a bipartite matching).
    fn each_has_its_own(&self, plan: &Plan) -> bool {
        let isolated: Vec<usize> = (0..self.choices.len())
            .filter(|&choice| plan.groups[self.choices[choice].group].suffixed)
            .collect();
        let mut owners = rustc_hash::FxHashMap::default();
        isolated.iter().all(|&choice| self.find_own(choice, &mut owners, &mut Vec::new()))
    }

    /// Gives a choice a provider, if need be by giving others another (an augmenting path).
    fn find_own(
        &self,
        choice: usize,
        owners: &mut rustc_hash::FxHashMap<ProviderId, usize>,
        tried: &mut Vec<ProviderId>,
    ) -> bool {
        for &id in self.options(choice) {
            if tried.contains(&id) {
                continue;
            }
            tried.push(id);
            let free = match owners.get(&id).copied() {
                None => true,
                Some(owner) => self.find_own(owner, owners, tried),
            };
            if free {
                owners.insert(id, choice);
                return true;
            }
        }
        false
    }
}

impl Many<'_> {
    /// Whether a provider may serve a class of the group, its room and the anchor apart.
    fn admits(&self, id: ProviderId, lent: bool, anchor_is_member: bool) -> bool {
        let member = self.members.as_ref().is_none_or(|set| {
            // A root's aggregates extend over its tree, not over what is lent to it.
            (!lent && anchor_is_member) || set.contains(id)
        });
        member
            && (!lent || self.tree.is_none())
            && !self.outsiders.contains(id)
            && !self.barred.contains(id)
    }
}
