//! Refusals about a provider's inventories, traits and aggregates.

use ledger::ids::ProviderUuid;
use ledger::refusal::Cause;

use super::About;
use crate::http::failure::{CONCURRENT_UPDATE, Failure, INVENTORY_INUSE};
use crate::http::microversion::{RESERVED_MAY_EQUAL_TOTAL, Version};

pub(super) fn told(cause: &Cause, about: About<'_>) -> Option<Failure> {
    match (cause, about) {
        (Cause::ProviderNotFound { provider }, _) => {
            let message = format!("No resource provider with uuid {provider} found");
            Some(Failure::not_found(message).let_through())
        }
        (Cause::ProviderGeneration { .. }, About::Associations(_)) => {
            Some(Failure::concurrent_update(
                "Resource provider's generation already changed. Please update the generation and try again.",
            ))
        }
        (Cause::ProviderGeneration { .. }, _) => {
            Some(Failure::concurrent_update("resource provider generation conflict"))
        }
        (Cause::TraitsNotFound { traits }, _) => {
            Some(Failure::bad_request(format!("No such trait {}", traits.join(", "))))
        }
        (Cause::ClassNotFound { class }, about) => unknown_class(class, about),
        (Cause::InventoryExists { class }, About::CreateInventory(provider, _)) => {
            Some(Failure::concurrent_update(format!(
                "Update conflict: Inventory for '{class}' on resource provider '{provider}' already exists."
            )))
        }
        (Cause::InventoryNotFound { class }, about) => no_inventory(class, about),
        (Cause::InventoryInUse { classes }, about) => in_use(classes, about),
        (Cause::InventoryCapacity { class }, about) => {
            let (verb, provider, version) = written(about)?;
            let sentence = reserved_too_much(class, provider, version);
            Some(Failure::bad_request(format!(
                "Unable to {verb} inventory for resource provider {provider}: {sentence}"
            )))
        }
        (Cause::InventoryInvalid { class, field }, about) => {
            let (verb, provider, _) = written(about)?;
            Some(Failure::bad_request(format!(
                "Unable to {verb} inventory for resource provider {provider}: Invalid inventory for '{class}' on \
                 resource provider '{provider}'. The value of {field} is out of range."
            )))
        }
        _ => None,
    }
}

fn written(about: About<'_>) -> Option<(&'static str, ProviderUuid, Version)> {
    match about {
        About::CreateInventory(provider, version) => Some(("create", provider, version)),
        About::UpdateInventory(provider, version)
        | About::ReplaceInventories(provider, version) => Some(("update", provider, version)),
        _ => None,
    }
}

fn reserved_too_much(class: &str, provider: ProviderUuid, version: Version) -> String {
    let than = if version >= RESERVED_MAY_EQUAL_TOTAL {
        "greater than"
    } else {
        "greater than or equal to"
    };
    format!(
        "Invalid inventory for '{class}' on resource provider '{provider}'. The reserved value is {than} total."
    )
}

fn unknown_class(class: &str, about: About<'_>) -> Option<Failure> {
    let sentence = format!("No such resource class {class}.");
    match about {
        About::CreateInventory(provider, _) => Some(Failure::bad_request(format!(
            "Unable to create inventory for resource provider {provider}: {sentence}"
        ))),
        About::ReplaceInventories(provider, _) => Some(Failure::bad_request(format!(
            "Unknown resource class in inventory for resource provider {provider}: {sentence}"
        ))),
        About::DeleteInventory(_) => Some(not_there(class, &sentence)),
        _ => Some(Failure::not_found(sentence).let_through()),
    }
}

fn no_inventory(class: &str, about: About<'_>) -> Option<Failure> {
    let sentence = format!("No inventory of class {class} found.");
    match about {
        About::UpdateInventory(provider, _) => Some(Failure::bad_request(format!(
            "No inventory record with resource class for resource provider {provider}: {sentence}"
        ))),
        // Placement says it twice.
        About::DeleteInventory(_) => {
            Some(not_there(class, &format!("No inventory of class {class} found for delete")))
        }
        _ => None,
    }
}

fn not_there(class: &str, why: &str) -> Failure {
    Failure::not_found(format!("No inventory of class {class} found for delete: {why}"))
}

fn in_use(classes: &[String], about: About<'_>) -> Option<Failure> {
    match about {
        About::ReplaceInventories(provider, _) => {
            let message = format!("update conflict: {}", used(classes, provider));
            Some(Failure::conflict(message).code(INVENTORY_INUSE))
        }
        About::DeleteInventories(provider) => {
            Some(Failure::conflict(used(classes, provider)).code(INVENTORY_INUSE))
        }
        // Placement gives another code here than for all inventories at once.
        About::DeleteInventory(provider) => {
            let class = classes.join(", ");
            let message =
                format!("Unable to delete inventory of class {class}: {}", used(classes, provider));
            Some(Failure::conflict(message).code(CONCURRENT_UPDATE))
        }
        _ => None,
    }
}

/// The sentence about inventories in use, which the reshaper shares.
pub(super) fn used(classes: &[String], provider: ProviderUuid) -> String {
    format!("Inventory for '{}' on resource provider '{provider}' in use.", classes.join(", "))
}
