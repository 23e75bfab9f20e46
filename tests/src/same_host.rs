//! The story of Launchpad bug 1790204: a host whose disk is full with one instance, which is
//! resized on that host. It is told by the ledger's own commands, or by Placement's calls.

use serde_json::{Value, json};

use crate::books::{self, Amounts, Holding};
use crate::http::{Answer, Client};
use crate::replay_tool::{Said, replay};
use crate::server::Server;
use crate::topology;

/// The instance that is resized.
pub const INSTANCE: &str = "11111111-1111-4111-8111-111111111111";
/// The consumer that holds the source meanwhile.
pub const MIGRATION: &str = "22222222-2222-4222-8222-222222222222";
/// The request that booted it.
pub const BOOT: &str = "req-b0000000-0000-4000-8000-000000000000";
/// The request that resizes it.
pub const RESIZE: &str = "req-e0000000-0000-4000-8000-000000000000";

/// What the host has.
pub const STOCK: [(&str, u64); 3] = [("VCPU", 8), ("MEMORY_MB", 8_192), ("DISK_GB", 1_028)];
/// The flavor that fills the host's disk.
pub const SMALL: [(&str, u64); 3] = [("VCPU", 1), ("MEMORY_MB", 2_048), ("DISK_GB", 1_028)];
/// One VCPU more, and the same disk.
pub const LARGE: [(&str, u64); 3] = [("VCPU", 2), ("MEMORY_MB", 2_048), ("DISK_GB", 1_028)];

/// One host with 1028 GB, and one instance that holds all of them.
pub struct Scene {
    /// The server.
    pub server: Server,
    /// The host.
    pub host: String,
}

impl Scene {
    /// The host, and nothing on it yet.
    pub fn start() -> Scene {
        Scene::with(&[])
    }

    /// The same with further arguments of the server.
    pub fn with(arguments: &[&str]) -> Scene {
        let server = Server::with(arguments, &[]);
        let host = topology::provider(&server.client(), "compute1", &STOCK);
        Scene { server, host }
    }

    /// A flavor, held on the host.
    pub fn on_host(&self, flavor: &[(&str, u64)]) -> Holding {
        let amounts = flavor.iter().map(|&(class, amount)| (class.to_owned(), amount)).collect();
        Holding::from([(self.host.clone(), amounts)])
    }

    /// Send a command of the ledger's own API; it must be accepted, and nothing oversold.
    pub fn command(&self, request: &str, command: &Value) -> Value {
        let client = self.server.client();
        let answer = client.request_id(request).post("/ledger/v1/commands", command);
        let answer = answer.unwrap().expect(200).json();
        assert_eq!(answer["outcome"], "accepted");
        books::check_capacity(&client, &self.host);
        answer
    }

    /// Claim a flavor on the host for the instance; it must be accepted.
    pub fn claim(&self, request: &str, flavor: &[(&str, u64)]) -> Value {
        let option: Value = self
            .on_host(flavor)
            .into_iter()
            .map(|(provider, amounts)| (provider, json!(amounts)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let claim = json!({
            "consumer": INSTANCE, "project_id": "project", "user_id": "user",
            "consumer_type": "INSTANCE", "options": [option],
        });
        self.command(request, &json!({ "claim": claim }))
    }

    /// Boot, open the move and claim the destination on the same host, by the ledger's commands.
    pub fn resize_natively(&self) {
        self.claim(BOOT, &SMALL);
        let open = json!({"consumer": INSTANCE, "migration": MIGRATION, "kind": "resize"});
        self.command(RESIZE, &json!({ "move_to_migration": open }));
        self.claim(RESIZE, &LARGE);
        self.holds(&LARGE, &SMALL);
        assert_eq!(self.usages(), amounts(&LARGE), "the larger side counts, not the sum");
    }

    /// The same by Placement's calls; the answer to the claim of the destination.
    pub fn resize_by_placement(&self) -> Answer {
        self.open_by_placement();
        self.put(&self.server.client().request_id(RESIZE), &LARGE)
    }

    /// Boot and hand the source over by Placement's calls.
    pub fn open_by_placement(&self) {
        let client = self.server.client();
        self.put(&client.request_id(BOOT), &SMALL).expect(204);
        self.hand_over(&client.request_id(RESIZE), &SMALL).expect(204);
    }

    /// Hand what the instance holds to the migration by Placement's call.
    pub fn hand_over(&self, client: &Client, flavor: &[(&str, u64)]) -> Answer {
        let generation = books::read(client, INSTANCE).1;
        let open = json!({
            INSTANCE: self.body("INSTANCE", &[], generation),
            MIGRATION: self.body("MIGRATION", flavor, None),
        });
        client.post("/allocations", &open).unwrap()
    }

    /// Claim a flavor for the instance, which holds nothing, by Placement's call.
    pub fn put(&self, client: &Client, flavor: &[(&str, u64)]) -> Answer {
        let body = self.body("INSTANCE", flavor, None);
        client.put(&format!("/allocations/{INSTANCE}"), &body).unwrap()
    }

    /// Give the source back to the instance by Placement's call.
    pub fn revert_by_placement(&self) -> Answer {
        let client = self.server.client().request_id(RESIZE);
        let generation = |consumer| books::read(&client, consumer).1;
        let back = json!({
            MIGRATION: self.body("MIGRATION", &[], generation(MIGRATION)),
            INSTANCE: self.body("INSTANCE", &SMALL, generation(INSTANCE)),
        });
        client.post("/allocations", &back).unwrap()
    }

    fn body(&self, kind: &str, flavor: &[(&str, u64)], generation: Option<u64>) -> Value {
        let holding = if flavor.is_empty() { Holding::new() } else { self.on_host(flavor) };
        json!({
            "allocations": books::to_json(&holding), "project_id": "project", "user_id": "user",
            "consumer_type": kind, "consumer_generation": generation,
        })
    }

    /// What the host's usages are.
    pub fn usages(&self) -> Amounts {
        books::usages(&self.server.client(), &self.host)
    }

    /// Check what instance and migration hold.
    #[track_caller]
    pub fn holds(&self, instance: &[(&str, u64)], migration: &[(&str, u64)]) {
        let client = self.server.client();
        for (consumer, flavor) in [(INSTANCE, instance), (MIGRATION, migration)] {
            let expected = if flavor.is_empty() { Holding::new() } else { self.on_host(flavor) };
            assert_eq!(books::read(&client, consumer).0, expected, "what {consumer} holds");
        }
    }

    /// The state of the only move.
    pub fn move_state(&self) -> String {
        let answer = self.server.client().read("/ledger/v1/moves");
        let moves = answer["moves"].as_array().unwrap();
        assert_eq!(moves.len(), 1);
        moves[0]["state"].as_str().unwrap().to_owned()
    }

    /// Run the tool on the server's folder.
    pub fn replay(&self, arguments: &[&str]) -> Said {
        replay(&self.server.data_dir(), arguments)
    }

    /// Check that at no event of the past more was held than there is.
    pub fn was_never_oversold(&self) {
        let last = self.replay(&["at", "latest", "--json"]).json()["sequence"].as_u64().unwrap();
        for sequence in 4..=last {
            let then = self.replay(&["at", &sequence.to_string(), "--json"]).json();
            assert_eq!(then["sequence"], sequence);
            for inventory in then["providers"][0]["inventories"].as_array().unwrap() {
                let number = |name: &str| inventory[name].as_u64().unwrap();
                assert!(number("held") <= number("capacity"), "event {sequence}: {inventory}");
            }
        }
    }
}

/// A flavor as amounts by class.
pub fn amounts(flavor: &[(&str, u64)]) -> Amounts {
    flavor.iter().map(|&(class, amount)| (class.to_owned(), amount)).collect()
}
