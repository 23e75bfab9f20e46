//! The filters of `GET /resource_providers`.

use super::Query;
use super::member_of::{self, Aggregates};
use super::required::{self, Traits};
use super::resources::{self, Amount};
use crate::http::failure::Failure;
use crate::http::microversion::Version;
use crate::schema;

/// What the listed providers have in common. All filters must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Its name.
    pub name: Option<String>,
    /// Its uuid.
    pub uuid: Option<String>,
    /// Any provider of its tree.
    pub in_tree: Option<String>,
    /// Traits of the provider itself.
    pub traits: Traits,
    /// Aggregates of the provider itself.
    pub aggregates: Aggregates,
    /// Amounts for which it has room, all by itself.
    pub resources: Vec<Amount>,
}

/// Reads the filters.
///
/// # Errors
/// 400.
pub fn parse(text: &str, version: Version) -> Result<Filters, Failure> {
    let query = Query::parse(text)?;
    schema::check_query(&query.to_object(), schema::providers::LIST.at(version))?;
    let owned = |name: &str| query.last(name).map(str::to_owned);
    let member_of: Vec<&str> = query.all("member_of").collect();
    Ok(Filters {
        name: owned("name").filter(|name| !name.is_empty()),
        uuid: owned("uuid"),
        in_tree: owned("in_tree"),
        aggregates: member_of::parse(&member_of, "member_of", version)?,
        traits: required::parse(query.all("required"), version)?,
        resources: query.last("resources").map(resources::parse).transpose()?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{MAX, MIN};

    #[test]
    fn filters_come_with_their_versions() {
        let told = parse("in_tree=10000000-0000-4000-8000-000000000000", MIN)
            .expect_err("too old")
            .message;
        assert!(
            told.contains("Additional properties are not allowed ('in_tree' was unexpected)"),
            "{told}"
        );
        let told = parse("uuid=foo", MAX).expect_err("no uuid").message;
        assert!(
            told.starts_with("Invalid query string parameters: 'foo' is not a 'uuid'"),
            "{told}"
        );
    }

    #[test]
    fn an_empty_name_filters_nothing() {
        assert_eq!(parse("name=", MIN).expect("filters"), Filters::default());
        assert_eq!(parse("", MIN).expect("filters"), Filters::default());
    }
}
