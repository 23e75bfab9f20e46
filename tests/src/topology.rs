//! The providers a test works on.

use serde_json::{Value, json};
use uuid::{Builder, Uuid};

use crate::http::Client;

/// One resource class of a provider: its name and its total. Ratio 1, nothing reserved.
pub type Stock<'a> = (&'a str, u64);

/// A provider with inventory, over HTTP; its UUID.
pub fn provider(client: &Client, name: &str, stock: &[Stock]) -> String {
    let provider = uuid(name).to_string();
    client
        .post("/resource_providers", &json!({"name": name, "uuid": provider}))
        .expect("the server answers")
        .expect(200);
    set_inventory(client, &provider, 0, stock);
    provider
}

/// Replace all inventory of a provider that is at this generation.
pub fn set_inventory(client: &Client, provider: &str, generation: u64, stock: &[Stock]) {
    let inventories: serde_json::Map<String, Value> =
        stock.iter().map(|&(class, total)| (class.to_owned(), inventory(total))).collect();
    let body = json!({"resource_provider_generation": generation, "inventories": inventories});
    client
        .put(&format!("/resource_providers/{provider}/inventories"), &body)
        .expect("the server answers")
        .expect(200);
}

fn inventory(total: u64) -> Value {
    json!({"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": 1.0})
}

/// A UUID that depends on the name alone, so that a test's providers are the same in each run.
pub fn uuid(name: &str) -> Uuid {
    let mut bytes = [0_u8; 16];
    for (place, byte) in (0..bytes.len()).cycle().zip(name.bytes()) {
        bytes[place] = bytes[place].wrapping_mul(31).wrapping_add(byte);
    }
    Builder::from_random_bytes(bytes).into_uuid()
}
