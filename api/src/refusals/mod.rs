//! The one place where a refusal of the ledger becomes Placement's status, code and sentence.
//!
//! Every such error also carries machine-readable fields: `cause` and, where they apply, `class`,
//! `provider`, `needed` and `free`, a list of `shortages` if there are several, and `held_by`: who
//! holds what stands in the way.

mod allocations;
mod holders;
mod inventories;
mod names;
mod native;
mod providers;

use ledger::command::Reshape;
use ledger::ids::ProviderUuid;
use ledger::refusal::{Cause, Refusal};
use serde_json::{Map, Value, json};

use crate::http::failure::Failure;
use crate::http::microversion::Version;

pub use holders::hide;
pub use native::native;

/// What was asked for when the ledger refused.
#[derive(Clone, Copy, Debug)]
pub enum About<'a> {
    /// A new provider.
    CreateProvider {
        /// Its uuid.
        uuid: ProviderUuid,
        /// Its name.
        name: &'a str,
    },
    /// A change of a provider.
    UpdateProvider(ProviderUuid),
    /// The end of a provider.
    DeleteProvider(ProviderUuid),
    /// A new inventory.
    CreateInventory(ProviderUuid, Version),
    /// A change of one inventory.
    UpdateInventory(ProviderUuid, Version),
    /// A new set of inventories.
    ReplaceInventories(ProviderUuid, Version),
    /// The end of one inventory.
    DeleteInventory(ProviderUuid),
    /// The end of all inventories of a provider.
    DeleteInventories(ProviderUuid),
    /// A provider's traits or aggregates.
    Associations(ProviderUuid),
    /// A trait.
    Trait,
    /// A new resource class.
    CreateClass,
    /// A new name of a resource class.
    RenameClass,
    /// The end of a resource class.
    DeleteClass,
    /// PUT of allocations: the consumer as the request names it.
    ReplaceAllocations(&'a str),
    /// POST of allocations.
    ManageAllocations,
    /// DELETE of allocations: the consumer as the request names it.
    DeleteAllocations(&'a str),
    /// The reshaper.
    Reshape(&'a Reshape),
}

/// The answer to a refusal.
#[must_use]
pub fn placement(refusal: &Refusal, about: About<'_>) -> Failure {
    let told = match about {
        About::CreateProvider { .. } | About::UpdateProvider(_) | About::DeleteProvider(_) => {
            providers::told(&refusal.cause, about)
        }
        About::CreateInventory(..)
        | About::UpdateInventory(..)
        | About::ReplaceInventories(..)
        | About::DeleteInventory(_)
        | About::DeleteInventories(_)
        | About::Associations(_) => inventories::told(&refusal.cause, about),
        About::Trait | About::CreateClass | About::RenameClass | About::DeleteClass => {
            names::told(&refusal.cause, about)
        }
        About::ReplaceAllocations(_)
        | About::ManageAllocations
        | About::DeleteAllocations(_)
        | About::Reshape(_) => allocations::told(refusal, about),
    };
    let failure = told.unwrap_or_else(|| native::told(refusal));
    with_fields(failure, refusal)
}

/// Adds the machine-readable fields.
fn with_fields(mut failure: Failure, refusal: &Refusal) -> Failure {
    let fields = &mut failure.fields;
    fields.insert("cause".to_owned(), refusal.cause.name().into());
    for (name, value) in details(&refusal.cause) {
        fields.insert(name, value);
    }
    if let Some(first) = refusal.shortages.first() {
        fields.insert("class".to_owned(), first.class.clone().into());
        fields.insert("provider".to_owned(), first.provider.to_string().into());
        fields.insert("needed".to_owned(), first.needed.into());
        fields.insert("free".to_owned(), first.free.into());
        // `min_unit`, `max_unit` or `step_size` with its value, if that forbade the amount.
        fields.extend(object(serde_json::to_value(first.cause).unwrap_or_default()));
    }
    let list = |value: Result<Value, _>| value.unwrap_or(Value::Null);
    if refusal.shortages.len() > 1 {
        fields.insert("shortages".to_owned(), list(serde_json::to_value(&refusal.shortages)));
    }
    if !refusal.passed_over.is_empty() {
        fields.insert("passed_over".to_owned(), list(serde_json::to_value(&refusal.passed_over)));
    }
    if refusal.options > 0 {
        fields.insert("options".to_owned(), refusal.options.into());
    }
    if let Some(holders) = &refusal.held_by {
        fields.insert("held_by".to_owned(), list(serde_json::to_value(holders)));
    }
    if refusal.left_out > 0 {
        fields.insert("left_out".to_owned(), refusal.left_out.into());
    }
    if let Some(id) = refusal.move_id {
        fields.insert("move".to_owned(), id.to_string().into());
    }
    failure
}

/// What the cause itself names, as it is stored; generations as what was expected and what came.
fn details(cause: &Cause) -> Map<String, Value> {
    match cause {
        Cause::ProviderGeneration { provider, current, given } => {
            object(json!({"provider": provider, "expected": current, "got": given}))
        }
        Cause::ConsumerGeneration { consumer, current, given } => {
            object(json!({"consumer": consumer, "expected": current, "got": given}))
        }
        cause => match serde_json::to_value(cause) {
            Ok(Value::Object(mut named)) => {
                named.iter_mut().next().map(|(_, inner)| object(inner.take()))
            }
            _ => None,
        }
        .unwrap_or_default(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use ledger::refusal::{Shortage, ShortageCause};

    fn provider() -> ProviderUuid {
        ProviderUuid(uuid::Uuid::from_u128(1))
    }

    #[test]
    fn a_lack_of_room_is_told_in_words_and_in_figures() {
        let mut refusal = Refusal::because(Cause::Capacity);
        refusal.shortages.push(Shortage {
            provider: provider(),
            class: "VCPU".into(),
            needed: 3,
            free: 1,
            cause: ShortageCause::Capacity,
        });
        let failure = placement(&refusal, About::ManageAllocations);
        assert_eq!(failure.status, StatusCode::CONFLICT);
        assert_eq!(
            failure.message,
            "Unable to allocate inventory: Unable to create allocation for 'VCPU' on resource provider \
             '00000000-0000-0000-0000-000000000001'. The requested amount would exceed the capacity."
        );
        assert_eq!(failure.fields["cause"], "capacity");
        assert_eq!(failure.fields["needed"], 3);
        assert_eq!(failure.fields["free"], 1);
        assert!(!failure.fields.contains_key("shortages"));
    }

    /// Case F5.
    #[test]
    fn the_limit_that_forbids_an_amount_is_told() {
        let mut refusal = Refusal::because(Cause::Constraint);
        refusal.shortages.push(Shortage {
            provider: provider(),
            class: "VCPU".into(),
            needed: 3,
            free: 4,
            cause: ShortageCause::MaxUnit(2),
        });
        let failure = placement(&refusal, About::ManageAllocations);
        assert_eq!(failure.fields["cause"], "constraint");
        assert_eq!(failure.fields["max_unit"], 2);
    }

    #[test]
    fn generations_are_told_as_expected_and_got() {
        let cause = Cause::ProviderGeneration { provider: provider(), current: 5, given: 4 };
        let failure = placement(&cause.into(), About::Associations(provider()));
        assert_eq!(failure.fields["expected"], 5);
        assert_eq!(failure.fields["got"], 4);
        assert_eq!(failure.fields["cause"], "provider_generation");
    }

    #[test]
    fn the_fields_of_a_cause_are_shown() {
        let cause = Cause::InventoryInUse { classes: vec!["VCPU".into()] };
        let failure = placement(&cause.into(), About::DeleteInventory(provider()));
        assert_eq!(failure.fields["classes"], json!(["VCPU"]));
    }
}
