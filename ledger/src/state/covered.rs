//! Which classes the rule of a link group covers, by class number: a class keeps its number when
//! it gets another name, so the rule stays what was granted.

use super::provider::ClassId;
use super::vocabulary::Vocabulary;
use crate::command::OverlapClasses;
use crate::event::Overlap;
use std::collections::BTreeSet;

/// The classes of which only the largest amount among linked consumers counts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Covered {
    /// Every class.
    All,
    /// These only.
    Only(BTreeSet<ClassId>),
    /// Every class but these.
    AllBut(BTreeSet<ClassId>),
}

impl Covered {
    /// The rule that an event spells. A name without a number is of a class that nobody can hold.
    pub fn resolve(overlap: &Overlap, number: impl Fn(&str) -> Option<ClassId>) -> Self {
        let Overlap::Max(classes) = overlap;
        let numbers = |names: &BTreeSet<String>| names.iter().filter_map(|it| number(it)).collect();
        match classes {
            OverlapClasses::All => Self::All,
            OverlapClasses::Only(names) => Self::Only(numbers(names)),
            OverlapClasses::AllBut(names) => Self::AllBut(numbers(names)),
        }
    }

    /// The rule as events spell it, with today's names of the classes that exist.
    pub(crate) fn spelled(&self, classes: &Vocabulary) -> Overlap {
        let names = |numbers: &BTreeSet<ClassId>| {
            let alive = numbers.iter().filter(|&&id| classes.entry(id).alive);
            alive.map(|&id| classes.name(id).to_string()).collect()
        };
        Overlap::Max(match self {
            Self::All => OverlapClasses::All,
            Self::Only(numbers) => OverlapClasses::Only(names(numbers)),
            Self::AllBut(numbers) => OverlapClasses::AllBut(names(numbers)),
        })
    }

    /// Whether `class` is covered.
    pub fn covers(&self, class: ClassId) -> bool {
        match self {
            Self::All => true,
            Self::Only(classes) => classes.contains(&class),
            Self::AllBut(classes) => !classes.contains(&class),
        }
    }
}
