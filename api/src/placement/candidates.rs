//! `GET /allocation_candidates`.

use crate::app::App;
use crate::failed_searches;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::{NESTED_CANDIDATES, Version};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::native::explain;
use crate::query;
use crate::query::candidates::{Candidates, Group};
use crate::query::required::Traits;
use http::{HeaderName, HeaderValue};
use ledger::search::Terms;
use projector::candidates::{
    self as engine, CandidateIndex, GroupPolicy, HostOrder, NameError, Query, RootTraits,
    TraitCondition,
};

use std::borrow::Cow;

use super::candidates_body;

/// Sent, as `true`, if there may be more candidates than a search looks for without a `limit`, or than
/// `--max-allocation-candidates` lets through.
const CUT_OFF: HeaderName = HeaderName::from_static("ledger-candidates-cut-off");

/// The handler.
///
/// # Errors
/// 400 for a query that cannot be understood or names what does not exist.
pub async fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = asked(&request.query, request.version)?;
    let usage = if explain::is_wanted(request)? { Some(app.usages(request).await?) } else { None };
    let generation = app.candidates.generation();
    let search = |index: &CandidateIndex| {
        let terms = Terms::of_request(index.state(), request.global_id.as_deref());
        let gives_back = !terms.given_back.is_empty();
        let without = index;
        let index = &match gives_back {
            true => Cow::Owned(index.giving_back(&terms.given_back)),
            false => Cow::Borrowed(index),
        };
        let order = HostOrder::new(terms.first, terms.last, terms.ignored);
        let found = engine::search_giving_back(without, index, &query, &order, generation)
            .map_err(|error| unknown(&error))?;
        if found.is_empty() && request.past.is_none() {
            failed_searches::note(app, request, index, &query);
        }
        // Texts are kept of how providers are for everybody, not of how they were.
        let kept = request.past.is_none() && !gives_back;
        let texts = kept.then(|| app.summaries.of(index.state()));
        let texts = texts.as_deref();
        let body = candidates_body::write(index, &found, &query, request.version, texts);
        let body = match &usage {
            None => body,
            Some(usage) => candidates_body::with_member(
                body,
                explain::MEMBER,
                &explain::explanation(index, usage, &query)?,
            )?,
        };
        Ok((body, found.complete))
    };
    let (body, complete) = app.search(request, search).await?;
    let reply = Reply::bytes(body).modified(last_modified::now());
    Ok(if complete { reply } else { reply.header(CUT_OFF, HeaderValue::from_static("true")) })
}

/// What a query string asks of the engine at a microversion.
///
/// # Errors
/// 400.
pub fn asked(text: &str, version: Version) -> Result<Query, Failure> {
    let parsed = query::candidates::parse(text, version)?;
    Ok(to_engine(parsed, version >= NESTED_CANDIDATES))
}

/// A name that does not exist, in Placement's words.
#[must_use]
pub fn unknown(error: &NameError) -> Failure {
    Failure::bad_request(match error {
        NameError::UnknownClass(_) => {
            format!("Invalid resource class in resources parameter: {error}")
        }
        NameError::UnknownTraits(_) => error.to_string(),
    })
}

fn to_engine(parsed: Candidates, nested_allowed: bool) -> Query {
    Query {
        groups: parsed.groups.into_iter().map(group).collect(),
        group_policy: if parsed.isolate { GroupPolicy::Isolate } else { GroupPolicy::None },
        same_subtree: parsed.same_subtrees,
        root_required: parsed.root_required.map(root).unwrap_or_default(),
        limit: parsed.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        nested_allowed,
    }
}

fn group(group: Group) -> engine::Group {
    let amount = |(class, amount): (String, i64)| (class, amount.unsigned_abs());
    engine::Group {
        suffix: group.suffix,
        resources: group.resources.into_iter().map(amount).collect(),
        required: group.traits.required.into_iter().map(condition).collect(),
        forbidden: group.traits.forbidden,
        member_of: group.aggregates.required,
        forbidden_aggregates: group.aggregates.forbidden,
        in_tree: group.in_tree,
    }
}

fn condition(names: Vec<String>) -> TraitCondition {
    if names.len() == 1 { TraitCondition::AllOf(names) } else { TraitCondition::AnyOf(names) }
}

fn root(traits: Traits) -> RootTraits {
    RootTraits {
        required: traits.required.into_iter().flatten().collect(),
        forbidden: traits.forbidden,
    }
}
