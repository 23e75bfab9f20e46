//! Placement's microversions, all in one place: the version header, and a named constant for
//! each version at which something changes. The rest of the crate asks
//! `version >= CONSUMER_GENERATIONS` and never spells a number.

use std::fmt;

use crate::schema::python;

/// One microversion, `1.0` to `1.39`. The major number has always been 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    minor: u8,
}

const fn v(minor: u8) -> Version {
    Version { minor }
}

/// The oldest version served, and the one of a request that names none.
pub const MIN: Version = v(0);
/// The newest version served; `latest` means this one.
pub const MAX: Version = v(39);

/// Aggregates of a provider can be read and set.
pub const PROVIDER_AGGREGATES: Version = v(1);
/// Resource classes can be listed, created, shown, renamed and deleted.
pub const RESOURCE_CLASSES: Version = v(2);
/// `member_of` filters the list of providers.
pub const PROVIDERS_MEMBER_OF: Version = v(3);
/// `resources` filters the list of providers.
pub const PROVIDERS_RESOURCES: Version = v(4);
/// All inventories of a provider can be deleted at once.
pub const DELETE_INVENTORIES: Version = v(5);
/// Traits, and traits of providers.
pub const TRAITS: Version = v(6);
/// PUT of a resource class creates it if it is absent; renaming is gone.
pub const CLASS_PUT_ENSURES: Version = v(7);
/// Allocations name the project and the user of their consumer.
pub const PROJECT_AND_USER: Version = v(8);
/// Usages of a project.
pub const PROJECT_USAGES: Version = v(9);
/// Allocation candidates.
pub const CANDIDATES: Version = v(10);
/// A provider links to its allocations.
pub const ALLOCATIONS_LINK: Version = v(11);
/// Allocations are an object keyed by provider; reads show project and user.
pub const ALLOCATIONS_BY_PROVIDER: Version = v(12);
/// POST of the allocations of many consumers.
pub const POST_ALLOCATIONS: Version = v(13);
/// Providers have parents and roots; `in_tree` filters their list.
pub const TREES: Version = v(14);
/// `last-modified` and `cache-control` headers.
pub const CACHE_HEADERS: Version = v(15);
/// `limit` for candidates.
pub const CANDIDATES_LIMIT: Version = v(16);
/// `required` for candidates, and traits in their summaries.
pub const CANDIDATES_REQUIRED: Version = v(17);
/// `required` filters the list of providers.
pub const PROVIDERS_REQUIRED: Version = v(18);
/// Aggregates come with the provider's generation, checked and incremented.
pub const AGGREGATE_GENERATION: Version = v(19);
/// POST of a provider answers with the provider.
pub const PROVIDER_POST_ANSWERS: Version = v(20);
/// `member_of` for candidates.
pub const CANDIDATES_MEMBER_OF: Version = v(21);
/// Forbidden traits, `!TRAIT`.
pub const FORBIDDEN_TRAITS: Version = v(22);
/// Errors carry a `code`.
pub const ERROR_CODES: Version = v(23);
/// `member_of` may be repeated.
pub const REPEATED_MEMBER_OF: Version = v(24);
/// Numbered request groups and `group_policy`.
pub const GRANULAR: Version = v(25);
/// `reserved` may be as large as `total`.
pub const RESERVED_MAY_EQUAL_TOTAL: Version = v(26);
/// Provider summaries show all classes, not only the requested ones.
pub const SUMMARIES_ALL_CLASSES: Version = v(27);
/// Consumers have generations; PUT of allocations may be empty.
pub const CONSUMER_GENERATIONS: Version = v(28);
/// Candidates may use several providers of a tree.
pub const NESTED_CANDIDATES: Version = v(29);
/// The reshaper.
pub const RESHAPER: Version = v(30);
/// `in_tree` for candidates.
pub const CANDIDATES_IN_TREE: Version = v(31);
/// Forbidden aggregates, `!` in `member_of`.
pub const FORBIDDEN_AGGREGATES: Version = v(32);
/// Request groups may have names.
pub const NAMED_GROUPS: Version = v(33);
/// `mappings` of request groups to providers.
pub const MAPPINGS: Version = v(34);
/// `root_required` for candidates.
pub const ROOT_REQUIRED: Version = v(35);
/// `same_subtree` for candidates, and request groups without resources.
pub const SAME_SUBTREE: Version = v(36);
/// A provider's parent can be changed and taken away.
pub const REPARENTING: Version = v(37);
/// Consumers have types.
pub const CONSUMER_TYPES: Version = v(38);
/// `in:` in `required`, which may be repeated.
pub const ANY_TRAITS: Version = v(39);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

impl Version {
    /// The version as a small number, for tables indexed by version.
    #[must_use]
    pub const fn index(self) -> usize {
        self.minor as usize
    }

    /// Every version served, oldest first.
    pub fn all() -> impl Iterator<Item = Version> {
        (MIN.minor..=MAX.minor).map(v)
    }
}

/// Why a version header was refused; the texts are Placement's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not two whole numbers: 400.
    #[error(
        "Invalid microversion: invalid version string: {0}; expected two whole numbers, such as 1.39"
    )]
    Malformed(String),
    /// Two numbers outside of what is served: 406.
    #[error("Invalid microversion: Unacceptable version header: {0}")]
    Unacceptable(String),
}

/// Reads the value of `openstack-api-version`: entries for several services, separated by
/// commas. Entries for others and malformed ones do not matter; of several for `placement` the
/// last counts; without any it is [`MIN`].
///
/// # Errors
/// If the entry that counts is no version, or one that is not served.
pub fn requested(header: &str) -> Result<Version, VersionError> {
    let mut found = None;
    for entry in header.split(',') {
        let entry = entry.trim();
        if let Some((service, version)) = entry.split_once(|c: char| c.is_ascii_whitespace())
            && service.eq_ignore_ascii_case("placement")
        {
            found = Some(version.trim());
        }
    }
    found.map_or(Ok(MIN), parse)
}

fn parse(text: &str) -> Result<Version, VersionError> {
    if text == "latest" {
        return Ok(MAX);
    }
    let malformed = || VersionError::Malformed(text.to_owned());
    let (major, minor) = text.split_once('.').ok_or_else(malformed)?;
    let (Some(major), Some(minor)) = (python::integer(major), python::integer(minor)) else {
        return Err(malformed());
    };
    let served = Version::all().find(|version| (major, minor) == (1, version.minor.into()));
    served.ok_or_else(|| VersionError::Unacceptable(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_for_placement_means_the_oldest() {
        assert_eq!(requested(""), Ok(MIN));
        assert_eq!(requested("compute 2.90, 1.10"), Ok(MIN));
    }

    #[test]
    fn of_several_entries_the_last_counts() {
        assert_eq!(
            requested("placement 1.2, compute 2.1, Placement 1.28"),
            Ok(CONSUMER_GENERATIONS)
        );
    }

    #[test]
    fn latest_is_lower_case_only() {
        assert_eq!(requested("placement latest"), Ok(MAX));
        assert!(matches!(requested("placement Latest"), Err(VersionError::Malformed(_))));
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, version) in [
            ("+1.5", v(5)),
            ("1.-0", MIN),
            ("01.05", v(5)),
            ("1. 20", v(20)),
            ("1.1_0", CANDIDATES),
        ] {
            assert_eq!(requested(&format!("placement {text}")), Ok(version), "{text}");
        }
    }

    #[test]
    fn malformed_and_unacceptable_are_told_apart() {
        for text in ["pony.horse", "1", "1.2.3", "1.", "1.--3", "1._3", "1.3 x", "1.3_", "1.+ 3"] {
            let told = requested(&format!("placement {text}"));
            assert_eq!(told, Err(VersionError::Malformed(text.into())));
        }
        for text in ["0.5", "1.40", "2.0", "1.99999999999999999999999", "-1.0", "1.-3", "1_0.5"] {
            let told = requested(&format!("placement {text}"));
            assert_eq!(told, Err(VersionError::Unacceptable(text.into())));
        }
    }
}
