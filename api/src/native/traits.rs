//! `GET /ledger/v1/traits`: all traits, and how many providers have each.

use serde::Serialize;

use super::media::Form;
use super::page::{self, Page};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;

#[derive(Serialize)]
struct Body<'a> {
    sequence: u64,
    next_after: Option<&'a str>,
    traits: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    standard: bool,
    providers: u32,
    created_at: String,
}

/// `GET /ledger/v1/traits`: in the order of names; `after` (a name) and `limit`.
///
/// # Errors
/// 400.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    let mut named: Page<String> = Page::default();
    for (name, value) in query.pairs() {
        if !named.take(name, value)? {
            return Err(page::no_filter(name));
        }
    }
    let view = app.view_for(request);
    let wanted = Page { after: named.after.as_deref(), limit: named.limit };
    let all = view.traits().iter().map(|(_, name, entry)| (&**name, entry));
    let (rows, next_after) = page::cut(&wanted, all);
    let traits = rows.into_iter().map(|(name, entry)| Row {
        name,
        standard: entry.standard,
        providers: entry.users,
        created_at: entry.created_at.to_string(),
    });
    let body = Body { sequence: view.sequence(), next_after, traits: traits.collect() };
    Form::of_answer(&request.headers).reply(&body)
}
