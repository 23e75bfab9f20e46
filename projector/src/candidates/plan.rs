//! A query with its names looked up: sets and columns instead of words.

use super::class::ClassColumn;
use super::generation::Generation;
use super::index::CandidateIndex;
use super::order::HostOrder;
use super::query::{Group, GroupPolicy, NameError, Query, TraitCondition};
use ledger::ids::ProviderUuid;
use ledger::state::{ClassId, ProviderId};
use roaring::{MultiOps, RoaringBitmap};
use std::borrow::Cow;

/// A set that is either one of the index's own or was computed for this query.
pub(super) type Set<'a> = Cow<'a, RoaringBitmap>;

/// A query ready to be searched for.
pub(super) struct Plan<'a> {
    pub(super) index: &'a CandidateIndex,
    pub(super) groups: Vec<GroupPlan<'a>>,
    /// The roots that `root_required` allows; none: all.
    pub(super) roots: Option<RoaringBitmap>,
    pub(super) isolate: bool,
    /// For each `same_subtree`, the positions of its groups.
    pub(super) subtrees: Vec<Vec<usize>>,
    pub(super) nested_allowed: bool,
    pub(super) limit: usize,
    pub(super) order: HostOrder,
    pub(super) generation: Generation,
}

/// One group of a [`Plan`].
pub(super) struct GroupPlan<'a> {
    pub(super) demands: Vec<Demand<'a>>,
    pub(super) suffixed: bool,
    pub(super) rule: Rule<'a>,
}

/// An amount of one class.
pub(super) struct Demand<'a> {
    pub(super) class: ClassId,
    pub(super) column: &'a ClassColumn,
    pub(super) amount: u64,
}

/// Who may serve a group.
pub(super) enum Rule<'a> {
    /// One provider of this set, if the amounts fit it.
    One(RoaringBitmap),
    /// For each class a provider of the tree or one that lends to it.
    Many(Many<'a>),
}

/// The conditions on the providers of a group whose classes may come from several.
pub(super) struct Many<'a> {
    /// Only this tree.
    pub(super) tree: Option<ProviderId>,
    /// The provider or its anchor is one of these; none: no condition.
    pub(super) members: Option<RoaringBitmap>,
    /// Neither the provider nor its anchor is one of these.
    pub(super) outsiders: RoaringBitmap,
    /// The provider is none of these (forbidden traits).
    pub(super) barred: RoaringBitmap,
    /// Of each set, one at least of the providers (required traits).
    pub(super) conditions: Vec<Set<'a>>,
}

/// Why there is no plan.
pub(super) enum Stop {
    /// Nothing can be found; later names were not looked at.
    Nothing,
    /// A name does not exist.
    Unknown(NameError),
}

impl<'a> Plan<'a> {
    /// Looks up the names of a query in the order of the API ("Algorithm", step 0): what can find
    /// nothing ends the work before later names are looked at.
    pub(super) fn new(index: &'a CandidateIndex, query: &Query) -> Result<Self, Stop> {
        let mut plan = Self {
            index,
            groups: Vec::with_capacity(query.groups.len()),
            roots: allowed_roots(index, query)?,
            isolate: query.group_policy == GroupPolicy::Isolate,
            subtrees: subtrees(query),
            nested_allowed: query.nested_allowed,
            limit: query.limit.unwrap_or(usize::MAX),
            order: HostOrder::default(),
            generation: Generation::default(),
        };
        for group in &query.groups {
            match GroupPlan::new(index, group) {
                Ok(group) => plan.groups.push(group),
                Err(Stop::Nothing) => return Err(Stop::Nothing),
                Err(unknown) if plan.groups_find_something() => return Err(unknown),
                Err(_) => return Err(Stop::Nothing),
            }
        }
        Ok(plan)
    }

    /// Whether each of the groups, searched for by itself, finds something.
    fn groups_find_something(&mut self) -> bool {
        let groups = std::mem::take(&mut self.groups);
        groups.into_iter().all(|group| {
            let alone = Plan {
                index: self.index,
                groups: vec![group],
                roots: self.roots.clone(),
                isolate: false,
                subtrees: Vec::new(),
                nested_allowed: true,
                limit: 1,
                order: HostOrder::default(),
                generation: Generation::default(),
            };
            super::search::finds_something(&alone)
        })
    }

    /// Whether candidates may be anchored at a root.
    pub(super) fn allows_root(&self, root: ProviderId) -> bool {
        self.roots.as_ref().is_none_or(|roots| roots.contains(root))
            && !self.order.ignored.contains(root)
    }
}

fn allowed_roots(index: &CandidateIndex, query: &Query) -> Result<Option<RoaringBitmap>, Stop> {
    let asked = &query.root_required;
    if asked.required.is_empty() && asked.forbidden.is_empty() {
        return Ok(None);
    }
    check_traits(index, asked.required.iter().chain(&asked.forbidden))?;
    let mut roots = index.trees().roots().clone();
    for name in &asked.required {
        roots &= &*with_trait(index, name);
    }
    for name in &asked.forbidden {
        roots -= &*with_trait(index, name);
    }
    if roots.is_empty() { Err(Stop::Nothing) } else { Ok(Some(roots)) }
}

fn subtrees(query: &Query) -> Vec<Vec<usize>> {
    let position = |suffix: &String| query.groups.iter().position(|group| group.suffix == *suffix);
    query.same_subtree.iter().map(|list| list.iter().filter_map(position).collect()).collect()
}

impl<'a> GroupPlan<'a> {
    fn new(index: &'a CandidateIndex, group: &Group) -> Result<Self, Stop> {
        let demands = demands(index, group)?;
        let members = members(index, group)?;
        check_traits(index, group.trait_names())?;
        let tree = tree(index, group)?;
        let demands: Vec<Demand> =
            demands.into_iter().collect::<Option<_>>().ok_or(Stop::Nothing)?;
        let suffixed = !group.is_unsuffixed();
        // Without trees and sharing, all classes come from one provider anyway.
        let flat = !index.trees().any_nested() && index.sharing().is_none();
        let rule = if suffixed || demands.is_empty() || flat {
            Rule::One(one(index, group, &demands, members, tree)?)
        } else {
            Rule::Many(many(index, group, members, tree))
        };
        Ok(Self { demands, suffixed, rule })
    }

    /// The amounts of the group by class, sorted, each class once.
    pub(super) fn amounts(&self) -> Vec<(ClassId, u64)> {
        let mut amounts: Vec<_> =
            self.demands.iter().map(|demand| (demand.class, demand.amount)).collect();
        amounts.sort_unstable();
        amounts
    }

    /// Whether a provider has room for all that the group asks for.
    pub(super) fn fits(&self, provider: ProviderId) -> bool {
        self.demands.iter().all(|demand| demand.fits(provider))
    }
}

impl Demand<'_> {
    /// Whether a provider has room for it.
    pub(super) fn fits(&self, provider: ProviderId) -> bool {
        self.column.fits(provider, self.amount)
    }
}

/// The amounts; none for a class of which no provider ever had any.
fn demands<'a>(index: &'a CandidateIndex, group: &Group) -> Result<Vec<Option<Demand<'a>>>, Stop> {
    let lookup = |(name, amount): &(String, u64)| match index.state().classes().id(name) {
        Some(class) => {
            Ok(index.class(class).map(|column| Demand { class, column, amount: *amount }))
        }
        None => Err(Stop::Unknown(NameError::UnknownClass(name.clone()))),
    };
    group.resources.iter().map(lookup).collect()
}

/// The providers that satisfy all of `member_of`; none: there is no such condition.
fn members(index: &CandidateIndex, group: &Group) -> Result<Option<RoaringBitmap>, Stop> {
    if group.member_of.is_empty() {
        return Ok(None);
    }
    let any_of = |names: &Vec<String>| in_any(index, names);
    let members = group.member_of.iter().map(any_of).intersection();
    if members.is_empty() { Err(Stop::Nothing) } else { Ok(Some(members)) }
}

fn in_any(index: &CandidateIndex, aggregates: &[String]) -> RoaringBitmap {
    aggregates.iter().filter_map(|name| index.in_aggregate(name)).union()
}

fn check_traits<'q>(
    index: &CandidateIndex,
    names: impl Iterator<Item = &'q String>,
) -> Result<(), Stop> {
    NameError::unknown_traits(index.state(), names)
        .map_or(Ok(()), |error| Err(Stop::Unknown(error)))
}

/// The providers with a trait whose name was checked.
fn with_trait<'a>(index: &'a CandidateIndex, name: &str) -> Set<'a> {
    index.with_trait(name).flatten().map_or_else(|| Cow::Owned(RoaringBitmap::new()), Cow::Borrowed)
}

/// The root of the tree that `in_tree` names.
fn tree(index: &CandidateIndex, group: &Group) -> Result<Option<ProviderId>, Stop> {
    let Some(text) = &group.in_tree else {
        return Ok(None);
    };
    let uuid = text.parse::<ProviderUuid>().ok().filter(|uuid| uuid.to_string() == *text);
    let id = uuid.and_then(|uuid| index.state().provider_id(uuid)).ok_or(Stop::Nothing)?;
    Ok(Some(index.trees().root(id)))
}

/// The sets of which, for each condition on traits, a provider has to be in one.
fn conditions<'a>(index: &'a CandidateIndex, group: &Group) -> Vec<Set<'a>> {
    let mut sets = Vec::new();
    for condition in &group.required {
        match condition {
            TraitCondition::AllOf(names) => {
                sets.extend(names.iter().map(|name| with_trait(index, name)));
            }
            TraitCondition::AnyOf(names) => sets.push(Cow::Owned(in_any_trait(index, names))),
        }
    }
    sets
}

fn in_any_trait(index: &CandidateIndex, names: &[String]) -> RoaringBitmap {
    names.iter().filter_map(|name| index.with_trait(name).flatten()).union()
}

/// The providers that could serve a group alone, their room apart.
fn one(
    index: &CandidateIndex,
    group: &Group,
    demands: &[Demand],
    members: Option<RoaringBitmap>,
    tree: Option<ProviderId>,
) -> Result<RoaringBitmap, Stop> {
    let conditions = conditions(index, group);
    if demands.is_empty() && conditions.is_empty() && members.is_none() {
        return Err(Stop::Nothing);
    }
    let tree: Option<RoaringBitmap> = tree
        .filter(|_| !demands.is_empty())
        .map(|root| index.trees().members(&root).iter().copied().collect());
    let mut sets: Vec<&RoaringBitmap> =
        demands.iter().map(|demand| demand.column.providers()).collect();
    sets.extend(conditions.iter().map(|set| &**set));
    sets.extend(&members);
    sets.extend(&tree);
    let mut eligible = sets.into_iter().intersection();
    for name in &group.forbidden {
        eligible -= &*with_trait(index, name);
    }
    for name in &group.forbidden_aggregates {
        if let Some(set) = index.in_aggregate(name) {
            eligible -= set;
        }
    }
    Ok(eligible)
}

fn many<'a>(
    index: &'a CandidateIndex,
    group: &Group,
    members: Option<RoaringBitmap>,
    tree: Option<ProviderId>,
) -> Many<'a> {
    Many {
        tree,
        members,
        outsiders: in_any(index, &group.forbidden_aggregates),
        barred: in_any_trait(index, &group.forbidden),
        conditions: conditions(index, group),
    }
}
