//! The query of `GET /allocation_candidates`: request groups, and what holds for all of them.

use super::member_of::{self, Aggregates};
use super::required::{self, Traits};
use super::resources::{self, Amount};
use super::{Query, invalid};
use crate::http::failure::{BAD_VALUE, DUPLICATE_KEY, Failure, MISSING_VALUE};
use crate::http::microversion::{GRANULAR, SAME_SUBTREE, Version};
use crate::schema::{self, is_lenient_uuid};

/// The parameters with one suffix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The suffix; empty for the group without.
    pub suffix: String,
    /// What is wanted.
    pub resources: Vec<Amount>,
    /// Traits.
    pub traits: Traits,
    /// Aggregates.
    pub aggregates: Aggregates,
    /// Any provider of the tree that is to serve it.
    pub in_tree: Option<String>,
}

/// A whole query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// The groups in the order in which their suffixes first occur.
    pub groups: Vec<Group>,
    /// Whether the groups with a suffix use different providers.
    pub isolate: bool,
    /// The most candidates to answer.
    pub limit: Option<u64>,
    /// Traits of the root.
    pub root_required: Option<Traits>,
    /// Sets of suffixes whose providers are in one subtree.
    pub same_subtrees: Vec<Vec<String>>,
}

/// Reads a query.
///
/// # Errors
/// 400.
pub fn parse(text: &str, version: Version) -> Result<Candidates, Failure> {
    let query = Query::parse(text)?;
    schema::check_query(&query.to_object(), schema::candidates::LIST.at(version))?;
    // In Placement's order: what is about the whole request, then the groups.
    let parsed = Candidates {
        limit: limit(&query)?,
        isolate: query.first("group_policy") == Some("isolate"),
        root_required: root_required(&query, version)?,
        same_subtrees: same_subtrees(&query)?,
        groups: groups(&query, version)?,
    };
    check_group_policy_value(&query)?;
    if version >= SAME_SUBTREE {
        check_suffixes(&parsed)?;
    } else {
        check_orphans(&parsed)?;
    }
    check_conflicts(&parsed)?;
    let suffixed = parsed.groups.iter().filter(|group| !group.suffix.is_empty()).count();
    if version >= GRANULAR && suffixed > 1 && query.first("group_policy").is_none() {
        return Err(Failure::bad_request(
            "The \"group_policy\" parameter is required when specifying more than one \"resources{N}\" parameter.",
        ));
    }
    Ok(parsed)
}

fn groups(query: &Query, version: Version) -> Result<Vec<Group>, Failure> {
    let mut groups: Vec<Group> = Vec::new();
    for (key, value) in query.pairs() {
        let Some((parameter, suffix)) = split(key, version) else { continue };
        let group = match groups.iter().position(|group| group.suffix == suffix) {
            Some(index) => &mut groups[index],
            None => {
                groups.push(Group { suffix: suffix.to_owned(), ..Group::default() });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        match parameter {
            "resources" => group.resources = resources::parse(value)?,
            // All values of a parameter at the first of them, as Placement: of several faults in a
            // query that one is told which comes first.
            "required" if group.traits.is_empty() => {
                group.traits = required::parse(query.all(key), version)?;
            }
            "member_of" if group.aggregates.is_empty() => {
                let values: Vec<&str> = query.all(key).collect();
                group.aggregates = member_of::parse(&values, key, version)?;
            }
            "in_tree" => group.in_tree = Some(in_tree(value)?),
            _ => {}
        }
    }
    Ok(groups)
}

/// The parameter and the suffix of a key; the schema has checked the suffix's form.
fn split(key: &str, version: Version) -> Option<(&'static str, &str)> {
    if matches!(key, "limit" | "group_policy" | "root_required" | "same_subtree") {
        return None;
    }
    let parameters = ["resources", "required", "member_of", "in_tree"];
    let (parameter, suffix) = parameters
        .into_iter()
        .find_map(|parameter| Some((parameter, key.strip_prefix(parameter)?)))?;
    (suffix.is_empty() || version >= GRANULAR).then_some((parameter, suffix))
}

fn in_tree(value: &str) -> Result<String, Failure> {
    if is_lenient_uuid(value) {
        return Ok(value.to_owned());
    }
    Err(invalid(format!("Expected 'in_tree' parameter to be a format of uuid. Got: {value}")))
}

/// The first value counts. The schema has seen the last one only.
fn limit(query: &Query) -> Result<Option<u64>, Failure> {
    let Some(text) = query.first("limit") else { return Ok(None) };
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if !digits || text.is_empty() || text.starts_with('0') {
        return Err(invalid(format!("'{text}' does not match '^[1-9][0-9]*$'")));
    }
    // More than fits is no limit at all.
    Ok(text.parse().ok())
}

fn check_group_policy_value(query: &Query) -> Result<(), Failure> {
    match query.first("group_policy") {
        None | Some("none" | "isolate") => Ok(()),
        Some(other) => Err(invalid(format!("'{other}' is not one of ['none', 'isolate']"))),
    }
}

fn root_required(query: &Query, version: Version) -> Result<Option<Traits>, Failure> {
    let Some(value) = query.first("root_required") else { return Ok(None) };
    if query.all("root_required").count() > 1 {
        return Err(Failure::bad_request(
            "Query parameter 'root_required' may be specified only once.",
        )
        .code(DUPLICATE_KEY));
    }
    let traits = required::parse_plain(value, version)?;
    let conflicts = traits.conflicts();
    if conflicts.is_empty() {
        return Ok(Some(traits));
    }
    let message = format!(
        "Conflicting required and forbidden traits found in root_required: {}",
        conflicts.join(", ")
    );
    Err(Failure::bad_request(message).code(BAD_VALUE))
}

fn same_subtrees(query: &Query) -> Result<Vec<Vec<String>>, Failure> {
    let mut sets = Vec::new();
    for value in query.all("same_subtree") {
        let suffixes: Vec<String> =
            value.split(',').map(|suffix| suffix.trim().to_owned()).collect();
        if suffixes.iter().any(String::is_empty) {
            let message = "Empty string (unsuffixed group) can not be specified in `same_subtree` ";
            return Err(Failure::bad_request(message).code(BAD_VALUE));
        }
        sets.push(suffixes);
    }
    Ok(sets)
}

/// Up to 1.35 every group needs resources.
fn check_orphans(query: &Candidates) -> Result<(), Failure> {
    let keys = |name: &str, chosen: &dyn Fn(&Group) -> bool| {
        let orphans =
            query.groups.iter().filter(|group| group.resources.is_empty() && chosen(group));
        let keys: Vec<String> = orphans.map(|group| format!("{name}{}", group.suffix)).collect();
        keys.join(", ")
    };
    let traits = keys("required", &|group| !group.traits.required.is_empty());
    if !traits.is_empty() {
        return Err(Failure::bad_request(format!(
            "All traits parameters must be associated with resources.  Found the following orphaned traits keys: \
             {traits}"
        )));
    }
    let aggregates = keys("member_of", &|group| !group.aggregates.is_empty());
    if !aggregates.is_empty() {
        return Err(Failure::bad_request(format!(
            "All member_of parameters must be associated with resources. Found the following orphaned member_of \
             keys: {aggregates}"
        )));
    }
    if query.groups.iter().any(|group| group.resources.is_empty()) {
        return Err(Failure::bad_request("All request groups must specify resources."));
    }
    if query.groups.is_empty() {
        return Err(Failure::bad_request(
            "At least one request group (`resources` or `resources{$S}`) is required.",
        ));
    }
    Ok(())
}

/// From 1.36 groups without resources are for `same_subtree`, which names groups that exist.
fn check_suffixes(query: &Candidates) -> Result<(), Failure> {
    if query.groups.iter().all(|group| group.resources.is_empty()) {
        let message = "There must be at least one resources or resources[$S] parameter.";
        return Err(Failure::bad_request(message).code(MISSING_VALUE));
    }
    let named = |suffix: &String| query.same_subtrees.iter().flatten().any(|name| name == suffix);
    let unnamed =
        query.groups.iter().filter(|group| group.resources.is_empty() && !named(&group.suffix));
    let unnamed: Vec<String> = unnamed.map(|group| group.suffix.clone()).collect();
    if !unnamed.is_empty() {
        return Err(Failure::bad_request(format!(
            "Resourceless suffixed group request should be specified in `same_subtree` query param: bad group(s) - \
             {}.",
            listed(&unnamed)
        ))
        .code(BAD_VALUE));
    }
    let known = |name: &&String| query.groups.iter().any(|group| group.suffix == **name);
    let unknown: Vec<String> =
        query.same_subtrees.iter().flatten().filter(|name| !known(name)).cloned().collect();
    if !unknown.is_empty() {
        let suffixes: Vec<String> = query.groups.iter().map(|group| group.suffix.clone()).collect();
        return Err(Failure::bad_request(format!(
            "Real suffixes should be specified in `same_subtree`: {} not found in {}.",
            listed(&unknown),
            listed(&suffixes)
        ))
        .code(BAD_VALUE));
    }
    Ok(())
}

fn listed(names: &[String]) -> String {
    schema::python::repr(&names.to_vec().into())
}

fn check_conflicts(query: &Candidates) -> Result<(), Failure> {
    let conflicts = query.groups.iter().filter_map(|group| {
        let names = group.traits.conflicts();
        (!names.is_empty()).then(|| format!("required{}: ({})", group.suffix, names.join(", ")))
    });
    let conflicts: Vec<String> = conflicts.collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "Conflicting required and forbidden traits found in the following traits keys: {}",
        conflicts.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{CANDIDATES, CANDIDATES_IN_TREE, CANDIDATES_LIMIT, MAX};

    fn told(text: &str, version: Version) -> String {
        parse(text, version).expect_err(text).message
    }

    #[test]
    fn groups_stand_in_the_order_of_their_suffixes() {
        let query = "resources_B=VCPU:1&resources=DISK_GB:5&required_B=T,!U&group_policy=isolate&limit=5&limit=7";
        let parsed = parse(query, MAX).expect("a query");
        let suffixes: Vec<&str> = parsed.groups.iter().map(|group| group.suffix.as_str()).collect();
        assert_eq!(suffixes, ["_B", ""]);
        assert_eq!(parsed.groups[0].traits.forbidden, ["U"]);
        assert!(parsed.isolate);
        assert_eq!(parsed.limit, Some(5));
    }

    #[test]
    fn the_first_limit_is_checked_too() {
        assert!(told("resources=VCPU:1&limit=x&limit=1", MAX).contains("'x' does not match"));
        assert!(
            told("resources=VCPU:1&limit=0", CANDIDATES_LIMIT)
                .contains("does not match '^[1-9][0-9]*$'")
        );
        assert!(told("resources=VCPU:1&limit=1", CANDIDATES).contains("('limit' was unexpected)"));
    }

    #[test]
    fn unknown_parameters_are_told_by_pattern_from_1_25() {
        let told = told("resources=VCPU:1&bogus=1", GRANULAR);
        assert!(
            told.contains(
                "'bogus' does not match any of the regexes: '^member_of([1-9][0-9]*)?$', \
                 '^required([1-9][0-9]*)?$', '^resources([1-9][0-9]*)?$'"
            ),
            "{told}"
        );
    }

    #[test]
    fn group_policy_is_needed_for_several_groups() {
        let told = told("resources1=VCPU:1&resources2=VCPU:1", GRANULAR);
        assert!(told.contains("The \"group_policy\" parameter is required"), "{told}");
        assert!(parse("resources1=VCPU:1&resources=VCPU:1", GRANULAR).is_ok());
    }

    #[test]
    fn groups_need_resources_until_1_35() {
        let version = CANDIDATES_IN_TREE;
        assert!(
            told("required=T&required1=U&resources2=VCPU:1", version)
                .ends_with("traits keys: required, required1")
        );
        let aggregate = "member_of3=10000000-0000-4000-8000-000000000000";
        assert!(
            told(&format!("resources=VCPU:1&{aggregate}"), version)
                .ends_with("member_of keys: member_of3")
        );
        assert_eq!(
            told("resources=VCPU:1&required1=!T", version),
            "All request groups must specify resources."
        );
        assert_eq!(
            told("", version),
            "At least one request group (`resources` or `resources{$S}`) is required."
        );
    }

    #[test]
    fn subtrees_name_groups_from_1_36() {
        assert!(
            told("required_A=T&same_subtree=_A", MAX)
                .starts_with("There must be at least one resources")
        );
        assert!(told("resources=VCPU:1&required_A=T", MAX).ends_with("bad group(s) - ['_A']."));
        assert!(
            told("resources_A=VCPU:1&resources=VCPU:1&same_subtree=_X", MAX)
                .ends_with("['_X'] not found in ['_A', '']."),
        );
        assert!(
            told("resources=VCPU:1&same_subtree=_A,,_B", MAX)
                .starts_with("Empty string (unsuffixed group)")
        );
        let parsed =
            parse("resources_A=VCPU:1&required_B=T&same_subtree=_A,%20_B&group_policy=none", MAX);
        assert_eq!(parsed.expect("a query").same_subtrees, [["_A", "_B"]]);
    }

    #[test]
    fn traits_conflict_within_a_group() {
        assert!(
            told("resources1=VCPU:1&required1=T2,!T2,T1,!T1", MAX).ends_with("required1: (T1, T2)")
        );
        let refusal = parse("resources=VCPU:1&root_required=T,!T", MAX).expect_err("a conflict");
        assert_eq!(
            refusal.message,
            "Conflicting required and forbidden traits found in root_required: T"
        );
        let refusal =
            parse("resources=VCPU:1&root_required=T&root_required=U", MAX).expect_err("twice");
        assert_eq!(refusal.message, "Query parameter 'root_required' may be specified only once.");
    }

    #[test]
    fn in_tree_is_a_uuid() {
        assert!(
            told("resources=VCPU:1&in_tree=x", MAX).ends_with("to be a format of uuid. Got: x")
        );
    }
}
