//! Refusals about allocations, and the reshaper's.

use ledger::command::Reshape;
use ledger::refusal::{Cause, Refusal, Shortage};

use super::{About, inventories, native};
use crate::http::failure::{Failure, INVENTORY_INUSE, PROVIDER_NOT_FOUND};

pub(super) fn told(refusal: &Refusal, about: About<'_>) -> Option<Failure> {
    match (&refusal.cause, about) {
        (Cause::ConsumerGeneration { current, given, .. }, _) => {
            Some(Failure::concurrent_update(generation(*current, *given)))
        }
        (Cause::ProviderNotFound { provider }, About::Reshape(reshape))
            if reshape.inventories.contains_key(provider) =>
        {
            let message = format!(
                "Resource provider {provider} in inventories not found: No resource provider with uuid {provider} \
                 found"
            );
            Some(Failure::bad_request(message).code(PROVIDER_NOT_FOUND))
        }
        (Cause::ProviderNotFound { provider }, _) => Some(Failure::bad_request(format!(
            "Allocation for resource provider '{provider}' that does not exist."
        ))),
        (Cause::ProviderGeneration { provider, current, given }, _) => {
            Some(Failure::concurrent_update(format!(
                "resource provider generation conflict for provider {provider}: actual: {current}, given: {given}"
            )))
        }
        (Cause::ClassNotFound { class }, about) => Some(unknown_class(class, about)),
        (Cause::HoldsNothing { .. }, About::DeleteAllocations(consumer)) => {
            Some(Failure::not_found(format!("No allocations for consumer '{consumer}'")))
        }
        (Cause::NoInventory { classes, providers }, _) => {
            let providers: Vec<String> = providers.iter().map(ToString::to_string).collect();
            Some(unable(&format!(
                "Inventory for '{}' on resource provider '{}' invalid.",
                classes.join(", "),
                providers.join(", ")
            )))
        }
        (Cause::Constraint, _) => Some(short(refusal, "violate inventory constraints.")),
        (Cause::Capacity, _) => Some(short(refusal, "exceed the capacity.")),
        (Cause::Quota { .. }, _) => Some(unable(&native::quota(&refusal.cause))),
        // Nothing of it is offered any more: for Placement's clients there is no capacity left.
        (Cause::Retiring, _) => {
            Some(short(refusal, "exceed the capacity, which is being retired."))
        }
        (Cause::InventoryInUse { classes }, About::Reshape(reshape)) => {
            Some(in_use(classes, refusal, reshape))
        }
        _ => None,
    }
}

fn unknown_class(class: &str, about: About<'_>) -> Failure {
    let sentence = format!("No such resource class {class}.");
    let message = match about {
        About::ReplaceAllocations(consumer) => {
            format!("Unable to allocate inventory for consumer {consumer}: {sentence}")
        }
        About::Reshape(_) => format!("malformed reshaper data: {sentence}"),
        _ => format!("Unable to allocate inventory {sentence}"),
    };
    Failure::bad_request(message)
}

fn generation(current: Option<u32>, given: Option<u32>) -> String {
    let expected = current.map_or_else(|| "null".to_owned(), |current| current.to_string());
    let got = given.map_or_else(|| "None".to_owned(), |given| given.to_string());
    format!("consumer generation conflict - expected {expected} but got {got}")
}

fn short(refusal: &Refusal, would: &str) -> Failure {
    match refusal.shortages.first() {
        Some(Shortage { class, provider, .. }) => unable(&format!(
            "Unable to create allocation for '{class}' on resource provider '{provider}'. The requested amount would \
             {would}"
        )),
        None => unable(&format!("The requested amount would {would}")),
    }
}

fn unable(why: &str) -> Failure {
    Failure::conflict(format!("Unable to allocate inventory: {why}"))
}

fn in_use(classes: &[String], refusal: &Refusal, reshape: &Reshape) -> Failure {
    // The provider whose new set lacks the class; there is at least one.
    let lacks = |reshaped: &ledger::command::ReshapedInventories| {
        classes.iter().any(|class| !reshaped.inventories.contains_key(class))
    };
    let told = refusal.shortages.first().map(|shortage| shortage.provider);
    let found = reshape
        .inventories
        .iter()
        .find(|(_, reshaped)| lacks(reshaped))
        .map(|(provider, _)| *provider);
    let provider = told.or(found).unwrap_or_default();
    Failure::conflict(format!("update conflict: {}", inventories::used(classes, provider)))
        .code(INVENTORY_INUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_spelled_as_placement_does() {
        assert_eq!(
            generation(Some(3), Some(1)),
            "consumer generation conflict - expected 3 but got 1"
        );
        assert_eq!(
            generation(None, Some(5)),
            "consumer generation conflict - expected null but got 5"
        );
        assert_eq!(
            generation(Some(1), None),
            "consumer generation conflict - expected 1 but got None"
        );
    }
}
