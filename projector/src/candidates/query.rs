//! What `GET /allocation_candidates` can ask, parsed and with names still as the client spelled
//! them: whether a name exists is found out in the order in which the search needs it, because an
//! empty answer ends the work before later names are looked at.

use ledger::state::State;

/// One allocation candidates query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The groups, in the order in which their suffixes first occur in the query.
    pub groups: Vec<Group>,
    /// Whether groups with a suffix may share a provider.
    pub group_policy: GroupPolicy,
    /// Each list: suffixes of groups whose providers have one of them as common ancestor.
    pub same_subtree: Vec<Vec<String>>,
    /// What the root of a candidate's tree has to have.
    pub root_required: RootTraits,
    /// The most candidates wanted; none: all.
    pub limit: Option<usize>,
    /// Whether a candidate may use several providers of one tree, and summaries cover whole
    /// trees (microversion 1.29 on).
    pub nested_allowed: bool,
}

/// Parameters with the same suffix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The suffix; empty: the group without one, whose resources may come from several providers.
    pub suffix: String,
    /// Amounts by resource class, each class once, in the class's unit. Empty: a group that asks
    /// for a provider with traits or in aggregates only (microversion 1.36 on).
    pub resources: Vec<(String, u64)>,
    /// Conditions on traits that all have to hold.
    pub required: Vec<TraitCondition>,
    /// Traits that none of its providers may have.
    pub forbidden: Vec<String>,
    /// Aggregates: of each list, one at least.
    pub member_of: Vec<Vec<String>>,
    /// Aggregates that it must not be in.
    pub forbidden_aggregates: Vec<String>,
    /// Only providers of the tree that this provider is part of. As the client spelled it: a
    /// UUID that is not in canonical form is unknown.
    pub in_tree: Option<String>,
}

/// A condition on traits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraitCondition {
    /// All of these.
    AllOf(Vec<String>),
    /// At least one of these (`in:`).
    AnyOf(Vec<String>),
}

/// Whether groups with a suffix may share a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupPolicy {
    /// They may. Also when the query says nothing: it then has one such group at most.
    #[default]
    None,
    /// Each has a provider of its own.
    Isolate,
}

/// What the root of a candidate's tree has to have (`root_required`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootTraits {
    /// Traits it must have.
    pub required: Vec<String>,
    /// Traits it must not have.
    pub forbidden: Vec<String>,
}

/// A name in a query that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A resource class; the first unknown one of its group.
    #[error("No such resource class {0}.")]
    UnknownClass(String),
    /// Traits, sorted, each once.
    #[error("No such trait(s): {}.", .0.join(", "))]
    UnknownTraits(Vec<String>),
}

impl NameError {
    /// The error that those of some traits give which do not exist.
    pub(super) fn unknown_traits<'q>(
        state: &State,
        names: impl Iterator<Item = &'q String>,
    ) -> Option<Self> {
        let mut unknown: Vec<String> =
            names.filter(|name| state.traits().id(name).is_none()).cloned().collect();
        unknown.sort_unstable();
        unknown.dedup();
        (!unknown.is_empty()).then_some(Self::UnknownTraits(unknown))
    }
}

impl Group {
    /// Whether this is the group without suffix.
    pub fn is_unsuffixed(&self) -> bool {
        self.suffix.is_empty()
    }

    /// All trait names it mentions, required ones first.
    pub fn trait_names(&self) -> impl Iterator<Item = &String> {
        self.required.iter().flat_map(TraitCondition::names).chain(&self.forbidden)
    }
}

impl TraitCondition {
    /// The names it mentions.
    pub fn names(&self) -> &[String] {
        match self {
            Self::AllOf(names) | Self::AnyOf(names) => names,
        }
    }
}
