//! From a method and a path to what they ask for.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use super::failure::Failure;
use super::microversion::Version;
use super::operation::Operation;
use super::request::Params;
use super::routes::{ROUTES, Route};

/// Which of the headers about bodies an operation looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Answers with JSON, if that is acceptable (406).
    Answers,
    /// Takes JSON (415).
    Takes,
    /// Takes JSON before a version, and no body from then on.
    TakesBefore(Version),
    /// Neither is looked at.
    Any,
}

/// One method of a path.
#[derive(Debug)]
pub struct Endpoint {
    /// The method.
    pub method: Method,
    /// What it does.
    pub operation: Operation,
    /// The first version that has it.
    pub since: Version,
    /// Which headers matter.
    pub media: Media,
    /// The policy rule, none if everybody may.
    pub rule: Option<&'static str>,
}

/// Finds what a request asks for, whatever its version.
///
/// # Errors
/// 404 for an unknown path, 405 for a method that the path has at no version (`HEAD` and
/// `OPTIONS` included). Slashes at the end or doubled lead nowhere.
pub fn find(method: &Method, path: &str) -> Result<(&'static Endpoint, Params), Failure> {
    let path: Cow<'_, str> = percent_decode_str(path).decode_utf8_lossy();
    let parts: SmallVec<[&str; 6]> = path.strip_prefix('/').unwrap_or(&path).split('/').collect();
    let route = ROUTES
        .iter()
        .find(|route| matches(route.path, &parts))
        .ok_or_else(|| Failure::not_found("").let_through())?;
    match route.endpoints.iter().find(|endpoint| endpoint.method == *method) {
        Some(endpoint) => Ok((endpoint, params(route.path, &parts))),
        None => Err(Failure::method_not_allowed(method, Some(allow(route)))),
    }
}

/// Everything that can be read: the operation, and the parts of its path.
pub fn readable() -> impl Iterator<Item = (Operation, &'static [&'static str])> {
    ROUTES.iter().flat_map(|route| {
        let gets = route.endpoints.iter().filter(|endpoint| endpoint.method == Method::GET);
        gets.map(|endpoint| (endpoint.operation, route.path))
    })
}

/// Everything that can be written: the operation, its method, and the parts of its path.
pub fn writable() -> impl Iterator<Item = (Operation, &'static Method, &'static [&'static str])> {
    ROUTES.iter().flat_map(|route| {
        let writes = route.endpoints.iter().filter(|endpoint| endpoint.method != Method::GET);
        writes.map(|endpoint| (endpoint.operation, &endpoint.method, route.path))
    })
}

fn matches(pattern: &[&str], parts: &[&str]) -> bool {
    let fits =
        |(pattern, part): (&&str, &&str)| pattern == part || (*pattern == "*" && !part.is_empty());
    pattern.len() == parts.len() && pattern.iter().zip(parts).all(fits)
}

fn params(pattern: &[&str], parts: &[&str]) -> Params {
    let pairs = pattern.iter().zip(parts);
    pairs.filter(|(pattern, _)| **pattern == "*").map(|(_, part)| (*part).to_owned()).collect()
}

fn allow(route: &Route) -> String {
    let methods: Vec<&str> =
        route.endpoints.iter().map(|endpoint| endpoint.method.as_str()).collect();
    methods.join(", ")
}

impl Endpoint {
    /// Checks the version against the endpoint's.
    ///
    /// # Errors
    /// 404 without an explanation. Deleting all inventories is a 405, without that and without `allow`.
    pub fn check_version(&self, version: Version) -> Result<(), Failure> {
        if version >= self.since {
            return Ok(());
        }
        if self.operation == Operation::DeleteInventories {
            let mut failure = Failure::method_not_allowed(&self.method, None);
            failure.message.clear();
            return Err(failure);
        }
        Err(Failure::not_found(""))
    }

    /// Whether the headers about bodies are looked at before the version, as Placement does in
    /// one place.
    #[must_use]
    pub fn media_first(&self) -> bool {
        self.operation == Operation::ReplaceAggregates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::MIN;
    use crate::http::operation::Operation as Op;
    use http::StatusCode;

    const GET: Method = Method::GET;
    const PUT: Method = Method::PUT;
    const DELETE: Method = Method::DELETE;

    fn operation(method: Method, path: &str) -> Result<Operation, StatusCode> {
        find(&method, path)
            .map(|(endpoint, _)| endpoint.operation)
            .map_err(|failure| failure.status)
    }

    #[test]
    fn paths_lead_to_operations() {
        assert_eq!(operation(GET, "/"), Ok(Op::ShowRoot));
        assert_eq!(operation(GET, ""), Ok(Op::ShowRoot));
        assert_eq!(operation(PUT, "/allocations/x"), Ok(Op::ReplaceAllocations));
        assert_eq!(
            operation(DELETE, "/resource_providers/x/inventories/VCPU"),
            Ok(Op::DeleteInventory)
        );
    }

    #[test]
    fn stray_slashes_lead_nowhere() {
        for path in [
            "/traits/",
            "//traits",
            "/resource_providers//inventories",
            "/nothing",
            "/resource_providers/x/y",
        ] {
            assert_eq!(operation(GET, path), Err(StatusCode::NOT_FOUND), "{path}");
        }
    }

    #[test]
    fn params_are_decoded() {
        let (_, params) =
            find(&GET, "/resource_providers/a%20b/inventories/%E2%98%83").expect("a route");
        assert_eq!(params.as_slice(), ["a b", "☃"]);
    }

    #[test]
    fn other_methods_are_told_which_there_are() {
        for method in [DELETE, Method::HEAD, Method::OPTIONS] {
            let failure = find(&method, "/resource_providers").expect_err("no such method");
            assert_eq!(failure.status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(failure.allow.as_deref(), Some("GET, POST"));
        }
    }

    #[test]
    fn old_versions_do_not_have_new_routes() {
        let (traits, _) = find(&GET, "/traits").expect("a route");
        let refusal = traits.check_version(MIN).expect_err("too old");
        assert_eq!((refusal.status, refusal.message.as_str()), (StatusCode::NOT_FOUND, ""));
        let (delete, _) = find(&DELETE, "/resource_providers/x/inventories").expect("a route");
        let refusal = delete.check_version(MIN).expect_err("too old");
        assert_eq!((refusal.status, refusal.allow), (StatusCode::METHOD_NOT_ALLOWED, None));
    }

    #[test]
    fn every_rule_has_a_default() {
        let policy = crate::http::policy::Policy::load(None, true).expect("the defaults parse");
        let admin = crate::http::auth::Identity {
            user: String::new(),
            project: String::new(),
            roles: vec!["service".to_owned()],
            scope: crate::http::auth::Scope::Project,
        };
        for rule in
            ROUTES.iter().flat_map(|route| route.endpoints).filter_map(|endpoint| endpoint.rule)
        {
            assert!(policy.check(rule, &admin, None).is_ok(), "{rule}");
        }
    }
}
