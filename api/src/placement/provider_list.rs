//! Which providers a list shows.

use std::sync::Arc;

use ledger::state::{AggregateId, ClassId, Provider, ProviderId, State, TraitId};

use super::lookup;
use crate::http::failure::Failure;
use crate::query::providers::Filters;
use crate::query::resources::Amount;

/// The providers for which all filters hold, in the order of their numbers. As soon as a filter
/// leaves nothing, later names are not looked up, as in Placement.
///
/// # Errors
/// 400 for traits and classes that do not exist.
pub fn matching<'a>(view: &'a State, filters: &Filters) -> Result<Vec<&'a Arc<Provider>>, Failure> {
    let mut found = start(view, filters);
    if filters.in_tree.as_ref().is_some_and(|text| lookup::provider(view, text).is_none()) {
        return Ok(found);
    }
    let lists: Vec<_> = filters
        .traits
        .required
        .iter()
        .map(|list| trait_ids(view, list))
        .collect::<Result<_, _>>()?;
    let with_traits =
        |provider: &Provider| lists.iter().all(|any| any.iter().any(|id| provider.has_trait(*id)));
    if !lists.is_empty() && retain(view, &mut found, with_traits) == Left::Nowhere {
        return Ok(found);
    }
    let forbidden = trait_ids(view, &filters.traits.forbidden)?;
    found.retain(|provider| !forbidden.iter().any(|id| provider.has_trait(*id)));
    let lists: Vec<_> =
        filters.aggregates.required.iter().map(|list| aggregate_ids(view, list)).collect();
    let in_aggregates =
        |provider: &Provider| lists.iter().all(|any| any.iter().any(|id| provider.is_in(*id)));
    if !lists.is_empty() && retain(view, &mut found, in_aggregates) == Left::Nowhere {
        return Ok(found);
    }
    let forbidden = aggregate_ids(view, &filters.aggregates.forbidden);
    found.retain(|provider| !forbidden.iter().any(|id| provider.is_in(*id)));
    let amounts = class_ids(view, &filters.resources)?;
    found.retain(|provider| amounts.iter().all(|(class, amount)| fits(provider, *class, *amount)));
    Ok(found)
}

/// Whether a condition ends the work.
#[derive(PartialEq)]
enum Left {
    /// Some provider satisfies it, if perhaps none of those that were found before.
    Somewhere,
    /// No provider at all does.
    Nowhere,
}

/// Keeps those that satisfy a condition.
fn retain(
    view: &State,
    found: &mut Vec<&Arc<Provider>>,
    satisfies: impl Fn(&Provider) -> bool,
) -> Left {
    found.retain(|provider| satisfies(provider));
    let somewhere = !found.is_empty() || view.providers().any(|(_, row)| satisfies(row));
    if somewhere { Left::Somewhere } else { Left::Nowhere }
}

/// The providers that the cheap filters leave.
fn start<'a>(view: &'a State, filters: &Filters) -> Vec<&'a Arc<Provider>> {
    let root = match &filters.in_tree {
        None => None,
        Some(text) => match lookup::provider(view, text) {
            Some((_, provider)) => Some(provider.root),
            None => return Vec::new(),
        },
    };
    let named = |provider: &Provider| {
        filters.name.as_ref().is_none_or(|name| **name == *provider.name)
            && root.is_none_or(|root| provider.root == root)
    };
    let one = |id: Option<ProviderId>| {
        let row = id.and_then(|id| view.provider_row(id)).filter(|row| named(row));
        row.into_iter().collect()
    };
    if let Some(text) = &filters.uuid {
        return one(lookup::provider(view, text).map(|(id, _)| id));
    }
    if let Some(name) = &filters.name {
        return one(view.provider_named(name));
    }
    match root {
        Some(root) => {
            view.subtree(root).into_iter().filter_map(|id| view.provider_row(id)).collect()
        }
        None => view.providers().map(|(_, provider)| provider).collect(),
    }
}

fn trait_ids(view: &State, names: &[String]) -> Result<Vec<TraitId>, Failure> {
    let mut unknown: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| view.traits().id(name).is_none()).collect();
    if unknown.is_empty() {
        return Ok(names.iter().filter_map(|name| view.traits().id(name)).collect());
    }
    unknown.sort_unstable();
    let names = unknown.join(", ");
    Err(Failure::bad_request(format!(
        "Invalid trait(s) in \"required\" parameter: No such trait(s): {names}."
    )))
}

fn aggregate_ids(view: &State, names: &[String]) -> Vec<AggregateId> {
    names.iter().filter_map(|name| view.aggregates().number(name)).collect()
}

fn class_ids(view: &State, amounts: &[Amount]) -> Result<Vec<(ClassId, i64)>, Failure> {
    let id = |(class, amount): &Amount| match view.classes().id(class) {
        Some(id) => Ok((id, *amount)),
        None => Err(Failure::bad_request(format!(
            "Invalid resource class in resources parameter: No such resource class {class}."
        ))),
    };
    amounts.iter().map(id).collect()
}

/// Whether a provider by itself has room for an amount.
fn fits(provider: &Provider, class: ClassId, amount: i64) -> bool {
    let Some(row) = provider.inventory(class) else { return false };
    let inventory = &row.inventory;
    let Ok(amount) = u32::try_from(amount) else { return false };
    let within = (inventory.min_unit..=inventory.max_unit).contains(&amount);
    // Amounts and usages are far below 2^53, so that doubles are exact, as in Placement.
    let after = row.held as f64 + f64::from(amount);
    within && amount.is_multiple_of(inventory.step_size) && after <= inventory.capacity()
}
