//! Refusals in the ledger's own words: for its own API, and for what Placement has no words for.

use http::StatusCode;
use ledger::refusal::{Cause, Refusal};

use super::{holders, with_fields};
use crate::http::failure::{CONCURRENT_UPDATE, Failure};

/// The answer to a refused command of the ledger's own API.
#[must_use]
pub fn native(refusal: &Refusal) -> Failure {
    with_fields(told(refusal), refusal).field("index", refusal.index)
}

pub(super) fn told(refusal: &Refusal) -> Failure {
    let words = sentence(refusal) + &holders::words(refusal);
    let failure = Failure::new(status(&refusal.cause), words);
    match refusal.cause {
        Cause::ProviderGeneration { .. } | Cause::ConsumerGeneration { .. } => {
            failure.code(CONCURRENT_UPDATE)
        }
        _ => failure,
    }
}

fn status(cause: &Cause) -> StatusCode {
    match cause {
        Cause::ProviderNotFound { .. }
        | Cause::ClassNotFound { .. }
        | Cause::TraitsNotFound { .. }
        | Cause::InventoryNotFound { .. }
        | Cause::MoveNotFound { .. }
        | Cause::HoldsNothing { .. } => StatusCode::NOT_FOUND,
        Cause::ProviderNameInvalid
        | Cause::ParentNotFound { .. }
        | Cause::ParentIsSelf
        | Cause::ReparentForbidden
        | Cause::UnparentForbidden
        | Cause::Loop
        | Cause::InventoryCapacity { .. }
        | Cause::InventoryInvalid { .. }
        | Cause::ClassStandard { .. }
        | Cause::TraitStandard { .. }
        | Cause::NameInvalid { .. }
        | Cause::Malformed { .. } => StatusCode::BAD_REQUEST,
        Cause::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Cause::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        Cause::CommandIdReused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::CONFLICT,
    }
}

fn sentence(refusal: &Refusal) -> String {
    match &refusal.cause {
        Cause::Capacity | Cause::Constraint => shortage(refusal),
        Cause::NoInventory { classes, providers } => {
            let providers: Vec<String> = providers.iter().map(ToString::to_string).collect();
            format!("There is no inventory of {} on {}.", classes.join(", "), providers.join(", "))
        }
        Cause::Retiring => match refusal.shortages.first() {
            Some(short) => format!(
                "{} of {} goes once it is free: no more of it can be claimed.",
                short.class, short.provider
            ),
            None => "It goes once it is free: no more of it can be claimed.".to_owned(),
        },
        Cause::Quota { .. } => quota(&refusal.cause),
        Cause::CannotRetire { total, in_use, with_children, .. } => format!(
            "Of {total} providers {in_use} have allocations and {with_children} have children that stay; none was \
             removed."
        ),
        Cause::NoOptionFits => match refusal.options {
            // On record from before options were counted: those that it lists are not all.
            0 => "None of the options fits.".to_owned(),
            options => format!("None of the {options} options fits."),
        },
        Cause::NoCandidate { steps, .. } => {
            format!("No candidate was found: {}.", steps.join("; "))
        }
        Cause::SearchAgain => "The cloud has to be searched anew.".to_owned(),
        Cause::HostIgnored { host } => format!("The host {host} is to be ignored."),
        Cause::SameHost { host } => {
            format!("The consumer is on the host {host}, and only a resize may stay there.")
        }
        Cause::NotOnMove { host } => format!("The host {host} is on neither side of the move."),
        Cause::ProviderNotFound { provider } => {
            format!("There is no resource provider {provider}.")
        }
        Cause::ProviderExists { provider } => {
            format!("The resource provider {provider} exists already.")
        }
        Cause::ProviderNameExists { name } => {
            format!("A resource provider named {name} exists already.")
        }
        Cause::ProviderNameInvalid => "The provider's name is empty or too long.".to_owned(),
        Cause::ParentNotFound { parent } => format!("The parent {parent} does not exist."),
        Cause::ParentIsSelf => "A provider cannot be its own parent.".to_owned(),
        Cause::ReparentForbidden => "The parent cannot be changed here.".to_owned(),
        Cause::UnparentForbidden => "The parent cannot be taken away here.".to_owned(),
        Cause::Loop => "The new parent is the provider itself or below it.".to_owned(),
        Cause::ProviderHasChildren => "The provider has children.".to_owned(),
        Cause::ProviderInUse => "The provider has allocations.".to_owned(),
        Cause::ProviderGeneration { provider, current, given } => {
            format!("The generation of {provider} is {current}, not {given}.")
        }
        Cause::ConsumerGeneration { consumer, current, given } => {
            let shown = |generation: &Option<u32>| {
                generation.map_or_else(|| "null".to_owned(), |g| g.to_string())
            };
            format!("The generation of {consumer} is {}, not {}.", shown(current), shown(given))
        }
        Cause::InventoryExists { class } => {
            format!("The provider has an inventory of {class} already.")
        }
        Cause::InventoryNotFound { class } => format!("The provider has no inventory of {class}."),
        Cause::InventoryInUse { classes } => {
            format!("The inventory of {} is in use.", classes.join(", "))
        }
        Cause::InventoryCapacity { class } => {
            format!("The capacity of {class} is too small: too much is reserved.")
        }
        Cause::InventoryInvalid { class, field } => {
            format!("The {field} of {class} is out of range.")
        }
        Cause::ClassNotFound { class } => format!("There is no resource class {class}."),
        Cause::ClassExists { class } => format!("The resource class {class} exists already."),
        Cause::ClassInUse { class } => format!("An inventory uses the resource class {class}."),
        Cause::ClassStandard { class } => format!("The resource class {class} is a standard one."),
        Cause::TraitsNotFound { traits } => format!("There is no trait {}.", traits.join(", ")),
        Cause::TraitExists { name } => format!("The trait {name} exists already."),
        Cause::TraitInUse { name } => format!("A provider has the trait {name}."),
        Cause::TraitStandard { name } => format!("The trait {name} is a standard one."),
        Cause::NameInvalid { name } => {
            format!("{name} does not have the form that such a name needs.")
        }
        Cause::HoldsNothing { consumer } => format!("The consumer {consumer} holds nothing."),
        Cause::HoldsAlready { consumer } => {
            format!("The consumer {consumer} holds something already.")
        }
        Cause::HoldsLess { consumer, provider, class, held, asked } => {
            format!("The consumer {consumer} holds {held} of {class} on {provider}, not {asked}.")
        }
        Cause::HoldsNothingThere { consumer, provider } => {
            format!("The consumer {consumer} holds nothing of the provider {provider}.")
        }
        Cause::MoveNotFound { consumer } => format!("No move of {consumer} is on record."),
        Cause::MoveState { move_id, state, wanted } => {
            format!("The move {move_id} is {}: it cannot {wanted}.", state.name())
        }
        Cause::NothingLeft { move_id, side } => {
            format!(
                "Nothing is held any more of the {side} of the move {move_id}: it cannot end there."
            )
        }
        Cause::Malformed { what } => what.clone(),
        Cause::CommandIdReused { sequence } => {
            format!("This command id was used for another command, at sequence {sequence}.")
        }
        Cause::Internal { id } => format!(
            "The ledger has met a defect of its own, and nothing was done; the server's log tells more beside {id}."
        ),
        Cause::TooLarge { what, limit } => format!("Too large: {what}; the limit is {limit}."),
    }
}

pub(super) fn quota(cause: &Cause) -> String {
    let Cause::Quota { project_id, class, limit, held, after } = cause else {
        return String::new();
    };
    format!(
        "The quota of project {project_id} for {class} is {limit}: it holds {held} and would hold {after}."
    )
}

fn shortage(refusal: &Refusal) -> String {
    match refusal.shortages.first() {
        Some(short) => format!(
            "{} of {} on {}: needed {} more, free {}.",
            if refusal.cause == Cause::Capacity {
                "Not enough"
            } else {
                "The inventory forbids this amount"
            },
            short.class,
            short.provider,
            short.needed,
            short.free
        ),
        None => "Not enough.".to_owned(),
    }
}
