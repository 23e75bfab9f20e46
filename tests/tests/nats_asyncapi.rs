//! docs/asyncapi.yaml says what is really sent: every message of a story on a real broker is compared
//! with it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, Instant};

use async_nats::jetstream;
use futures::StreamExt;
use serde_json::{Value, json};
use system_tests::asker::{Asker, Reply};
use system_tests::asyncapi::Document;
use system_tests::nats::Nats;
use system_tests::record::Record;
use system_tests::server::Server;
use system_tests::subscriber::Subscriber;
use system_tests::topology;

const PATIENCE: Duration = Duration::from_secs(120);

fn uuid(name: &str) -> String {
    topology::uuid(&format!("consumer {name}")).to_string()
}

fn headers(reply: &Reply) -> Vec<(String, String)> {
    let all = reply.headers.iter();
    all.flat_map(|(name, values)| {
        values.iter().map(|value| (name.to_string(), value.to_string())).collect::<Vec<_>>()
    })
    .collect()
}

#[track_caller]
fn fits(document: &Document, message: &str, reply: &Reply) {
    let wrong =
        [document.headers(message, &headers(reply)), document.payload(message, &reply.json())];
    assert_eq!(wrong.concat(), Vec::<String>::new());
}

#[test]
fn the_document_says_what_is_sent() {
    let document = Document::read();
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let client = server.client();
    let [one, two] = ["H1", "H2"].map(|name| topology::provider(&client, name, &[("VCPU", 8)]));
    let aggregates = json!({"aggregates": [uuid("rack")], "resource_provider_generation": 1});
    client.put(&format!("/resource_providers/{one}/aggregates"), &aggregates).unwrap().expect(200);
    let asker = Asker::new(&nats.url());
    let claim = |host: &str, amount: u64| json!({"consumer": uuid("I"), "project_id": "p", "user_id": "u", "options": [{host: {"VCPU": amount}}]});
    // Commands and queries, done and failed.
    let key = [("Idempotency-Key", "k")];
    fits(&document, "done", &asker.command("claim", &key, &claim(&one, 2)));
    fits(&document, "done", &asker.command("claim", &key, &claim(&one, 2)));
    fits(
        &document,
        "failed",
        &asker.command("claim", &[("Idempotency-Key", "l")], &claim(&two, 99)),
    );
    fits(&document, "failed", &asker.command("claim", &[], &json!({})));
    let open = json!({"consumer": uuid("I"), "migration": uuid("M"), "kind": "migration"});
    fits(&document, "done", &asker.command("move_to_migration", &[], &open));
    fits(&document, "done", &asker.command("claim", &[], &claim(&two, 2)));
    fits(&document, "answer", &asker.query("usages", &json!({"project": "p"})));
    fits(&document, "failed", &asker.query("fly", &json!({})));
    let at = [("Ledger-At", "3")];
    fits(&document, "answer", &asker.ask("alloc.v1.query.providers", &at, b""));
    for (verb, message) in [("PING", "ping"), ("INFO", "info"), ("STATS", "stats")] {
        assert!(document.is_subject_of("verb", &format!("$SRV.{verb}")));
        for told in asker.all(&format!("$SRV.{verb}"), Duration::from_millis(300)) {
            assert_eq!(document.payload(message, &told), Vec::<String>::new());
        }
    }
    events(&document, &nats, head(&server));
    buckets(&document, &nats, head(&server));
    assert!(server.terminate().success(), "a clean stop");
}

fn head(server: &Server) -> u64 {
    server.client().read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
}

fn events(document: &Document, nats: &Nats, head: u64) {
    let subscriber = Subscriber::start(&nats.url());
    subscriber.wait_for(usize::try_from(head).unwrap(), PATIENCE);
    for delivery in subscriber.finish() {
        assert!(document.is_subject_of("event", &delivery.subject), "{}", delivery.subject);
        assert_eq!(document.headers("event", &delivery.headers), Vec::<String>::new());
        Record::read(&delivery.body).unwrap();
    }
}

/// All that is in the buckets once they are level.
fn buckets(document: &Document, nats: &Nats, head: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let context =
        runtime.block_on(async { jetstream::new(async_nats::connect(nats.url()).await.unwrap()) });
    for (bucket, channel, message) in [
        ("alloc_usage", "usage", "usage"),
        ("alloc_moves", "moves", "move"),
        ("alloc_capacity", "capacity", "capacity"),
    ] {
        let deadline = Instant::now() + PATIENCE;
        let entries = loop {
            let entries = runtime.block_on(entries(&context, bucket));
            let level =
                |(key, value): &(String, Value)| key == "_as_of" && value["sequence"] == head;
            if entries.iter().any(level) {
                break entries;
            }
            assert!(Instant::now() < deadline, "{bucket} is not level: {entries:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(entries.len() > 1, "{bucket} has nothing");
        for (key, value) in entries {
            let subject = format!("$KV.{bucket}.{key}");
            let (channel, message) =
                if key == "_as_of" { ("asOf", "asOf") } else { (channel, message) };
            assert!(document.is_subject_of(channel, &subject), "{subject}");
            assert_eq!(document.payload(message, &value), Vec::<String>::new(), "{subject}");
        }
    }
}

async fn entries(context: &jetstream::Context, bucket: &str) -> Vec<(String, Value)> {
    let Ok(store) = context.get_key_value(bucket).await else { return Vec::new() };
    let mut keys = store.keys().await.unwrap();
    let mut entries = Vec::new();
    while let Some(key) = keys.next().await {
        let key = key.unwrap();
        if let Some(value) = store.get(key.clone()).await.unwrap() {
            entries.push((key, serde_json::from_slice(&value).unwrap()));
        }
    }
    entries
}

/// The check can fail: it is not passed by a message with a field more, less or of another type.
#[test]
fn the_check_is_not_fooled() {
    let document = Document::read();
    assert!(document.addresses().contains(&"alloc.v1.command.{name}".to_owned()));
    let good = json!({"ledger_id": uuid("x"), "recorded_at": "2026-03-01T10:00:00.000000Z", "sequence": 5});
    assert_eq!(document.payload("asOf", &good), Vec::<String>::new());
    for (field, value) in [
        ("more", json!(1)),
        ("sequence", json!("5")),
        ("ledger_id", json!("x")),
        ("recorded_at", json!("now")),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert_eq!(document.payload("asOf", &bad).len(), 1, "{field}");
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().remove("sequence");
    assert_eq!(document.payload("asOf", &bad).len(), 1);
    assert!(!document.is_subject_of("event", "alloc.v1.event.Claimed.q.000"));
}
