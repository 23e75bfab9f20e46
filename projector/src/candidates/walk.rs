//! Going through the combinations at one anchor, leaving out at each step what cannot be part of
//! a candidate, so that time grows with the candidates wanted and not with the combinations.
//!
//! Indexing here cannot fail, whatever the query: depths count the choices of the problem at hand,
//! options are numbered by the list that they are taken from, and groups by the plan.

use super::plan::{Plan, Rule};
use super::problem::Problem;
use ledger::state::{ClassId, ProviderId};
use smallvec::SmallVec;

/// Where a walk stands: for each choice the option taken. It can be put aside and taken up again.
pub(super) type Place = SmallVec<[u32; 8]>;

/// A walk through the combinations of one [`Problem`].
pub(super) struct Walk<'p> {
    plan: &'p Plan<'p>,
    problem: &'p Problem,
    /// For each choice made, the number of its option.
    place: Place,
    /// For each choice made, its provider.
    chosen: SmallVec<[ProviderId; 8]>,
    /// What the choices made take.
    taken: SmallVec<[Taken; 16]>,
}

/// An amount of one class that a choice takes of a provider.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Taken {
    pub(super) provider: ProviderId,
    pub(super) class: ClassId,
    pub(super) amount: u64,
}

/// What one step of a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A combination that is good.
    Good,
    /// There is none any more.
    End,
    /// The search has taken too many steps.
    TooLong,
}

impl<'p> Walk<'p> {
    /// A walk that starts after `place`, the last combination it came to; empty: at the start.
    pub(super) fn new(plan: &'p Plan<'p>, problem: &'p Problem, place: &[u32]) -> Self {
        let mut walk = Self {
            plan,
            problem,
            place: Place::new(),
            chosen: SmallVec::new(),
            taken: SmallVec::new(),
        };
        for &option in place {
            let provider = problem.options(walk.place.len())[option as usize];
            walk.make(option, provider);
        }
        walk
    }

    /// Goes on to the next good combination.
    pub(super) fn next(&mut self, steps: &mut u64) -> Step {
        let mut option = if self.place.is_empty() { 0 } else { self.unmake() + 1 };
        loop {
            if *steps == 0 {
                return Step::TooLong;
            }
            *steps -= 1;
            let depth = self.place.len();
            match self.problem.options(depth).get(option as usize) {
                None if depth == 0 => return Step::End,
                None => option = self.unmake() + 1,
                Some(&provider) if self.can(depth, provider) => {
                    self.make(option, provider);
                    option = 0;
                    if self.place.len() == self.problem.choices.len() {
                        return Step::Good;
                    }
                }
                Some(_) => option += 1,
            }
        }
    }

    /// Where the walk stands.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The providers chosen, in the order of the problem's choices.
    pub(super) fn chosen(&self) -> &[ProviderId] {
        &self.chosen
    }

    /// What the choices take, in no order.
    pub(super) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    fn make(&mut self, option: u32, provider: ProviderId) {
        let choice = &self.problem.choices[self.place.len()];
        let demands = &self.plan.groups[choice.group].demands[choice.demands.clone()];
        self.taken.extend(demands.iter().map(|demand| Taken {
            provider,
            class: demand.class,
            amount: demand.amount,
        }));
        self.place.push(option);
        self.chosen.push(provider);
    }

    fn unmake(&mut self) -> u32 {
        let option = self.place.pop().unwrap_or_default();
        self.chosen.pop();
        let demands = self.problem.choices[self.place.len()].demands.len();
        self.taken.truncate(self.taken.len() - demands);
        option
    }

    /// Whether a provider can be chosen beside those chosen before it.
    fn can(&self, depth: usize, provider: ProviderId) -> bool {
        self.has_room(depth, provider)
            && self.is_alone_in_its_tree(depth, provider)
            && self.is_isolated(depth, provider)
            && self.has_traits(depth, provider)
            && self.is_near(depth, provider)
    }

    /// All amounts of one class on one provider together fit its capacity and `max_unit`.
    fn has_room(&self, depth: usize, provider: ProviderId) -> bool {
        let choice = &self.problem.choices[depth];
        let demands = &self.plan.groups[choice.group].demands[choice.demands.clone()];
        demands.iter().all(|demand| {
            let same = |taken: &&Taken| taken.provider == provider && taken.class == demand.class;
            let others: u64 = self.taken.iter().filter(same).map(|taken| taken.amount).sum();
            others == 0 || others + demand.amount <= demand.column.room(provider)
        })
    }

    /// Before microversion 1.29 a candidate takes something of one provider of each tree only.
    fn is_alone_in_its_tree(&self, depth: usize, provider: ProviderId) -> bool {
        let trees = self.plan.index.trees();
        let takes_nothing = self.problem.choices[depth].demands.is_empty();
        if self.plan.nested_allowed || !trees.any_nested() || takes_nothing {
            return true;
        }
        let root = trees.root(provider);
        let mut others = self.taken.iter().map(|taken| taken.provider);
        others.all(|other| other == provider || trees.root(other) != root)
    }

    /// `group_policy=isolate`: groups with suffix do not share a provider.
    fn is_isolated(&self, depth: usize, provider: ProviderId) -> bool {
        let suffixed = |depth: usize| self.plan.groups[self.problem.choices[depth].group].suffixed;
        if !self.plan.isolate || !suffixed(depth) {
            return true;
        }
        let mut others = self.chosen.iter().enumerate();
        others.all(|(at, &other)| other != provider || !suffixed(at))
    }

    /// The providers of the group without suffix together have all required traits: asked when
    /// the last of them is chosen.
    fn has_traits(&self, depth: usize, provider: ProviderId) -> bool {
        let group = self.problem.choices[depth].group;
        let Rule::Many(rule) = &self.plan.groups[group].rule else {
            return true;
        };
        if rule.conditions.is_empty() || self.is_wanted_later(depth, |other| other == group) {
            return true;
        }
        let theirs = |&(at, _): &(usize, _)| self.problem.choices[at].group == group;
        rule.conditions.iter().all(|set| {
            let mut others = self.chosen.iter().enumerate().filter(theirs);
            set.contains(provider) || others.any(|(_, &other)| set.contains(other))
        })
    }

    /// `same_subtree`: one of the groups' providers is the ancestor of all: asked when the last
    /// of them is chosen.
    fn is_near(&self, depth: usize, provider: ProviderId) -> bool {
        let group = self.problem.choices[depth].group;
        self.plan.subtrees.iter().filter(|list| list.contains(&group)).all(|list| {
            if self.is_wanted_later(depth, |other| list.contains(&other)) {
                return true;
            }
            let theirs = |&(at, _): &(usize, _)| list.contains(&self.problem.choices[at].group);
            let others = self.chosen.iter().enumerate().filter(theirs).map(|(_, &id)| id);
            let all: SmallVec<[ProviderId; 8]> = others.chain([provider]).collect();
            let trees = self.plan.index.trees();
            all.iter().any(|&top| all.iter().all(|&id| trees.is_below(id, top)))
        })
    }

    fn is_wanted_later(&self, depth: usize, wanted: impl Fn(usize) -> bool) -> bool {
        self.problem.choices[depth + 1..].iter().any(|choice| wanted(choice.group))
    }
}
