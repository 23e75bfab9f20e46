//! The conditions of a group, one by one, and what a provider can lack.

use crate::candidates::index::CandidateIndex;
use crate::candidates::query::{Group, NameError, Query, RootTraits, TraitCondition};
use serde::Serialize;
use std::fmt;

/// One condition of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Condition {
    /// Room for an amount of a class.
    Resource {
        /// The class.
        class: String,
        /// How much, in the class's unit.
        amount: u64,
    },
    /// One of these traits (`required`; a single one without `in:`).
    Trait {
        /// The traits.
        any_of: Vec<String>,
    },
    /// Not this trait.
    NoTrait {
        /// The trait.
        name: String,
    },
    /// In one of these aggregates (`member_of`).
    Aggregate {
        /// The aggregates.
        any_of: Vec<String>,
    },
    /// Not in this aggregate.
    NoAggregate {
        /// The aggregate.
        name: String,
    },
    /// In the tree of this provider (`in_tree`).
    Tree {
        /// The provider.
        provider: String,
    },
    /// A root with this trait (`root_required`).
    RootTrait {
        /// The trait.
        name: String,
    },
    /// A root without this trait.
    NoRootTrait {
        /// The trait.
        name: String,
    },
}

/// What a provider, or a host, lacks to satisfy a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lack {
    /// It has no inventory of the class.
    Inventory {
        /// The class.
        class: String,
    },
    /// The inventory, or its provider, goes once it is free, and is not offered any more.
    Retiring {
        /// The class.
        class: String,
    },
    /// Less is free than is needed.
    Free {
        /// The class.
        class: String,
        /// How much is asked for.
        needed: u64,
        /// How much is free; below 0: it is overcommitted.
        free: i64,
    },
    /// One allocation may not be so small.
    MinUnit {
        /// The class.
        class: String,
        /// How much is asked for.
        needed: u64,
        /// The inventory's `min_unit`.
        min_unit: u32,
    },
    /// One allocation may not be so large.
    MaxUnit {
        /// The class.
        class: String,
        /// How much is asked for.
        needed: u64,
        /// The inventory's `max_unit`.
        max_unit: u32,
    },
    /// The amount is no multiple of the step.
    StepSize {
        /// The class.
        class: String,
        /// How much is asked for.
        needed: u64,
        /// The inventory's `step_size`.
        step_size: u32,
    },
    /// A condition other than on resources does not hold.
    Condition {
        /// Which.
        unmet: Condition,
    },
}

/// The conditions of a group, in the order in which they are counted: first where to look, then
/// what is looked for there.
pub(super) fn of(group: &Group, roots: &RootTraits) -> Vec<Condition> {
    let tree = |provider: &String| Condition::Tree { provider: provider.clone() };
    let root_trait = |name: &String| Condition::RootTrait { name: name.clone() };
    let no_root_trait = |name: &String| Condition::NoRootTrait { name: name.clone() };
    let mut all = Vec::new();
    // A group without resources ignores `in_tree` (API reference, "Algorithm", step 1).
    all.extend(group.in_tree.iter().filter(|_| !group.resources.is_empty()).map(tree));
    all.extend(roots.required.iter().map(root_trait));
    all.extend(roots.forbidden.iter().map(no_root_trait));
    all.extend(
        group
            .resources
            .iter()
            .map(|(class, amount)| Condition::Resource { class: class.clone(), amount: *amount }),
    );
    for condition in &group.required {
        match condition {
            TraitCondition::AllOf(names) => {
                all.extend(names.iter().map(|name| Condition::Trait { any_of: vec![name.clone()] }))
            }
            TraitCondition::AnyOf(names) => all.push(Condition::Trait { any_of: names.clone() }),
        }
    }
    let no_trait = |name: &String| Condition::NoTrait { name: name.clone() };
    let aggregate = |any_of: &Vec<String>| Condition::Aggregate { any_of: any_of.clone() };
    let no_aggregate = |name: &String| Condition::NoAggregate { name: name.clone() };
    all.extend(group.forbidden.iter().map(no_trait));
    all.extend(group.member_of.iter().map(aggregate));
    all.extend(group.forbidden_aggregates.iter().map(no_aggregate));
    all
}

impl Condition {
    /// Whether it says where to look: who does not satisfy it was not asked, and came close to
    /// nothing.
    pub(super) fn is_place(&self) -> bool {
        matches!(self, Self::Tree { .. } | Self::RootTrait { .. } | Self::NoRootTrait { .. })
    }
}

/// Whether all classes and traits of a query exist.
pub(super) fn check_names(index: &CandidateIndex, query: &Query) -> Result<(), NameError> {
    let roots = query.root_required.required.iter().chain(&query.root_required.forbidden);
    check_traits(index, roots)?;
    for group in &query.groups {
        for (class, _) in &group.resources {
            if index.state().classes().id(class).is_none() {
                return Err(NameError::UnknownClass(class.clone()));
            }
        }
        check_traits(index, group.trait_names())?;
    }
    Ok(())
}

fn check_traits<'q>(
    index: &CandidateIndex,
    names: impl Iterator<Item = &'q String>,
) -> Result<(), NameError> {
    match NameError::unknown_traits(index.state(), names) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { class, amount } => write!(f, "{class}:{amount}"),
            Self::Trait { any_of } => write!(f, "trait {}", any_of.join(" or ")),
            Self::NoTrait { name } => write!(f, "without trait {name}"),
            Self::Aggregate { any_of } => write!(f, "in aggregate {}", any_of.join(" or ")),
            Self::NoAggregate { name } => write!(f, "outside aggregate {name}"),
            Self::Tree { provider } => write!(f, "in the tree of {provider}"),
            Self::RootTrait { name } => write!(f, "root with trait {name}"),
            Self::NoRootTrait { name } => write!(f, "root without trait {name}"),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventory { class } => write!(f, "has no {class}"),
            Self::Retiring { class } => write!(f, "{class} is being retired"),
            Self::Free { class, needed, free } => write!(f, "{class}: needs {needed}, {free} free"),
            Self::MinUnit { class, needed, min_unit } => {
                write!(f, "{class}: min_unit {min_unit} > {needed}")
            }
            Self::MaxUnit { class, needed, max_unit } => {
                write!(f, "{class}: max_unit {max_unit} < {needed}")
            }
            Self::StepSize { class, needed, step_size } => {
                write!(f, "{class}: {needed} is no multiple of step_size {step_size}")
            }
            Self::Condition { unmet } => match unmet {
                Condition::Trait { any_of } => write!(f, "lacks {}", any_of.join(" or ")),
                Condition::NoTrait { name } => write!(f, "has forbidden {name}"),
                Condition::NoAggregate { name } => write!(f, "is in forbidden aggregate {name}"),
                Condition::RootTrait { name } => write!(f, "its root lacks {name}"),
                Condition::NoRootTrait { name } => write!(f, "its root has forbidden {name}"),
                other => write!(f, "is not {other}"),
            },
        }
    }
}
