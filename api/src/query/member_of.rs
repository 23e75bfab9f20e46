//! `member_of=AGG`, `in:AGG1,AGG2`, `!AGG` and `!in:AGG1,AGG2`.

use super::invalid;
use crate::http::failure::Failure;
use crate::http::microversion::{FORBIDDEN_AGGREGATES, REPEATED_MEMBER_OF, Version};
use crate::schema::is_lenient_uuid;

/// In which aggregates a provider must and must not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregates {
    /// In one of each list.
    pub required: Vec<Vec<String>>,
    /// In none of these.
    pub forbidden: Vec<String>,
}

impl Aggregates {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.forbidden.is_empty()
    }
}

/// Reads all values of a `member_of` parameter; `key` is its name, with the suffix of its group.
///
/// # Errors
/// 400.
pub fn parse(values: &[&str], key: &str, version: Version) -> Result<Aggregates, Failure> {
    if values.len() > 1 && version < REPEATED_MEMBER_OF {
        return Err(Failure::bad_request(format!("Multiple {key} parameters are not supported")));
    }
    let mut aggregates = Aggregates::default();
    for value in values {
        read(value, version, &mut aggregates)?;
    }
    Ok(aggregates)
}

fn read(value: &str, version: Version, aggregates: &mut Aggregates) -> Result<(), Failure> {
    let (forbidden, rest) = match value.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let uuids: Vec<String> = match rest.strip_prefix("in:") {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None if rest.contains(',') => {
            return Err(Failure::bad_request(format!(
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid \
                 microversion. Got: {value}"
            )));
        }
        None => vec![rest.to_owned()],
    };
    if let Some(bad) = uuids.iter().find(|uuid| !is_lenient_uuid(uuid)) {
        return Err(invalid(format!(
            "Expected 'member_of' parameter to contain valid UUID(s). Got: {bad}"
        )));
    }
    if forbidden && version < FORBIDDEN_AGGREGATES {
        return Err(Failure::bad_request(
            "Forbidden member_of parameters are not supported in the specified microversion",
        ));
    }
    if forbidden {
        aggregates.forbidden.extend(uuids);
    } else {
        aggregates.required.push(uuids);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{CANDIDATES_MEMBER_OF, MAX};

    const A: &str = "10000000-0000-4000-8000-000000000000";
    const B: &str = "20000000-0000-4000-8000-000000000000";

    fn told(values: &[&str], version: Version) -> String {
        parse(values, "member_of1", version).expect_err("a refusal").message
    }

    #[test]
    fn all_forms_are_read() {
        let values = [A.to_owned(), format!("in:{A},{B}"), format!("!{A}"), format!("!in:{B}")];
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let found = parse(&values, "member_of", MAX).expect("aggregates");
        assert_eq!(found.required, [vec![A.to_owned()], vec![A.to_owned(), B.to_owned()]]);
        assert_eq!(found.forbidden, [A, B]);
    }

    #[test]
    fn old_versions_refuse_new_forms() {
        assert_eq!(
            told(&[A, B], CANDIDATES_MEMBER_OF),
            "Multiple member_of1 parameters are not supported"
        );
        assert_eq!(
            told(&[&format!("!{A}")], REPEATED_MEMBER_OF),
            "Forbidden member_of parameters are not supported in the specified microversion"
        );
    }

    #[test]
    fn lists_need_a_prefix_and_uuids() {
        let pair = format!("{A},{B}");
        assert_eq!(
            told(&[&pair], MAX),
            format!(
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid \
                 microversion. Got: {pair}"
            )
        );
        for (value, bad) in [("foo", "foo"), ("", ""), ("in:x", "x"), ("!in:!x", "!x")] {
            let expected = format!(
                "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: {bad}"
            );
            assert_eq!(told(&[value], MAX), expected);
        }
    }
}
