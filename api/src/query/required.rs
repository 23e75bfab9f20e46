//! `required=T1,T2`, `required=!T1` and `required=in:T1,T2`.

use super::invalid;
use crate::http::failure::Failure;
use crate::http::microversion::{ANY_TRAITS, FORBIDDEN_TRAITS, Version};

/// What traits a provider must and must not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// One of each list.
    pub required: Vec<Vec<String>>,
    /// None of these.
    pub forbidden: Vec<String>,
}

impl Traits {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.forbidden.is_empty()
    }

    /// The names that can never be satisfied, sorted: required and forbidden too, lists whose
    /// every name is forbidden included.
    #[must_use]
    pub fn conflicts(&self) -> Vec<String> {
        let hopeless = |list: &&Vec<String>| list.iter().all(|name| self.forbidden.contains(name));
        let mut names: Vec<String> =
            self.required.iter().filter(hopeless).flatten().cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Every name that is mentioned, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.required.iter().flatten().chain(&self.forbidden).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads all values of a `required` parameter: all conditions together from 1.39, the last value
/// alone before.
///
/// # Errors
/// 400.
pub fn parse<'a>(
    mut values: impl DoubleEndedIterator<Item = &'a str>,
    version: Version,
) -> Result<Traits, Failure> {
    let mut traits = Traits::default();
    if version >= ANY_TRAITS {
        for value in values {
            read(value, version, true, &mut traits)?;
        }
    } else if let Some(value) = values.next_back() {
        read(value, version, false, &mut traits)?;
    }
    Ok(traits)
}

/// Reads a value that may not have the form `in:`, such as that of `root_required`.
///
/// # Errors
/// 400.
pub fn parse_plain(value: &str, version: Version) -> Result<Traits, Failure> {
    let mut traits = Traits::default();
    read(value, version, false, &mut traits)?;
    Ok(traits)
}

const ANY: &str = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'";

fn read(value: &str, version: Version, any: bool, traits: &mut Traits) -> Result<(), Failure> {
    match value.strip_prefix("in:") {
        Some(_) if !any => Err(invalid(format!(
            "{ANY} only supported since microversion {ANY_TRAITS}. Got: {value}"
        ))),
        Some(list) => {
            let names = names(list, value, "in:HW_CPU_X86_VMX,CUSTOM_MAGIC")?;
            if names.iter().any(|name| name.starts_with('!')) {
                return Err(invalid(format!(
                    "{ANY} does not support forbidden traits. Got: {value}"
                )));
            }
            traits.required.push(names);
            Ok(())
        }
        None => read_list(value, version, traits),
    }
}

fn read_list(value: &str, version: Version, traits: &mut Traits) -> Result<(), Failure> {
    let forbidding = version >= FORBIDDEN_TRAITS;
    let form =
        if forbidding { "HW_CPU_X86_VMX,!CUSTOM_MAGIC" } else { "HW_CPU_X86_VMX,CUSTOM_MAGIC" };
    for name in names(value, value, form)? {
        if !name.starts_with('!') {
            traits.required.push(vec![name]);
            continue;
        }
        if !forbidding {
            return Err(unexpected(form, &format!("Got: {value}")));
        }
        let name = name.trim_start_matches('!').trim();
        if name.is_empty() {
            return Err(empty(form, value));
        }
        traits.forbidden.push(name.to_owned());
    }
    Ok(())
}

fn names(list: &str, value: &str, form: &str) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(empty(form, value));
    }
    Ok(names)
}

fn empty(form: &str, value: &str) -> Failure {
    unexpected(form, &format!("Got an empty trait in: {value}"))
}

fn unexpected(form: &str, got: &str) -> Failure {
    invalid(format!("Expected 'required' parameter value of the form: {form}. {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{CANDIDATES_REQUIRED, MAX};

    fn traits(values: &[&str], version: Version) -> Result<Traits, String> {
        parse(values.iter().copied(), version).map_err(|failure| failure.message)
    }

    #[test]
    fn all_conditions_count_from_1_39() {
        let found = traits(&["A, !B,!!C", "in:D,E"], MAX).expect("traits");
        assert_eq!(found.required, [vec!["A".to_owned()], vec!["D".to_owned(), "E".to_owned()]]);
        assert_eq!(found.forbidden, ["B", "C"]);
        let found = traits(&["A", "B"], FORBIDDEN_TRAITS).expect("traits");
        assert_eq!(found.required, [vec!["B".to_owned()]]);
    }

    #[test]
    fn old_versions_refuse_new_forms() {
        assert_eq!(
            traits(&["!T1"], CANDIDATES_REQUIRED),
            Err("Invalid query string parameters: Expected 'required' parameter value of the form: \
                 HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: !T1"
                .into())
        );
        assert_eq!(
            traits(&["in:T1"], FORBIDDEN_TRAITS),
            Err("Invalid query string parameters: The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since \
                 microversion 1.39. Got: in:T1"
                .into())
        );
    }

    #[test]
    fn empty_names_and_forbidden_ones_among_alternatives_are_refused() {
        let told = traits(&["A,,B"], MAX).expect_err("an empty name");
        assert!(
            told.ends_with(
                "of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC. Got an empty trait in: A,,B"
            ),
            "{told}"
        );
        let told = traits(&["in:A,"], MAX).expect_err("an empty name");
        assert!(
            told.contains(
                "of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: in:A,"
            ),
            "{told}"
        );
        let told = traits(&["in:A,!B"], MAX).expect_err("a forbidden name");
        assert!(told.ends_with("does not support forbidden traits. Got: in:A,!B"), "{told}");
    }

    #[test]
    fn conflicts_are_what_cannot_be_satisfied() {
        let found = traits(&["B,!B,!C", "in:C,A", "in:B,C"], MAX).expect("traits");
        assert_eq!(found.conflicts(), ["B", "C"]);
    }
}
