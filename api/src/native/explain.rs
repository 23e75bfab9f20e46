//! `GET /ledger/v1/explain/candidates`: why a search for candidates finds what it finds. The same
//! object comes with `GET /allocation_candidates` for who asks by the header `Ledger-Explain`.

use ledger::ids::ProviderUuid;
use ledger::state::State;
use projector::UsageView;
use projector::candidates::explain::{ClassTotals, GroupExplanation, NearMiss, StepLeft, explain};
use projector::candidates::{CandidateIndex, Query};
use serde_json::{Value, json};

use super::in_flight::InFlight;
use super::media::Form;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::microversion::{CANDIDATES, MAX, Version};
use crate::http::reply::{Reply, VERSION_HEADER};
use crate::http::request::Request;
use crate::placement::candidates;

/// The member of Placement's answer that has the explanation.
pub const MEMBER: &str = "ledger_explanation";

/// The header that asks for it.
const HEADER: &str = "ledger-explain";

/// `GET /ledger/v1/explain/candidates`.
///
/// # Errors
/// 400 as `GET /allocation_candidates` answers it; 503 if a view does not come in time.
pub async fn candidates(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = asked(request)?;
    let usage = app.usages(request).await?;
    let told = app.search(request, |index| explanation(index, &usage, &query)).await?;
    Form::of_answer(&request.headers).reply(&told)
}

/// The candidates query of a request to one of the ledger's own routes: in the form of the
/// microversion that the client names, or else of the newest.
///
/// # Errors
/// 400.
pub(super) fn asked(request: &Request) -> Result<Query, Failure> {
    candidates::asked(&request.query, version(request))
}

/// The microversion whose form a candidates query has.
pub(super) fn version(request: &Request) -> Version {
    let named = request.headers.contains_key(VERSION_HEADER);
    if named { request.version.max(CANDIDATES) } else { MAX }
}

/// Whether a request to Placement's route wants to be told why.
///
/// # Errors
/// 400 if the header is neither `true` nor `false`.
pub fn is_wanted(request: &Request) -> Result<bool, Failure> {
    let Some(value) = request.headers.get(HEADER) else { return Ok(false) };
    match value.as_bytes() {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(Failure::bad_request("The header Ledger-Explain has to be true or false.")),
    }
}

/// Explains a query: numbers for programs, and a `text` beside them for people.
///
/// # Errors
/// 400 if a class or trait does not exist.
pub fn explanation(
    index: &CandidateIndex,
    usage: &UsageView,
    query: &Query,
) -> Result<Value, Failure> {
    let told = explain(index, query).map_err(|error| candidates::unknown(&error))?;
    let mut moves = InFlight::new(index.state(), usage);
    let groups: Vec<Value> =
        told.groups.iter().map(|group| group_told(index.state(), &mut moves, group)).collect();
    Ok(json!({
        "sequence": told.sequence,
        "candidates": told.candidates,
        "hosts_for_all_groups": told.hosts_for_all_groups,
        "groups": groups,
        "in_flight": moves.told(),
    }))
}

fn group_told(state: &State, moves: &mut InFlight<'_>, group: &GroupExplanation) -> Value {
    let misses = group.near_misses.iter();
    let misses: Vec<Value> = misses.map(|miss| miss_told(state, moves, miss)).collect();
    let classes = group.classes.iter();
    let classes: Vec<Value> = classes.map(|totals| class_told(moves, totals)).collect();
    json!({
        "suffix": group.suffix,
        "counted": group.counted,
        "considered": group.considered,
        "steps": group.steps.iter().map(step_told).collect::<Vec<_>>(),
        "classes": classes,
        "near_misses": misses,
    })
}

fn step_told(step: &StepLeft) -> Value {
    json!({
        "condition": step.condition,
        "left": step.left,
        "text": format!("{}: {} left", step.condition, step.left),
    })
}

fn miss_told(state: &State, moves: &mut InFlight<'_>, miss: &NearMiss) -> Value {
    let id = miss.provider.parse::<ProviderUuid>().ok().and_then(|uuid| state.provider_id(uuid));
    let (held, named) = id.map(|id| moves.on_tree(id)).unwrap_or_default();
    let texts: Vec<String> = miss.lacks.iter().map(ToString::to_string).collect();
    json!({
        "provider": miss.provider,
        "name": miss.name,
        "lacks": miss.lacks,
        "text": texts.join("; "),
        "held_by_moves": held,
        "moves": named,
    })
}

fn class_told(moves: &mut InFlight<'_>, totals: &ClassTotals) -> Value {
    let (held, named) = moves.of_class(&totals.class);
    let mut told = json!(totals);
    told["text"] = class_text(totals, held).into();
    told["held_by_moves"] = held.into();
    told["moves"] = json!(named);
    told
}

/// `VCPU: needed 4, free 1020, largest gap 3, on 340 providers`
fn class_text(totals: &ClassTotals, held_by_moves: u64) -> String {
    let mut text = format!(
        "{}: needed {}, free {}, largest gap {}, on {}",
        totals.class,
        totals.needed,
        totals.free,
        totals.largest_gap,
        providers(totals.with_largest_gap)
    );
    let rules = [
        ("max_unit <", totals.above_max_unit),
        ("min_unit >", totals.below_min_unit),
        ("step_size does not divide", totals.off_step),
    ];
    for (rule, count) in rules.into_iter().filter(|(_, count)| *count > 0) {
        text.push_str(&format!("; {rule} {} on {}", totals.needed, providers(count)));
    }
    if held_by_moves > 0 {
        text.push_str(&format!("; {held_by_moves} held by moves in flight"));
    }
    text
}

fn providers(count: usize) -> String {
    if count == 1 { "1 provider".to_owned() } else { format!("{count} providers") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_read_as_a_sentence() {
        let mut totals = ClassTotals {
            class: "VCPU".to_owned(),
            needed: 4,
            providers: 340,
            fitting: 0,
            free: 1020,
            largest_gap: 3,
            with_largest_gap: 340,
            held: 1700,
            too_full: 340,
            above_max_unit: 0,
            below_min_unit: 0,
            off_step: 0,
        };
        let text = "VCPU: needed 4, free 1020, largest gap 3, on 340 providers";
        assert_eq!(class_text(&totals, 0), text);
        totals.above_max_unit = 1;
        let more = format!("{text}; max_unit < 4 on 1 provider; 7 held by moves in flight");
        assert_eq!(class_text(&totals, 7), more);
    }
}
