//! `GET /ledger/v1/providers`: all providers with inventories, usages, traits and aggregates, in
//! one answer each page, where Placement needs several requests for each provider.

use std::collections::BTreeMap;

use ledger::amounts::Inventory;
use ledger::ids::ProviderUuid;
use ledger::state::{Provider, ProviderInventory, State};
use projector::usage::HeldByMoves;
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
    next_after: Option<ProviderUuid>,
    providers: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    uuid: ProviderUuid,
    name: &'a str,
    generation: u32,
    parent: Option<ProviderUuid>,
    root: Option<ProviderUuid>,
    created_at: String,
    updated_at: Option<String>,
    inventories: BTreeMap<&'a str, Figures>,
    retiring: bool,
    traits: Vec<&'a str>,
    aggregates: Vec<&'a str>,
}

/// One class of a provider, in the class's unit.
#[derive(Serialize)]
struct Figures {
    #[serde(flatten)]
    inventory: Inventory,
    capacity: i64,
    held: u64,
    /// The part of `held` that goes once all moves in flight are confirmed.
    held_by_moves: u64,
    free: i64,
    /// It goes once nobody holds anything of it.
    retiring: bool,
}

/// `GET /ledger/v1/providers`: in the order of uuids; `after` (a uuid) and `limit`. All rows of a
/// page are true at its sequence.
///
/// # Errors
/// 400.
pub async fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    let mut page: Page<ProviderUuid> = Page::default();
    for (name, value) in query.pairs() {
        if !page.take(name, value)? {
            return Err(page::no_filter(name));
        }
    }
    let form = Form::of_answer(&request.headers);
    app.long_read(|| form.reply(&body(&app.view_for(request), &page))).await
}

fn body<'a>(view: &'a State, page: &Page<ProviderUuid>) -> Body<'a> {
    let (rows, next_after) = page::cut(page, view.providers().map(|(_, row)| (row.uuid, row)));
    let by_moves = HeldByMoves::of(view);
    let providers = rows.into_iter().map(|(_, provider)| row(view, &by_moves, provider)).collect();
    Body { sequence: view.sequence(), next_after, providers }
}

fn row<'a>(view: &'a State, by_moves: &HeldByMoves, provider: &'a Provider) -> Row<'a> {
    let uuid = |id| view.provider_row(id).map(|row| row.uuid);
    let inventories = provider.inventories.iter().map(|row| {
        let held_by_moves = by_moves.amount(provider.uuid, row.class);
        (&**view.classes().name(row.class), figures(row, held_by_moves))
    });
    Row {
        uuid: provider.uuid,
        name: &provider.name,
        generation: provider.generation,
        parent: provider.parent.and_then(uuid),
        root: uuid(provider.root),
        created_at: provider.created_at.to_string(),
        updated_at: provider.updated_at.map(|time| time.to_string()),
        inventories: inventories.collect(),
        retiring: provider.retiring,
        traits: provider.traits.iter().map(|id| &**view.traits().name(*id)).collect(),
        aggregates: provider.aggregates.iter().map(|id| &**view.aggregates().name(*id)).collect(),
    }
}

fn figures(row: &ProviderInventory, held_by_moves: u64) -> Figures {
    Figures {
        inventory: row.inventory,
        capacity: row.inventory.capacity_shown(),
        held: row.held,
        held_by_moves,
        free: row.free(),
        retiring: row.retiring,
    }
}
