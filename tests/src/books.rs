//! What consumers hold, and the sums that must agree with it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::Client;

/// Amounts by resource class.
pub type Amounts = BTreeMap<String, u64>;

/// What one consumer holds: amounts by provider. Empty means nothing.
pub type Holding = BTreeMap<String, Amounts>;

/// The `allocations` object of a request that writes this holding.
pub fn to_json(holding: &Holding) -> Value {
    holding
        .iter()
        .map(|(provider, amounts)| (provider.clone(), json!({"resources": amounts})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The holding in an `allocations` object of an answer.
pub fn from_json(allocations: &Value) -> Holding {
    let providers = allocations.as_object().expect("allocations are an object");
    providers
        .iter()
        .map(|(provider, value)| (provider.clone(), amounts(&value["resources"])))
        .collect()
}

/// Amounts in an object of class and number.
pub fn amounts(resources: &Value) -> Amounts {
    let classes = resources.as_object().expect("resources are an object");
    classes
        .iter()
        .map(|(class, amount)| {
            (class.clone(), amount.as_u64().expect("an amount is a whole number"))
        })
        .collect()
}

/// What a consumer holds according to the server, and its generation (none if it holds nothing).
pub fn read(client: &Client, consumer: &str) -> (Holding, Option<u64>) {
    let answer = client.read(&format!("/allocations/{consumer}"));
    (from_json(&answer["allocations"]), answer["consumer_generation"].as_u64())
}

/// A provider's usages, without the classes of which nothing is used.
pub fn usages(client: &Client, provider: &str) -> Amounts {
    let answer = client.read(&format!("/resource_providers/{provider}/usages"));
    without_zeros(amounts(&answer["usages"]))
}

/// The capacity of each class a provider has, cut off to whole numbers as Placement shows it.
pub fn capacity(client: &Client, provider: &str) -> Amounts {
    let answer = client.read(&format!("/resource_providers/{provider}/inventories"));
    let inventories = answer["inventories"].as_object().expect("inventories are an object");
    inventories.iter().map(|(class, record)| (class.clone(), usable(record))).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn usable(record: &Value) -> u64 {
    let number = |key: &str| record[key].as_f64().expect("an inventory has numbers");
    ((number("total") - number("reserved")) * number("allocation_ratio")) as u64
}

/// The sums per provider of many holdings.
pub fn sums<'a>(holdings: impl IntoIterator<Item = &'a Holding>) -> Holding {
    let mut sums = Holding::new();
    for (provider, amounts) in holdings.into_iter().flatten() {
        let sum = sums.entry(provider.clone()).or_default();
        for (class, amount) in amounts {
            *sum.entry(class.clone()).or_default() += amount;
        }
    }
    sums
}

/// Check, provider by provider, that usages are the sum of the allocations there and not
/// above capacity. Nothing may be written meanwhile, and no move may share an overlap.
#[track_caller]
pub fn check_providers(client: &Client, providers: &[String]) {
    for provider in providers {
        let answer = client.read(&format!("/resource_providers/{provider}/allocations"));
        let holdings = answer["allocations"].as_object().expect("allocations are an object");
        let mut sum = Amounts::new();
        for resources in holdings.values().map(|holding| amounts(&holding["resources"])) {
            for (class, amount) in resources {
                *sum.entry(class).or_default() += amount;
            }
        }
        assert_eq!(
            usages(client, provider),
            without_zeros(sum),
            "usages and allocations of {provider}"
        );
        check_capacity(client, provider);
    }
}

/// Check that a provider's usages are not above its capacity. May run while others write.
#[track_caller]
pub fn check_capacity(client: &Client, provider: &str) {
    let capacity = capacity(client, provider);
    for (class, used) in usages(client, provider) {
        assert!(
            used <= capacity[&class],
            "{used} {class} used of {} on {provider}",
            capacity[&class]
        );
    }
}

fn without_zeros(mut amounts: Amounts) -> Amounts {
    amounts.retain(|_, amount| *amount > 0);
    amounts
}
