//! The same query answered by going through everything, as the API's rules are written, without
//! indexes, order or limit. Slow and meant to be obviously right.

use crate::world::{Plain, SHARES};
use ledger::state::{Provider, State};
use projector::candidates::{Group, GroupPolicy, NameError, Query, TraitCondition};
use std::collections::{BTreeMap, BTreeSet};

type Id = u32;

/// What one group takes: (provider, class, amount), and who serves it, at one anchor.
#[derive(Clone)]
struct Request {
    anchor: Id,
    amounts: Vec<(Id, String, u64)>,
    providers: Vec<Id>,
}

pub struct Answer {
    pub candidates: BTreeSet<Plain>,
    pub summaries: BTreeSet<String>,
}

struct Oracle<'a> {
    state: &'a State,
    query: &'a Query,
}

/// The answer to a query.
pub fn answer(state: &State, query: &Query) -> Result<Answer, NameError> {
    let oracle = Oracle { state, query };
    let none = Answer { candidates: BTreeSet::new(), summaries: BTreeSet::new() };
    let Some(roots) = oracle.roots()? else {
        return Ok(none);
    };
    let mut by_group = Vec::new();
    for group in &query.groups {
        let requests = oracle.requests(group, &roots)?;
        if requests.is_empty() {
            return Ok(none);
        }
        by_group.push(requests);
    }
    Ok(oracle.merged(&by_group))
}

impl Oracle<'_> {
    fn row(&self, id: Id) -> &Provider {
        self.state.provider_row(id).expect("it exists")
    }

    fn ids(&self) -> Vec<Id> {
        self.state.providers().map(|(id, _)| id).collect()
    }

    fn name(&self, id: Id) -> String {
        self.row(id).name.to_string()
    }

    fn has_trait(&self, id: Id, name: &str) -> bool {
        let number = self.state.traits().id(name);
        number.is_some_and(|number| self.row(id).traits.contains(&number))
    }

    fn is_in(&self, id: Id, aggregate: &str) -> bool {
        let number = self.state.aggregates().number(aggregate);
        number.is_some_and(|number| self.row(id).aggregates.contains(&number))
    }

    fn fits(&self, id: Id, class: &str, amount: u64) -> bool {
        let number = self.state.classes().id(class).expect("it exists");
        let Some(row) = self.row(id).inventory(number) else {
            return false;
        };
        let it = row.inventory;
        !row.closed
            && (row.held + amount) as f64 <= it.capacity()
            && u64::from(it.min_unit) <= amount
            && amount <= u64::from(it.max_unit)
            && amount.is_multiple_of(u64::from(it.step_size))
    }

    fn fits_together(&self, id: Id, class: &str, sum: u64) -> bool {
        let number = self.state.classes().id(class).expect("it exists");
        let Some(row) = self.row(id).inventory(number) else {
            return false;
        };
        (row.held + sum) as i64 <= row.inventory.capacity_shown()
            && sum <= u64::from(row.inventory.max_unit)
    }

    fn shares(&self, id: Id) -> bool {
        self.has_trait(id, SHARES)
    }

    fn anchors(&self, id: Id) -> BTreeSet<Id> {
        let mut anchors = BTreeSet::from([self.row(id).root]);
        if self.shares(id) {
            for other in self.ids() {
                if self.row(id).aggregates.iter().any(|number| self.row(other).is_in(*number)) {
                    anchors.insert(self.row(other).root);
                }
            }
        }
        anchors
    }

    fn any_nested(&self) -> bool {
        self.ids().iter().any(|&id| self.row(id).parent.is_some())
    }

    fn any_sharing(&self) -> bool {
        self.ids().iter().any(|&id| self.shares(id))
    }

    fn check_traits<'q>(&self, names: impl Iterator<Item = &'q String>) -> Result<(), NameError> {
        let unknown: BTreeSet<String> =
            names.filter(|name| self.state.traits().id(name).is_none()).cloned().collect();
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(NameError::UnknownTraits(unknown.into_iter().collect())),
        }
    }

    /// The roots that are allowed; none: the answer is empty.
    fn roots(&self) -> Result<Option<BTreeSet<Id>>, NameError> {
        let asked = &self.query.root_required;
        self.check_traits(asked.required.iter().chain(&asked.forbidden))?;
        let good = |id: &Id| {
            self.row(*id).parent.is_none()
                && asked.required.iter().all(|name| self.has_trait(*id, name))
                && !asked.forbidden.iter().any(|name| self.has_trait(*id, name))
        };
        let roots: BTreeSet<Id> = self.ids().into_iter().filter(good).collect();
        let conditions = asked.required.len() + asked.forbidden.len();
        Ok((conditions == 0 || !roots.is_empty()).then_some(roots))
    }

    fn member(&self, id: Id, group: &Group) -> bool {
        group.member_of.iter().all(|any| any.iter().any(|name| self.is_in(id, name)))
    }

    fn outsider(&self, id: Id, group: &Group) -> bool {
        group.forbidden_aggregates.iter().any(|name| self.is_in(id, name))
    }

    /// Whether providers together have what is required.
    fn have_traits(&self, ids: &[Id], group: &Group) -> bool {
        let any_has = |name: &String| ids.iter().any(|&id| self.has_trait(id, name));
        group.required.iter().all(|condition| match condition {
            TraitCondition::AllOf(names) => names.iter().all(any_has),
            TraitCondition::AnyOf(names) => names.iter().any(any_has),
        })
    }

    fn barred(&self, id: Id, group: &Group) -> bool {
        group.forbidden.iter().any(|name| self.has_trait(id, name))
    }

    fn requests(&self, group: &Group, roots: &BTreeSet<Id>) -> Result<Vec<Request>, NameError> {
        for (class, _) in &group.resources {
            if self.state.classes().id(class).is_none() {
                return Err(NameError::UnknownClass(class.clone()));
            }
        }
        if !group.member_of.is_empty() && !self.ids().iter().any(|&id| self.member(id, group)) {
            return Ok(Vec::new());
        }
        self.check_traits(group.trait_names())?;
        let tree = match &group.in_tree {
            None => None,
            Some(text) => {
                match self.ids().iter().find(|&&id| self.row(id).uuid.to_string() == *text) {
                    None => return Ok(Vec::new()),
                    Some(&id) => Some(self.row(id).root),
                }
            }
        };
        let together = group.suffix.is_empty() && (self.any_nested() || self.any_sharing());
        let requests = if together && !group.resources.is_empty() {
            self.of_several(group, tree)
        } else {
            self.of_one(group, tree)
        };
        Ok(requests.into_iter().filter(|request| roots.contains(&request.anchor)).collect())
    }

    /// Step 1: one provider does it all.
    fn of_one(&self, group: &Group, tree: Option<Id>) -> Vec<Request> {
        let without = group.resources.is_empty();
        if without && group.required.is_empty() && group.member_of.is_empty() {
            return Vec::new();
        }
        let mut requests = Vec::new();
        for id in self.ids() {
            let good = group.resources.iter().all(|(class, amount)| self.fits(id, class, *amount))
                && (without || tree.is_none_or(|root| self.row(id).root == root))
                && self.have_traits(&[id], group)
                && !self.barred(id, group)
                && self.member(id, group)
                && !self.outsider(id, group);
            if good {
                let amounts: Vec<_> = group
                    .resources
                    .iter()
                    .map(|(class, amount)| (id, class.clone(), *amount))
                    .collect();
                requests.extend(self.anchors(id).into_iter().map(|anchor| Request {
                    anchor,
                    amounts: amounts.clone(),
                    providers: vec![id],
                }));
            }
        }
        requests
    }

    /// Step 2: for each class a provider of the tree, or one that shares with it.
    fn of_several(&self, group: &Group, tree: Option<Id>) -> Vec<Request> {
        let mut requests = Vec::new();
        for anchor in self.ids() {
            let options: Vec<Vec<Id>> = group
                .resources
                .iter()
                .map(|(class, amount)| {
                    let fits = |id: &Id| self.fits(*id, class, *amount);
                    self.options(group, tree, anchor).into_iter().filter(fits).collect()
                })
                .collect();
            for chosen in combinations(&options) {
                let barred = chosen.iter().any(|&id| self.barred(id, group));
                if !barred && self.have_traits(&chosen, group) {
                    let wanted = group.resources.iter().zip(&chosen);
                    let amounts =
                        wanted.map(|((class, amount), &id)| (id, class.clone(), *amount)).collect();
                    requests.push(Request { anchor, amounts, providers: chosen });
                }
            }
        }
        requests
    }

    fn options(&self, group: &Group, tree: Option<Id>, anchor: Id) -> Vec<Id> {
        let own = |id: Id| {
            self.row(id).root == anchor && tree.is_none_or(|root| self.row(id).root == root)
        };
        let lent = |id: Id| {
            tree.is_none()
                && self.shares(id)
                && (group.member_of.is_empty() || self.member(id, group))
                && self.anchors(id).contains(&anchor)
        };
        let good = |id: &Id| {
            (own(*id) || lent(*id))
                && (self.member(*id, group) || self.member(anchor, group))
                && !self.outsider(*id, group)
                && !self.outsider(anchor, group)
        };
        self.ids().into_iter().filter(good).collect()
    }

    /// Steps 3, 4 and 6.
    fn merged(&self, by_group: &[Vec<Request>]) -> Answer {
        let mut candidates = BTreeSet::new();
        let mut used = BTreeSet::new();
        for anchor in self.ids() {
            let here: Vec<Vec<Request>> = by_group
                .iter()
                .map(|requests| {
                    requests.iter().filter(|one| one.anchor == anchor).cloned().collect()
                })
                .collect();
            for chosen in combinations(&here) {
                if let Some(amounts) = self.candidate(&chosen) {
                    used.extend(amounts.keys().map(|(id, _)| *id));
                    candidates.insert(self.spell(&amounts, &chosen));
                }
            }
        }
        Answer { candidates, summaries: self.summaries(&used) }
    }

    fn candidate(&self, chosen: &[Request]) -> Option<BTreeMap<(Id, String), u64>> {
        let mut sums: BTreeMap<(Id, String), u64> = BTreeMap::new();
        for (id, class, amount) in chosen.iter().flat_map(|request| &request.amounts) {
            *sums.entry((*id, class.clone())).or_default() += amount;
        }
        let fits = sums.iter().all(|((id, class), sum)| self.fits_together(*id, class, *sum));
        let good = fits && self.isolated(chosen) && self.near(chosen) && self.one_of_a_tree(&sums);
        good.then_some(sums)
    }

    fn isolated(&self, chosen: &[Request]) -> bool {
        if self.query.group_policy != GroupPolicy::Isolate {
            return true;
        }
        let suffixed: Vec<Id> = self
            .query
            .groups
            .iter()
            .zip(chosen)
            .filter(|(group, _)| !group.suffix.is_empty())
            .map(|(_, request)| request.providers[0])
            .collect();
        suffixed.iter().collect::<BTreeSet<_>>().len() == suffixed.len()
    }

    fn near(&self, chosen: &[Request]) -> bool {
        self.query.same_subtree.iter().all(|suffixes| {
            let named = self.query.groups.iter().zip(chosen);
            let ids: Vec<Id> = named
                .filter(|(group, _)| suffixes.contains(&group.suffix))
                .flat_map(|(_, request)| request.providers.clone())
                .collect();
            ids.iter().any(|&top| ids.iter().all(|&id| self.state.subtree(top).contains(&id)))
        })
    }

    fn one_of_a_tree(&self, sums: &BTreeMap<(Id, String), u64>) -> bool {
        if self.query.nested_allowed || !self.any_nested() {
            return true;
        }
        let ids: BTreeSet<Id> = sums.keys().map(|(id, _)| *id).collect();
        let roots: BTreeSet<Id> = ids.iter().map(|&id| self.row(id).root).collect();
        roots.len() == ids.len()
    }

    fn spell(&self, amounts: &BTreeMap<(Id, String), u64>, chosen: &[Request]) -> Plain {
        let amounts = amounts
            .iter()
            .map(|((id, class), sum)| ((self.name(*id), class.clone()), *sum))
            .collect();
        let groups = self.query.groups.iter().zip(chosen);
        let mapping = groups.map(|(group, request)| {
            (group.suffix.clone(), request.providers.iter().map(|&id| self.name(id)).collect())
        });
        (amounts, mapping.collect())
    }

    fn summaries(&self, used: &BTreeSet<Id>) -> BTreeSet<String> {
        if !self.query.nested_allowed && self.any_nested() {
            return used.iter().map(|&id| self.name(id)).collect();
        }
        let roots: BTreeSet<Id> = used.iter().map(|&id| self.row(id).root).collect();
        let ids = self.ids().into_iter().filter(|&id| roots.contains(&self.row(id).root));
        ids.map(|id| self.name(id)).collect()
    }
}

/// Every way to take one of each list.
fn combinations<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    let mut all = vec![Vec::new()];
    for list in lists {
        let longer = |short: Vec<T>| {
            list.iter().map(move |one| short.iter().chain([one]).cloned().collect::<Vec<T>>())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}
