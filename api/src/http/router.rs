//! The routes: a table of paths and what each method does there, from which microversion on,
//! under which policy rule.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use super::failure::Failure;
use super::microversion::{
    self as mv, CANDIDATES, CLASS_PUT_ENSURES, DELETE_INVENTORIES, MIN, POST_ALLOCATIONS,
    PROJECT_USAGES, PROVIDER_AGGREGATES, RESOURCE_CLASSES, TRAITS, Version,
};
use super::request::Params;

/// Everything that a request can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named for its method and its path")]
pub enum Operation {
    ShowRoot,
    ListProviders,
    CreateProvider,
    ShowProvider,
    UpdateProvider,
    DeleteProvider,
    ListInventories,
    CreateInventory,
    ReplaceInventories,
    DeleteInventories,
    ShowInventory,
    UpdateInventory,
    DeleteInventory,
    ShowProviderUsages,
    ListAggregates,
    ReplaceAggregates,
    ListProviderAllocations,
    ListProviderTraits,
    ReplaceProviderTraits,
    DeleteProviderTraits,
    ListTraits,
    ShowTrait,
    EnsureTrait,
    DeleteTrait,
    ListClasses,
    CreateClass,
    ShowClass,
    PutClass,
    DeleteClass,
    ManageAllocations,
    ListAllocations,
    ReplaceAllocations,
    DeleteAllocations,
    ListCandidates,
    ShowUsages,
    Reshape,
    LedgerCommands,
    LedgerEvents,
    LedgerMoves,
    LedgerMove,
    LedgerConsumerHistory,
    LedgerProviderHistory,
}

impl Operation {
    /// The name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ShowRoot => "show_root",
            Self::ListProviders => "list_providers",
            Self::CreateProvider => "create_provider",
            Self::ShowProvider => "show_provider",
            Self::UpdateProvider => "update_provider",
            Self::DeleteProvider => "delete_provider",
            Self::ListInventories => "list_inventories",
            Self::CreateInventory => "create_inventory",
            Self::ReplaceInventories => "replace_inventories",
            Self::DeleteInventories => "delete_inventories",
            Self::ShowInventory => "show_inventory",
            Self::UpdateInventory => "update_inventory",
            Self::DeleteInventory => "delete_inventory",
            Self::ShowProviderUsages => "show_provider_usages",
            Self::ListAggregates => "list_aggregates",
            Self::ReplaceAggregates => "replace_aggregates",
            Self::ListProviderAllocations => "list_provider_allocations",
            Self::ListProviderTraits => "list_provider_traits",
            Self::ReplaceProviderTraits => "replace_provider_traits",
            Self::DeleteProviderTraits => "delete_provider_traits",
            Self::ListTraits => "list_traits",
            Self::ShowTrait => "show_trait",
            Self::EnsureTrait => "ensure_trait",
            Self::DeleteTrait => "delete_trait",
            Self::ListClasses => "list_classes",
            Self::CreateClass => "create_class",
            Self::ShowClass => "show_class",
            Self::PutClass => "put_class",
            Self::DeleteClass => "delete_class",
            Self::ManageAllocations => "manage_allocations",
            Self::ListAllocations => "list_allocations",
            Self::ReplaceAllocations => "replace_allocations",
            Self::DeleteAllocations => "delete_allocations",
            Self::ListCandidates => "list_candidates",
            Self::ShowUsages => "show_usages",
            Self::Reshape => "reshape",
            Self::LedgerCommands => "ledger_commands",
            Self::LedgerEvents => "ledger_events",
            Self::LedgerMoves => "ledger_moves",
            Self::LedgerMove => "ledger_move",
            Self::LedgerConsumerHistory => "ledger_consumer_history",
            Self::LedgerProviderHistory => "ledger_provider_history",
        }
    }
}

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

const fn on(
    method: Method,
    operation: Operation,
    since: Version,
    media: Media,
    rule: &'static str,
) -> Endpoint {
    Endpoint { method, operation, since, media, rule: Some(rule) }
}

struct Route {
    /// The parts of the path; `*` stands for any.
    path: &'static [&'static str],
    endpoints: &'static [Endpoint],
}

use Media::{Answers, Any, Takes, TakesBefore};
use Operation as Op;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

static ROUTES: &[Route] = &[
    Route {
        path: &[""],
        endpoints: &[Endpoint {
            method: GET,
            operation: Op::ShowRoot,
            since: MIN,
            media: Any,
            rule: None,
        }],
    },
    Route {
        path: &["allocations", "*"],
        endpoints: &[
            on(GET, Op::ListAllocations, MIN, Answers, "placement:allocations:list"),
            on(PUT, Op::ReplaceAllocations, MIN, Takes, "placement:allocations:update"),
            on(DELETE, Op::DeleteAllocations, MIN, Any, "placement:allocations:delete"),
        ],
    },
    Route {
        path: &["allocations"],
        endpoints: &[on(
            POST,
            Op::ManageAllocations,
            POST_ALLOCATIONS,
            Takes,
            "placement:allocations:manage",
        )],
    },
    Route {
        path: &["allocation_candidates"],
        endpoints: &[on(
            GET,
            Op::ListCandidates,
            CANDIDATES,
            Answers,
            "placement:allocation_candidates:list",
        )],
    },
    Route {
        path: &["resource_providers"],
        endpoints: &[
            on(GET, Op::ListProviders, MIN, Answers, "placement:resource_providers:list"),
            on(POST, Op::CreateProvider, MIN, Takes, "placement:resource_providers:create"),
        ],
    },
    Route {
        path: &["resource_providers", "*"],
        endpoints: &[
            on(GET, Op::ShowProvider, MIN, Answers, "placement:resource_providers:show"),
            on(PUT, Op::UpdateProvider, MIN, Takes, "placement:resource_providers:update"),
            on(DELETE, Op::DeleteProvider, MIN, Any, "placement:resource_providers:delete"),
        ],
    },
    Route {
        path: &["resource_providers", "*", "inventories"],
        endpoints: &[
            on(
                GET,
                Op::ListInventories,
                MIN,
                Answers,
                "placement:resource_providers:inventories:list",
            ),
            on(
                POST,
                Op::CreateInventory,
                MIN,
                Takes,
                "placement:resource_providers:inventories:create",
            ),
            on(
                PUT,
                Op::ReplaceInventories,
                MIN,
                Takes,
                "placement:resource_providers:inventories:update",
            ),
            on(
                DELETE,
                Op::DeleteInventories,
                DELETE_INVENTORIES,
                Any,
                "placement:resource_providers:inventories:delete",
            ),
        ],
    },
    Route {
        path: &["resource_providers", "*", "inventories", "*"],
        endpoints: &[
            on(
                GET,
                Op::ShowInventory,
                MIN,
                Answers,
                "placement:resource_providers:inventories:show",
            ),
            on(
                PUT,
                Op::UpdateInventory,
                MIN,
                Takes,
                "placement:resource_providers:inventories:update",
            ),
            on(
                DELETE,
                Op::DeleteInventory,
                MIN,
                Any,
                "placement:resource_providers:inventories:delete",
            ),
        ],
    },
    Route {
        path: &["resource_providers", "*", "usages"],
        endpoints: &[on(
            GET,
            Op::ShowProviderUsages,
            MIN,
            Answers,
            "placement:resource_providers:usages",
        )],
    },
    Route {
        path: &["resource_providers", "*", "aggregates"],
        endpoints: &[
            on(
                GET,
                Op::ListAggregates,
                PROVIDER_AGGREGATES,
                Answers,
                "placement:resource_providers:aggregates:list",
            ),
            on(
                PUT,
                Op::ReplaceAggregates,
                PROVIDER_AGGREGATES,
                Takes,
                "placement:resource_providers:aggregates:update",
            ),
        ],
    },
    Route {
        path: &["resource_providers", "*", "allocations"],
        endpoints: &[on(
            GET,
            Op::ListProviderAllocations,
            MIN,
            Answers,
            "placement:resource_providers:allocations:list",
        )],
    },
    Route {
        path: &["resource_providers", "*", "traits"],
        endpoints: &[
            on(
                GET,
                Op::ListProviderTraits,
                TRAITS,
                Answers,
                "placement:resource_providers:traits:list",
            ),
            on(
                PUT,
                Op::ReplaceProviderTraits,
                TRAITS,
                Takes,
                "placement:resource_providers:traits:update",
            ),
            on(
                DELETE,
                Op::DeleteProviderTraits,
                TRAITS,
                Any,
                "placement:resource_providers:traits:delete",
            ),
        ],
    },
    Route {
        path: &["traits"],
        endpoints: &[on(GET, Op::ListTraits, TRAITS, Answers, "placement:traits:list")],
    },
    Route {
        path: &["traits", "*"],
        endpoints: &[
            on(GET, Op::ShowTrait, TRAITS, Any, "placement:traits:show"),
            on(PUT, Op::EnsureTrait, TRAITS, Any, "placement:traits:update"),
            on(DELETE, Op::DeleteTrait, TRAITS, Any, "placement:traits:delete"),
        ],
    },
    Route {
        path: &["resource_classes"],
        endpoints: &[
            on(GET, Op::ListClasses, RESOURCE_CLASSES, Answers, "placement:resource_classes:list"),
            on(POST, Op::CreateClass, RESOURCE_CLASSES, Takes, "placement:resource_classes:create"),
        ],
    },
    Route {
        path: &["resource_classes", "*"],
        endpoints: &[
            on(GET, Op::ShowClass, RESOURCE_CLASSES, Answers, "placement:resource_classes:show"),
            on(
                PUT,
                Op::PutClass,
                RESOURCE_CLASSES,
                TakesBefore(CLASS_PUT_ENSURES),
                "placement:resource_classes:update",
            ),
            on(DELETE, Op::DeleteClass, RESOURCE_CLASSES, Any, "placement:resource_classes:delete"),
        ],
    },
    Route {
        path: &["usages"],
        endpoints: &[on(GET, Op::ShowUsages, PROJECT_USAGES, Answers, "placement:usages")],
    },
    Route {
        path: &["reshaper"],
        endpoints: &[on(POST, Op::Reshape, mv::RESHAPER, Takes, "placement:reshaper:reshape")],
    },
    Route {
        path: &["ledger", "v1", "commands"],
        endpoints: &[on(POST, Op::LedgerCommands, MIN, Any, "ledger:commands")],
    },
    Route {
        path: &["ledger", "v1", "events"],
        endpoints: &[on(GET, Op::LedgerEvents, MIN, Any, "ledger:events")],
    },
    Route {
        path: &["ledger", "v1", "moves"],
        endpoints: &[on(GET, Op::LedgerMoves, MIN, Any, "ledger:moves")],
    },
    Route {
        path: &["ledger", "v1", "moves", "*"],
        endpoints: &[on(GET, Op::LedgerMove, MIN, Any, "ledger:moves")],
    },
    Route {
        path: &["ledger", "v1", "consumers", "*", "history"],
        endpoints: &[on(GET, Op::LedgerConsumerHistory, MIN, Any, "ledger:history")],
    },
    Route {
        path: &["ledger", "v1", "providers", "*", "history"],
        endpoints: &[on(GET, Op::LedgerProviderHistory, MIN, Any, "ledger:history")],
    },
];

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
        .ok_or_else(|| Failure::not_found(""))?;
    match route.endpoints.iter().find(|endpoint| endpoint.method == *method) {
        Some(endpoint) => Ok((endpoint, params(route.path, &parts))),
        None => Err(Failure::method_not_allowed(method, Some(allow(route)))),
    }
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
    /// 404 without an explanation. Deleting all inventories is a 405, without `allow`.
    pub fn check_version(&self, version: Version) -> Result<(), Failure> {
        if version >= self.since {
            return Ok(());
        }
        if self.operation == Operation::DeleteInventories {
            return Err(Failure::method_not_allowed(&self.method, None));
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
    use http::StatusCode;

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
