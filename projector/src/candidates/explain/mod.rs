//! Why a search finds what it finds: how many providers each condition leaves, who came closest
//! and what each of them lacks, and how much is free in all beside the largest gap on one.
//!
//! Placement answers a hopeless request with two empty lists. This takes the same query and goes
//! through all of it: time grows with the cloud, it is made for people who ask, not for claims.

mod condition;
mod near;
mod scope;
mod totals;

pub use condition::{Condition, Lack};
pub use near::NearMiss;
pub use scope::Subject;
pub use totals::ClassTotals;

use super::anchors::Anchors;
use super::index::CandidateIndex;
use super::plan::Plan;
use super::problem::Problem;
use super::query::{NameError, Query};
use super::search::search;
use near::Nearest;
use scope::Scope;
use serde::Serialize;

/// How many near misses are told for each group.
pub const NEAR_MISSES: usize = 16;

/// The most candidates that are counted.
const COUNTED: usize = 1000;

/// What became of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The ledger position that it is true as of.
    pub sequence: u64,
    /// How many candidates there are: counted up to the query's limit, or to 1,000.
    pub candidates: usize,
    /// How many hosts (roots) can serve each group by itself; some of these may still fail once
    /// the amounts of all groups are added up, or by `group_policy` or `same_subtree`.
    pub hosts_for_all_groups: usize,
    /// The groups, in the query's order.
    pub groups: Vec<GroupExplanation>,
}

/// What became of one group of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupExplanation {
    /// Its suffix; empty: the group without one.
    pub suffix: String,
    /// What is counted: single providers, or hosts whose trees (and what is lent to them) serve
    /// the group together.
    pub counted: Subject,
    /// How many there are of these that have inventory of any class that is asked for.
    pub considered: usize,
    /// The conditions in a fixed order, and how many are left after each.
    pub steps: Vec<StepLeft>,
    /// The classes asked for: what is free in all, and the largest gap on one provider.
    pub classes: Vec<ClassTotals>,
    /// Who came closest, in the tree and below the roots that were asked for: those with the fewest
    /// faults; among these, those that got further.
    pub near_misses: Vec<NearMiss>,
}

/// A condition and what it leaves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepLeft {
    /// The condition.
    pub condition: Condition,
    /// How many satisfy it and all before it.
    pub left: usize,
}

/// Explains what a query finds.
///
/// # Errors
/// [`NameError`] if a class or trait does not exist: for the first in the query's order, whether
/// or not the search itself would have got so far.
pub fn explain(index: &CandidateIndex, query: &Query) -> Result<Explanation, NameError> {
    let groups = steps(index, query)?;
    let limit = Some(query.limit.unwrap_or(COUNTED).min(COUNTED));
    let found = search(index, &Query { limit, ..query.clone() })?;
    Ok(Explanation {
        sequence: index.sequence(),
        candidates: found.len(),
        hosts_for_all_groups: hosts(index, query),
        groups,
    })
}

/// What the conditions of each group of a query leave, without a search.
///
/// # Errors
/// As [`explain`].
pub fn steps(index: &CandidateIndex, query: &Query) -> Result<Vec<GroupExplanation>, NameError> {
    condition::check_names(index, query)?;
    let groups = query.groups.iter().map(|group| {
        let scope = Scope::new(index, group);
        let conditions = condition::of(group, &query.root_required);
        let (considered, left, nearest) = count(&scope, &conditions);
        GroupExplanation {
            suffix: group.suffix.clone(),
            counted: scope.subject(),
            considered,
            steps: conditions
                .into_iter()
                .zip(left)
                .map(|(condition, left)| StepLeft { condition, left })
                .collect(),
            classes: totals::of(index, group),
            near_misses: nearest.into_misses(index),
        }
    });
    Ok(groups.collect())
}

/// How many are considered, how many each condition leaves, and who came closest.
fn count(scope: &Scope, conditions: &[Condition]) -> (usize, Vec<usize>, Nearest) {
    let mut left = vec![0; conditions.len()];
    let mut nearest = Nearest::new(NEAR_MISSES);
    let subjects = scope.subjects();
    for &subject in &subjects {
        let lacks = scope.lacks(subject, conditions);
        let passed = lacks.first().map_or(conditions.len(), |&(at, _)| at);
        left[..passed].iter_mut().for_each(|count| *count += 1);
        if lacks.iter().all(|&(at, _)| !conditions[at].is_place()) {
            nearest.offer(subject, passed, lacks);
        }
    }
    (subjects.len(), left, nearest)
}

/// How many anchors have options for every group.
fn hosts(index: &CandidateIndex, query: &Query) -> usize {
    let Ok(plan) = Plan::new(index, query) else {
        return 0;
    };
    if plan.groups.is_empty() {
        return 0;
    }
    let mut problem = Problem::default();
    Anchors::new(&plan).filter(|&anchor| problem.set_up(&plan, anchor)).count()
}
