//! The examples do what they say, on a real server and a real broker.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Output;

use serde_json::{Value, json};
use system_tests::nats::Nats;
use system_tests::python::example;
use system_tests::server::Server;
use system_tests::topology;

struct Scene {
    nats: Nats,
    server: Server,
}

impl Scene {
    /// Two hosts, each with room for so many VCPU.
    fn start(vcpus: u64) -> Scene {
        let nats = Nats::start();
        let server = Server::with(&["--nats", &nats.url()], &[]);
        for name in ["H1", "H2"] {
            topology::provider(&server.client(), name, &[("VCPU", vcpus)]);
        }
        Scene { nats, server }
    }

    fn schedule(&self, servers: &str) -> Vec<Value> {
        lines(&example("scheduler.py", &["--nats", &self.nats.url(), "--servers", servers]))
    }

    fn head(&self) -> u64 {
        self.server.client().read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
    }
}

/// What an example that succeeded printed, a line of JSON each.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn the_scheduler_claims_and_resizes() {
    let scene = Scene::start(16);
    let steps = scene.schedule("3");
    let told: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(told, ["claim", "resize", "confirm"].repeat(3));
    let client = scene.server.client();
    let consumers = client.read("/ledger/v1/consumers")["consumers"].as_array().unwrap().clone();
    assert_eq!(consumers.len(), 3, "no migration is left over");
    for consumer in &consumers {
        let hosts = consumer["allocations"].as_object().unwrap();
        assert_eq!(hosts.values().collect::<Vec<_>>(), [&json!({"VCPU": 4})]);
    }
    let moves = client.read("/ledger/v1/moves?state=confirmed")["moves"].as_array().unwrap().len();
    assert_eq!(moves, 3);
}

#[test]
fn the_dashboard_shows_what_the_ledger_holds() {
    let scene = Scene::start(16);
    scene.schedule("2");
    let until = scene.head().to_string();
    let shown = lines(&example("dashboard.py", &["--nats", &scene.nats.url(), "--until", &until]));
    let last = shown.last().unwrap();
    assert_eq!((&last["hosts"], &last["used"]["VCPU"]), (&json!(2), &json!([8, 32])));
}

#[test]
fn the_auditor_checks_the_chain_also_where_the_stream_has_lost_its_beginning() {
    let scene = Scene::start(16);
    scene.schedule("2");
    let (until, url) = (scene.head().to_string(), scene.server.url());
    let arguments = ["--nats", &scene.nats.url(), "--ledger", &url, "--until", &until];
    let whole = lines(&example("auditor.py", &arguments)).remove(0);
    assert_eq!((&whole["sequence"], &whole["refilled"]), (&json!(scene.head()), &json!(0)));
    assert_eq!(whole["kinds"]["Confirmed"], 2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context =
            async_nats::jetstream::new(async_nats::connect(scene.nats.url()).await.unwrap());
        let stream = context.get_stream("ALLOC_EVENTS").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.max_messages = 5;
        context.update_stream(config).await.unwrap();
    });
    let late = lines(&example("auditor.py", &arguments)).remove(0);
    assert_eq!((&late["hash"], &late["kinds"]), (&whole["hash"], &whole["kinds"]));
    assert!(late["refilled"].as_u64().unwrap() > 0);
}
