//! Why a command was refused, in words.

use crate::names::Names;
use crate::shown::shown;
use crate::units::amount;
use ledger::refusal::{Cause, PassedOver, Shortage, ShortageCause};

/// The cause of a refusal.
pub(crate) fn cause_words(cause: &Cause, names: &Names) -> String {
    match cause {
        Cause::Capacity => "not enough capacity".into(),
        Cause::Constraint => "min_unit, max_unit or step_size forbids the amount".into(),
        Cause::Retiring => "it goes once it is free, and no more of it can be claimed".into(),
        Cause::Quota { project_id, class, limit, held, after } => format!(
            "the quota of project {}: {class} {limit}, it holds {held} and would hold {after}",
            shown(project_id)
        ),
        Cause::CannotRetire { total, in_use, with_children, providers } => {
            let told: Vec<_> = providers.iter().map(|&provider| names.provider(provider)).collect();
            format!(
                "of {total} providers {in_use} are in use and {with_children} have children that stay: {}",
                told.join(", ")
            )
        }
        Cause::NoOptionFits => "none of the options fits".into(),
        Cause::ProviderInUse => "the provider has allocations".into(),
        Cause::NoInventory { classes, providers } => {
            let providers: Vec<_> =
                providers.iter().map(|&provider| names.provider(provider)).collect();
            format!("no inventory of {} on {}", classes.join(", "), providers.join(", "))
        }
        Cause::NoCandidate { query, steps } => {
            format!("no candidate for {query}: {}", steps.join("; "))
        }
        Cause::HostIgnored { host } => format!("{} is to be ignored", names.provider(*host)),
        Cause::SameHost { host } => {
            format!("only a resize may stay on its host {}", names.provider(*host))
        }
        Cause::NotOnMove { host } => {
            format!("{} is on neither side of the move", names.provider(*host))
        }
        Cause::HoldsNothing { consumer } => format!("consumer {consumer} holds nothing"),
        Cause::HoldsAlready { consumer } => format!("consumer {consumer} holds something already"),
        Cause::HoldsLess { consumer, provider, class, held, asked } => {
            let place = names.provider(*provider);
            format!("consumer {consumer} holds {held} of {class} on {place}, not {asked}")
        }
        Cause::HoldsNothingThere { consumer, provider } => {
            format!("consumer {consumer} holds nothing of {}", names.provider(*provider))
        }
        Cause::MoveNotFound { consumer } => format!("no move of consumer {consumer} is on record"),
        Cause::MoveState { move_id, state, wanted } => {
            format!("move {move_id} is {}, so it cannot {wanted}", state.name())
        }
        Cause::NothingLeft { move_id, side } => {
            format!(
                "nothing is held any more of the {side} of move {move_id}, so it cannot end there"
            )
        }
        Cause::ProviderNotFound { provider } => format!("there is no provider {provider}"),
        Cause::ProviderGeneration { provider, current, given } => {
            format!("{} has generation {current}, not {given}", names.provider(*provider))
        }
        Cause::ConsumerGeneration { consumer, current, given } => {
            let word =
                |generation: &Option<u32>| generation.map_or("null".into(), |g| g.to_string());
            format!("consumer {consumer} has generation {}, not {}", word(current), word(given))
        }
        Cause::InventoryInUse { classes } => {
            format!("inventory of {} is in use", classes.join(", "))
        }
        Cause::CommandIdReused { sequence } => {
            format!("its command id was used for another command (event {sequence})")
        }
        Cause::Internal { id } => {
            format!("the server met a defect of its own; its log tells more beside {id}")
        }
        Cause::Malformed { what } => format!("malformed: {what}"),
        Cause::TooLarge { what, limit } => format!("{what} is larger than the limit of {limit}"),
        // The rest are about names and trees: the stored name and its fields say it all.
        other => plain(other),
    }
}

fn plain(cause: &Cause) -> String {
    match serde_json::to_value(cause) {
        Ok(serde_json::Value::Object(fields)) => {
            let fields =
                fields.into_iter().map(|(name, what)| format!("{} {what}", name.replace('_', " ")));
            fields.collect::<Vec<_>>().join(", ")
        }
        _ => cause.name().replace('_', " "),
    }
}

/// A shortage on one line: `DISK_GB on compute1: short by 28 GB (needed 1028, free 1000)`.
pub(crate) fn shortage_words(shortage: &Shortage, names: &Names) -> String {
    let Shortage { class, needed, free, .. } = shortage;
    let place = format!("{class} on {}", names.provider(shortage.provider));
    match shortage.cause {
        ShortageCause::Capacity => {
            let short = amount(class, i128::from(*needed) - i128::from(*free));
            format!("{place}: short by {short} (needed {needed}, free {free})")
        }
        ShortageCause::MinUnit(limit) => format!("{place}: {needed} is below min_unit {limit}"),
        ShortageCause::MaxUnit(limit) => format!("{place}: {needed} is above max_unit {limit}"),
        ShortageCause::StepSize(limit) => {
            format!("{place}: {needed} is no multiple of step_size {limit}")
        }
        ShortageCause::Retiring => format!("{place}: it goes once it is free"),
        ShortageCause::NoInventory => format!("{place}: there is no inventory of it"),
    }
}

/// An option that was passed over, on one line.
pub(crate) fn passed_over_words(option: &PassedOver, names: &Names) -> String {
    let shortages: Vec<_> =
        option.shortages.iter().map(|shortage| shortage_words(shortage, names)).collect();
    let why =
        if shortages.is_empty() { cause_words(&option.cause, names) } else { shortages.join(", ") };
    format!("option {} passed over: {why}", option.option)
}
