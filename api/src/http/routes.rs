//! The routes: a table of paths and what each method does there, from which microversion on,
//! under which policy rule.

use http::Method;

use super::microversion::{
    self as mv, CANDIDATES, CLASS_PUT_ENSURES, DELETE_INVENTORIES, MIN, POST_ALLOCATIONS,
    PROJECT_USAGES, PROVIDER_AGGREGATES, RESOURCE_CLASSES, TRAITS, Version,
};
use super::operation::Operation;
use super::router::{Endpoint, Media};

const fn on(
    method: Method,
    operation: Operation,
    since: Version,
    media: Media,
    rule: &'static str,
) -> Endpoint {
    Endpoint { method, operation, since, media, rule: Some(rule) }
}

/// A path and what can be done there.
pub(super) struct Route {
    /// The parts of the path; `*` stands for any.
    pub(super) path: &'static [&'static str],
    /// By method.
    pub(super) endpoints: &'static [Endpoint],
}

use Media::{Answers, Any, Takes, TakesBefore};
use Operation as Op;

const GET: Method = Method::GET;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;

pub(super) static ROUTES: &[Route] = &[
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
            on(DELETE, Op::DeleteProvider, MIN, Any, "placement:resource_providers:delete"),
            on(PUT, Op::UpdateProvider, MIN, Takes, "placement:resource_providers:update"),
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
        path: &["ledger", "v1", "events", "stream"],
        endpoints: &[on(GET, Op::LedgerEventStream, MIN, Any, "ledger:events")],
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
    Route {
        path: &["ledger", "v1", "explain", "candidates"],
        endpoints: &[on(GET, Op::LedgerExplainCandidates, MIN, Any, "ledger:explain")],
    },
    Route {
        path: &["ledger", "v1", "fits"],
        endpoints: &[on(GET, Op::LedgerFits, MIN, Any, "ledger:explain")],
    },
    Route {
        path: &["ledger", "v1", "consumers"],
        endpoints: &[on(GET, Op::LedgerConsumers, MIN, Any, "ledger:lists")],
    },
    Route {
        path: &["ledger", "v1", "consumers", "*"],
        endpoints: &[on(GET, Op::LedgerConsumer, MIN, Any, "ledger:lists")],
    },
    Route {
        path: &["ledger", "v1", "providers"],
        endpoints: &[on(GET, Op::LedgerProviders, MIN, Any, "ledger:lists")],
    },
    Route {
        path: &["ledger", "v1", "traits"],
        endpoints: &[on(GET, Op::LedgerTraits, MIN, Any, "ledger:lists")],
    },
    Route {
        path: &["ledger", "v1", "usages"],
        endpoints: &[on(GET, Op::LedgerUsages, MIN, Any, "ledger:lists")],
    },
    Route {
        path: &["ledger", "v1", "orphans"],
        endpoints: &[on(GET, Op::LedgerOrphans, MIN, Any, "ledger:orphans")],
    },
    Route {
        path: &["ledger", "v1", "living"],
        endpoints: &[on(POST, Op::LedgerLiving, MIN, Any, "ledger:orphans")],
    },
];
