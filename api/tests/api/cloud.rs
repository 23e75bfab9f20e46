//! Small clouds for tests, made through the server's own API.

use crate::server::{Answer, Server};
use serde_json::{Map, Value, json};

/// The uuid of host number `n`.
pub fn host(n: u32) -> String {
    format!("10000000-0000-4000-8000-{n:012x}")
}

/// The uuid of consumer number `n`.
pub fn consumer(n: u32) -> String {
    format!("20000000-0000-4000-8000-{n:012x}")
}

/// Sends commands that have to be accepted.
pub fn done(server: &Server, commands: &Value) -> Value {
    let answer = server.json("POST", "/ledger/v1/commands", &[], commands);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Makes hosts with these inventories, such as `{"VCPU": {"total": 8}}`.
pub fn hosts(server: &Server, numbers: std::ops::RangeInclusive<u32>, inventories: &Value) {
    let numbers: Vec<u32> = numbers.collect();
    for chunk in numbers.chunks(200) {
        let commands: Vec<Value> = chunk
            .iter()
            .flat_map(|&n| {
                let change = json!({"replace_all": inventories});
                [
                    json!({"create_provider": {"uuid": host(n), "name": format!("h{n}")}}),
                    json!({"change_inventories": {"provider": host(n), "change": change}}),
                ]
            })
            .collect();
        done(server, &commands.into());
    }
}

/// A claim of a consumer on one host.
pub fn claim(who: u32, on: u32, amounts: &Value) -> Value {
    let option: Map<String, Value> = [(host(on), amounts.clone())].into_iter().collect();
    json!({"claim": {
        "consumer": consumer(who),
        "project_id": "p",
        "user_id": "u",
        "options": [option],
    }})
}

/// Gets an answer that has to be 200.
pub fn get(server: &Server, path: &str) -> Value {
    let answer = answer(server, path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// Gets any answer.
pub fn answer(server: &Server, path: &str) -> Answer {
    server.send("GET", path, &[], b"")
}

/// One member of each of a list's objects, as text.
pub fn each(list: &Value, member: &str) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect()
}
