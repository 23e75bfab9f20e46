//! A server with hosts, and the ledger's own commands in the words of the cases.

use std::process::Command;

use serde_json::{Value, json};
use system_tests::binaries;
use system_tests::books::{self, Amounts, Holding};
use system_tests::http::{Answer, Client};
use system_tests::server::{Server, verify_ledger};
use system_tests::topology::{self, Stock};

/// The project of every consumer.
pub const PROJECT: &str = "project";

/// A server and a client of it.
pub struct Cloud {
    pub server: Server,
    pub client: Client,
}

impl Cloud {
    pub fn new() -> Cloud {
        Cloud::with(&[])
    }

    /// With further arguments of the server.
    pub fn with(arguments: &[&str]) -> Cloud {
        let server = Server::with(arguments, &[]);
        let client = server.client();
        Cloud { server, client }
    }

    /// A provider; its UUID.
    pub fn host(&self, name: &str, stock: &[Stock]) -> String {
        topology::provider(&self.client, name, stock)
    }

    /// Providers of 8 VCPU each.
    pub fn hosts<const N: usize>(&self) -> [String; N] {
        std::array::from_fn(|number| self.host(&format!("H{}", number + 1), &[("VCPU", 8)]))
    }

    /// Send a command.
    pub fn send(&self, command: &Value) -> Answer {
        self.client.post("/ledger/v1/commands", command).unwrap()
    }

    /// Send a command that must be accepted; its events.
    #[track_caller]
    pub fn accept(&self, command: &Value) -> Vec<Value> {
        let answer = self.send(command).expect(200).json();
        answer["events"].as_array().expect("an answer has events").clone()
    }

    /// A provider with inventories as Placement spells them, of which fields may be missing.
    pub fn provider(&self, name: &str, parent: Option<&str>, inventories: &Value) -> String {
        let uuid = topology::uuid(name).to_string();
        self.accept(&json!([
            {"create_provider": {"uuid": uuid, "name": name, "parent": parent}},
            {"change_inventories": {"provider": uuid, "change": {"replace_all": inventories}}},
        ]));
        uuid
    }

    /// So many providers with these inventories, in few requests; their UUIDs.
    pub fn fleet(&self, count: u32, inventories: &Value) -> Vec<String> {
        let uuids: Vec<String> = (1..=count).map(host_uuid).collect();
        let commands: Vec<Value> = (1..).zip(&uuids).flat_map(|(number, uuid)| [
            json!({"create_provider": {"uuid": uuid, "name": format!("host{number}")}}),
            json!({"change_inventories": {"provider": uuid, "change": {"replace_all": inventories}}}),
        ]).collect();
        for list in commands.chunks(BULK) {
            self.accept(&list.into());
        }
        uuids
    }

    /// Write a consumer's whole holding by Placement's PUT.
    pub fn put(&self, consumer: &str, holding: &Holding, generation: &Value) -> Answer {
        self.client.put(&format!("/allocations/{consumer}"), &body(holding, generation)).unwrap()
    }

    /// Hand `holding` from one consumer to another by Placement's POST, as Nova does.
    pub fn hand_over(&self, from: &str, to: &str, holding: &Holding) -> Answer {
        let generation = json!(books::read(&self.client, from).1);
        let both =
            json!({from: body(&Holding::new(), &generation), to: body(holding, &Value::Null)});
        self.client.post("/allocations", &both).unwrap()
    }

    /// VCPU used of each host.
    pub fn vcpus<const N: usize>(&self, hosts: &[String; N]) -> [u64; N] {
        hosts.each_ref().map(|host| self.used(host).get("VCPU").copied().unwrap_or(0))
    }

    /// What is used of a host.
    pub fn used(&self, host: &str) -> Amounts {
        books::usages(&self.client, host)
    }

    /// What a consumer holds.
    pub fn holds(&self, consumer: &str) -> Holding {
        books::read(&self.client, consumer).0
    }

    /// A consumer's history: the kind of each event and the reason given, if any.
    pub fn history(&self, consumer: &str) -> Vec<(String, Option<String>)> {
        let answer =
            self.client.read(&format!("/ledger/v1/consumers/{consumer}/history?limit=1000"));
        let events = answer["events"].as_array().expect("a history has events");
        events
            .iter()
            .map(|event| {
                let kind = event["header"]["kind"].as_str().expect("an event has a kind");
                (kind.to_owned(), event["body"]["reason"].as_str().map(str::to_owned))
            })
            .collect()
    }

    /// The kinds of a consumer's events.
    pub fn kinds(&self, consumer: &str) -> Vec<String> {
        self.history(consumer).into_iter().map(|(kind, _)| kind).collect()
    }

    /// Where the latest move of an instance stands.
    pub fn move_state(&self, instance: &str) -> String {
        let answer = self.client.read(&format!("/ledger/v1/moves?consumer={instance}"));
        let moves = answer["moves"].as_array().expect("moves are a list");
        moves.last().expect("there is a move")["state"].as_str().unwrap().to_owned()
    }

    /// The newest sequence.
    pub fn sequence(&self) -> u64 {
        self.client.read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
    }

    /// VCPU held of each host at a sequence, as `replay at` tells it beside the running server.
    pub fn replayed<const N: usize>(&self, sequence: u64, hosts: &[String; N]) -> [u64; N] {
        let output = Command::new(binaries::replay())
            .args(["at", &sequence.to_string(), "--json", "--data-dir"])
            .arg(self.server.data_dir())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let state: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(state["sequence"], sequence);
        hosts.each_ref().map(|host| held_at(&state, host))
    }

    /// Stop the server cleanly and check the whole ledger.
    pub fn verify(mut self) {
        assert!(self.server.terminate().success(), "a clean stop");
        verify_ledger(&self.server.data_dir());
    }
}

fn held_at(state: &Value, host: &str) -> u64 {
    let providers = state["providers"].as_array().expect("a state has providers");
    let provider = providers.iter().find(|provider| provider["uuid"] == host).unwrap();
    provider["inventories"][0]["held"].as_u64().expect("an inventory shows what is held")
}

/// Commands in one list of many: well below the limits of a group.
pub const BULK: usize = 400;

/// The UUID of provider number n of a fleet.
fn host_uuid(number: u32) -> String {
    format!("10000000-0000-4000-8000-{number:012x}")
}

/// A consumer's UUID; the same in each run.
pub fn consumer(name: &str) -> String {
    topology::uuid(&format!("consumer {name}")).to_string()
}

/// What a consumer holds or asks for.
pub fn holding(parts: &[(&str, &str, u64)]) -> Holding {
    let mut holding = Holding::new();
    for &(provider, class, amount) in parts {
        holding.entry(provider.to_owned()).or_default().insert(class.to_owned(), amount);
    }
    holding
}

/// So many VCPU of one host.
pub fn vcpu(host: &str, amount: u64) -> Holding {
    holding(&[(host, "VCPU", amount)])
}

/// The body of Placement's PUT.
pub fn body(holding: &Holding, generation: &Value) -> Value {
    json!({
        "allocations": books::to_json(holding),
        "project_id": PROJECT,
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "consumer_generation": generation,
    })
}

/// `claim` with one option.
pub fn claim(consumer: &str, option: &Holding) -> Value {
    json!({"claim": {
        "consumer": consumer,
        "project_id": PROJECT,
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "options": [option],
    }})
}

/// `move_to_migration`.
pub fn to_migration(instance: &str, migration: &str, kind: &str) -> Value {
    json!({"move_to_migration": {"consumer": instance, "migration": migration, "kind": kind}})
}

/// `double_up` with one option.
pub fn double_up(instance: &str, kind: &str, option: &Holding) -> Value {
    json!({"double_up": {"consumer": instance, "kind": kind, "options": [option]}})
}

/// `reschedule` without an alternate: this destination failed.
pub fn fail(instance: &str, reason: &str) -> Value {
    json!({"reschedule": {"consumer": instance, "reason": reason}})
}

/// `confirm`.
pub fn confirm(instance: &str) -> Value {
    json!({"confirm": {"consumer": instance}})
}

/// `revert`.
pub fn revert(instance: &str) -> Value {
    json!({"revert": {"consumer": instance}})
}

/// `release`; `ended`: the consumer is gone for good.
pub fn release(consumer: &str, ended: bool, reason: &str) -> Value {
    json!({"release": {"consumer": consumer, "ended": ended, "reason": reason}})
}
