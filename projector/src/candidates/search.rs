//! The search: over anchors, and at each anchor over combinations.

use super::anchors::Anchors;
use super::found::Found;
use super::generation::Generation;
use super::index::CandidateIndex;
use super::order::HostOrder;
use super::plan::{Plan, Rule, Stop};
use super::problem::Problem;
use super::query::{NameError, Query};
use super::walk::{Place, Step, Taken, Walk};
use super::{MAX_CANDIDATES, MAX_FOUND_BYTES, MAX_STEPS};
use ledger::state::{ClassId, ProviderId};
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

/// Finds the candidates of a query.
///
/// The same index and query give the same candidates in the same order, in every process. A
/// limited answer takes one candidate from each anchor in turn, so that it is spread over hosts.
///
/// # Errors
/// [`NameError`] if a class or trait does not exist, unless it is settled before that name's turn
/// that nothing can be found.
pub fn search(index: &CandidateIndex, query: &Query) -> Result<Found, NameError> {
    search_in_order(index, query, &HostOrder::default())
}

/// The same, with some hosts first, some last and some not at all.
///
/// # Errors
/// As [`search`].
pub fn search_in_order(
    index: &CandidateIndex,
    query: &Query,
    order: &HostOrder,
) -> Result<Found, NameError> {
    search_with(index, query, order, Generation::default())
}

/// The same, with candidates generated in another way.
///
/// # Errors
/// As [`search`].
pub fn search_with(
    index: &CandidateIndex,
    query: &Query,
    order: &HostOrder,
    generation: Generation,
) -> Result<Found, NameError> {
    let suffixes = query.groups.iter().map(|group| group.suffix.clone()).collect();
    let mut found = Found::new(suffixes);
    match Plan::new(index, query) {
        Ok(mut plan) => {
            plan.order.clone_from(order);
            plan.generation = generation;
            Search::new(&plan, &mut found).run();
        }
        Err(Stop::Nothing) => {}
        Err(Stop::Unknown(name)) => return Err(name),
    }
    Ok(found)
}

/// The same on behalf of somebody who is given something back (`back`, see
/// [`CandidateIndex::giving_back`]). What a sharing provider is given back may let any host that
/// borrows of it fit: in a limited answer such hosts come after those that fit without it.
///
/// # Errors
/// As [`search`].
pub fn search_giving_back(
    index: &CandidateIndex,
    back: &CandidateIndex,
    query: &Query,
    order: &HostOrder,
    generation: Generation,
) -> Result<Found, NameError> {
    let is_whole = query.limit.is_none() && generation.most.is_none();
    if is_whole || !back.is_lender_given_back() {
        return search_with(back, query, order, generation);
    }
    let without = search_with(index, query, order, generation)?;
    let fitting: RoaringBitmap = without.used().map(|id| index.trees().root(id)).collect();
    let mut order = order.clone();
    order.last |= back.trees().roots() - fitting;
    search_with(back, query, &order, generation)
}

/// Whether a plan has any candidate.
pub(super) fn finds_something(plan: &Plan) -> bool {
    let mut found = Found::new(vec![String::new(); plan.groups.len()]);
    Search::new(plan, &mut found).run();
    !found.is_empty()
}

/// Steps that each candidate found adds to what a search may take: only fruitless ones use it up.
const STEPS_PER_CANDIDATE: u64 = 64;

struct Search<'p, 'f> {
    plan: &'p Plan<'p>,
    /// The most candidates.
    limit: usize,
    found: &'f mut Found,
    steps: u64,
    /// Candidates of sharing providers alone: these can be found at several anchors.
    lent: FxHashSet<Vec<ProviderId>>,
    scratch: Vec<Taken>,
}

impl<'p, 'f> Search<'p, 'f> {
    fn new(plan: &'p Plan<'p>, found: &'f mut Found) -> Self {
        let limit = plan.generation.limit(plan.limit);
        Self {
            plan,
            limit,
            found,
            steps: MAX_STEPS,
            lent: FxHashSet::default(),
            scratch: Vec::new(),
        }
    }

    fn run(mut self) {
        if self.plan.groups.is_empty() {
            return;
        }
        let index = self.plan.index;
        let flat = !index.trees().any_nested() && index.sharing().is_none();
        match &*self.plan.groups {
            [group] if flat => {
                if let Rule::One(eligible) = &group.rule {
                    self.flat(eligible);
                }
            }
            _ if self.plan.generation.is_by_host(self.plan.limit) => self.anchor_by_anchor(),
            _ => self.by_turns(),
        }
        let allowed = MAX_STEPS + STEPS_PER_CANDIDATE * self.found.len() as u64;
        self.found.steps = allowed.saturating_sub(self.steps);
        // A client that did not ask for fewer is told that there may be more.
        if self.limit < self.plan.limit && self.found.len() >= self.limit {
            self.found.complete = false;
        }
        self.describe();
    }

    /// One group, neither trees nor sharing: each provider is a candidate or is not.
    fn flat(&mut self, eligible: &'p RoaringBitmap) {
        let group = &self.plan.groups[0];
        let amounts = self.found.amounts_id(&group.amounts());
        let hosts = self.in_order(self.plan.order.sorted(eligible));
        let fitting = hosts.filter(|&id| self.plan.allows_root(id) && group.fits(id));
        for provider in fitting.take(self.limit) {
            if !group.demands.is_empty() {
                self.found.push_part(provider, amounts);
            }
            self.found.push_served(provider);
            self.found.end_group();
            self.found.end_candidate();
            self.steps += STEPS_PER_CANDIDATE - 1;
        }
    }

    /// Hosts as they come, or by chance those that come neither first nor last.
    fn in_order(
        &self,
        hosts: impl Iterator<Item = ProviderId> + 'p,
    ) -> Box<dyn Iterator<Item = ProviderId> + 'p> {
        if self.plan.generation.seed.is_none() {
            return Box::new(hosts);
        }
        let mut hosts: Vec<ProviderId> = hosts.collect();
        self.plan.generation.shuffle(0, self.plan.order.between(&mut hosts));
        Box::new(hosts.into_iter())
    }

    /// All candidates of one anchor, then of the next.
    fn anchor_by_anchor(&mut self) {
        let mut problem = Problem::default();
        for anchor in self.in_order(Anchors::new(self.plan)) {
            if !problem.set_up(self.plan, anchor) {
                continue;
            }
            let mut walk = Walk::new(self.plan, &problem, &[]);
            while !self.is_done() && self.advance(&problem, &mut walk) {}
            if self.is_done() {
                return;
            }
        }
    }

    /// One candidate of each anchor, then a second one of each, until the limit is reached. Hosts
    /// that come last do so once the others have no more.
    fn by_turns(&mut self) {
        let mut last = Vec::new();
        let plan = self.plan;
        let others = self.in_order(Anchors::new(plan)).filter(|&anchor| {
            let is_last = plan.order.is_last(anchor);
            if is_last {
                last.push(anchor);
            }
            !is_last
        });
        self.take_turns(others);
        if !self.is_done() {
            self.take_turns(last.into_iter());
        }
    }

    fn take_turns(&mut self, anchors: impl Iterator<Item = ProviderId>) {
        let mut problem = Problem::default();
        let mut later = Vec::new();
        for anchor in anchors {
            if !problem.set_up(self.plan, anchor) {
                continue;
            }
            self.take_turn(&problem, anchor, &[], &mut later);
            if self.is_done() {
                return;
            }
        }
        while !later.is_empty() {
            for (anchor, place) in std::mem::take(&mut later) {
                problem.set_up(self.plan, anchor);
                self.take_turn(&problem, anchor, &place, &mut later);
                if self.is_done() {
                    return;
                }
            }
        }
    }

    fn take_turn(
        &mut self,
        problem: &Problem,
        anchor: ProviderId,
        place: &[u32],
        later: &mut Vec<(ProviderId, Place)>,
    ) {
        let mut walk = Walk::new(self.plan, problem, place);
        if self.advance(problem, &mut walk) && problem.combinations() > 1 {
            later.push((anchor, walk.place().clone()));
        }
    }

    fn is_done(&self) -> bool {
        self.found.len() >= self.limit || !self.found.complete
    }

    /// Whether the candidates found are as many as one search may find.
    fn is_full(&self) -> bool {
        // What is lent has a key for each candidate, about as long as the candidate.
        let keys = if self.lent.is_empty() { 0 } else { self.found.bytes() };
        self.found.len() >= MAX_CANDIDATES || self.found.bytes() + keys >= MAX_FOUND_BYTES
    }

    /// Adds the next candidate of an anchor; false: it has none any more.
    fn advance(&mut self, problem: &Problem, walk: &mut Walk) -> bool {
        loop {
            match walk.next(&mut self.steps) {
                Step::Good if self.is_full() => {
                    self.found.complete = false;
                    return false;
                }
                Step::Good if self.is_new(problem, walk) => {
                    self.add(problem, walk);
                    self.steps += STEPS_PER_CANDIDATE;
                    return true;
                }
                Step::Good => {}
                Step::End => return false,
                Step::TooLong => {
                    self.found.complete = false;
                    return false;
                }
            }
        }
    }

    /// Whether the combination was not found at another anchor. A provider that does not lend has
    /// one anchor only, so this can only be if all of them lend.
    fn is_new(&mut self, problem: &Problem, walk: &Walk) -> bool {
        let Some(sharing) = self.plan.index.sharing() else {
            return true;
        };
        if walk.chosen().iter().any(|&id| !sharing.contains(id)) {
            return true;
        }
        // The order of choices differs from anchor to anchor.
        let mut key: Vec<_> = problem
            .choices
            .iter()
            .zip(walk.chosen())
            .map(|(choice, &id)| (choice.group, choice.demands.start, id))
            .collect();
        key.sort_unstable();
        self.lent.insert(key.into_iter().map(|(_, _, id)| id).collect())
    }

    fn add(&mut self, problem: &Problem, walk: &Walk) {
        self.add_allocations(walk);
        for group in 0..self.plan.groups.len() {
            self.add_mapping(problem, walk, group);
        }
        self.found.end_candidate();
    }

    fn add_allocations(&mut self, walk: &Walk) {
        self.scratch.clear();
        self.scratch.extend_from_slice(walk.taken());
        self.scratch.sort_unstable();
        for of_provider in self.scratch.chunk_by(|a, b| a.provider == b.provider) {
            let sums = of_provider.chunk_by(|a, b| a.class == b.class);
            let amounts: smallvec::SmallVec<[(ClassId, u64); 8]> = sums
                .map(|same| (same[0].class, same.iter().map(|taken| taken.amount).sum()))
                .collect();
            let amounts = self.found.amounts_id(&amounts);
            self.found.push_part(of_provider[0].provider, amounts);
        }
    }

    fn add_mapping(&mut self, problem: &Problem, walk: &Walk, group: usize) {
        let choices = problem.choices.iter().zip(walk.chosen());
        let mut serving: smallvec::SmallVec<[ProviderId; 8]> =
            choices.filter(|(choice, _)| choice.group == group).map(|(_, &id)| id).collect();
        serving.sort_unstable();
        serving.dedup();
        for provider in serving {
            self.found.push_served(provider);
        }
        self.found.end_group();
    }

    /// Lists the providers that the answer has to describe: all of all trees that are used, or
    /// (before microversion 1.29) those that are used.
    fn describe(&mut self) {
        let trees = self.plan.index.trees();
        let mut used: Vec<ProviderId> = self.found.used().collect();
        let whole_trees = self.plan.nested_allowed && trees.any_nested();
        if whole_trees {
            used.iter_mut().for_each(|id| *id = trees.root(*id));
        }
        used.sort_unstable();
        used.dedup();
        // Tree by tree: both the roots and the members of each tree are in order already.
        self.found.summaries = match whole_trees {
            true => used.iter().flat_map(|root| trees.members(root)).copied().collect(),
            false => used,
        };
    }
}
