//! `GET /ledger/v1/events/stream`: every event once and in order, from any position, to any reader.
#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use system_tests::http::Client;
use system_tests::server::Server;
use system_tests::sse::{Item, Sse};
use system_tests::topology;

const STREAM: &str = "/ledger/v1/events/stream";

fn uuid(number: u64) -> String {
    topology::uuid(&format!("consumer {number}")).to_string()
}

/// So many claims of one VCPU; they are events from the head on.
fn claims(client: &Client, host: &str, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let body = json!({"claim": {
            "consumer": uuid(number), "project_id": "p", "user_id": "u",
            "options": [{host: {"VCPU": 1}}],
        }});
        client.post("/ledger/v1/commands", &body).unwrap().expect(200);
    }
}

fn host(client: &Client) -> String {
    topology::provider(client, "host", &[("VCPU", 1_000_000)])
}

fn head(client: &Client) -> u64 {
    client.read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
}

/// The events of GET events, as the stream tells them.
fn listed(client: &Client, query: &str) -> Vec<Value> {
    client.read(&format!("/ledger/v1/events?limit=1000&{query}"))["events"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_stream_has_every_event_once_and_goes_on_with_new_ones() {
    let server = Server::start();
    let client = server.client();
    let host = host(&client);
    claims(&client, &host, 0..20);
    let mut stream = Sse::open(server.port(), STREAM, &[]);
    assert!(stream.head.iter().any(|line| line.starts_with("content-type: text/event-stream")));
    let begun = head(&client);
    for (at, event) in (1..=begun).zip(listed(&client, "after=0")) {
        let (id, kind, data) = stream.next_event();
        assert_eq!((id, &data), (at, &event));
        assert_eq!(event["header"]["kind"], kind.as_str());
    }
    // What nobody has written yet comes once it is durable.
    thread::scope(|scope| {
        scope.spawn(|| claims(&client, &host, 20..60));
        for at in begun + 1..=begun + 40 {
            let (id, kind, _) = stream.next_event();
            assert_eq!((id, kind.as_str()), (at, "Claimed"));
        }
    });
}

#[test]
fn a_reader_that_comes_back_goes_on_without_a_gap() {
    let mut server = Server::start();
    let client = server.client();
    let host = host(&client);
    claims(&client, &host, 0..50);
    let mut seen = Vec::new();
    let mut last = String::from("0");
    for round in 0..10 {
        // The server itself may go in between.
        if round == 5 {
            server.kill();
            server.restart();
        }
        let mut stream = Sse::open(server.port(), STREAM, &[("last-event-id", &last)]);
        for _ in 0..4 {
            let (id, _, _) = stream.next_event();
            seen.push(id);
            last = id.to_string();
        }
    }
    assert_eq!(seen, (1..=40).collect::<Vec<u64>>());
}

#[test]
fn filters_are_those_of_the_list() {
    let server = Server::start();
    let client = server.client();
    let host = host(&client);
    claims(&client, &host, 0..10);
    let consumer = uuid(7);
    client.delete(&format!("/allocations/{consumer}")).unwrap().expect(204);
    for query in [
        format!("consumer={consumer}"),
        "kind=Claimed&after=5".to_owned(),
        format!("provider={host}&kind=ProviderCreated"),
    ] {
        let mut stream = Sse::open(server.port(), &format!("{STREAM}?{query}"), &[]);
        let expected = listed(&client, &query);
        assert!(!expected.is_empty());
        for event in expected {
            assert_eq!(stream.next_event().2, event, "{query}");
        }
    }
    let mut latest =
        Sse::open(server.port(), &format!("{STREAM}?after=latest&consumer={}", uuid(11)), &[]);
    assert!(matches!(latest.next_item(), Item::Comment(_)));
    claims(&client, &host, 10..13);
    assert_eq!(latest.next_event().2["body"]["consumers"][0]["consumer"], uuid(11));
}

#[test]
fn what_cannot_be_followed_is_told() {
    let server = Server::start();
    let client = server.client();
    for (query, status) in [
        ("pony=1", 400),
        ("limit=5", 400),
        ("after=x", 400),
        ("after=99", 404),
        ("consumer=x", 400),
    ] {
        client.get(&format!("{STREAM}?{query}")).unwrap().expect(status);
    }
    client.with("last-event-id", "pony").get(STREAM).unwrap().expect(400);
    let beyond = client.with("last-event-id", "99").get(STREAM).unwrap().expect(404).json();
    assert_eq!(beyond["errors"][0]["cause"], "beyond_end");
    client.without("x-auth-token").get(STREAM).unwrap().expect(401);
}

/// A reader that takes nothing is sent away, and what the server keeps for it is bounded; it comes
/// back and misses nothing. Nobody else waits for it (J19).
#[test]
fn a_slow_reader_is_sent_away_and_can_come_back() {
    let server = Server::start();
    let client = server.client();
    let host = host(&client);
    // More than sockets hold: 12,000 events of 2 KiB and more.
    let list: Vec<Value> = (0..100)
        .flat_map(|number| {
            let reason = "r".repeat(1_000);
            [
                json!({"claim": {
                    "consumer": uuid(number), "project_id": "p", "user_id": "u",
                    "options": [{&host: {"VCPU": 1}}],
                }}),
                json!({"release": {"consumer": uuid(number), "reason": reason}}),
            ]
        })
        .collect();
    let list = json!(list);
    let mut slow = Sse::open(server.port(), STREAM, &[]);
    assert_eq!(slow.next_event().0, 1);
    for _ in 0..60 {
        client.post("/ledger/v1/commands", &list).unwrap().expect(200);
    }
    let open = || {
        let metrics = client.get("/metrics").unwrap().text();
        let line = metrics.lines().find(|line| line.starts_with("allocd_event_streams ")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    while open() > 0 {
        thread::sleep(Duration::from_millis(50));
    }
    let mut last = 1;
    loop {
        match slow.next_item() {
            Item::Event { id, .. } => {
                assert_eq!(id, last + 1);
                last = id;
            }
            Item::Comment(_) => {}
            Item::End => break,
        }
    }
    let end = head(&client);
    assert!(last < end, "it got everything");
    let mut again = Sse::open(server.port(), STREAM, &[("last-event-id", &last.to_string())]);
    for at in last + 1..=end {
        assert_eq!(again.next_event().0, at);
    }
}

#[test]
fn the_end_of_the_server_ends_the_streams() {
    let mut server = Server::start();
    let mut stream = Sse::open(server.port(), &format!("{STREAM}?after=latest"), &[]);
    assert!(matches!(stream.next_item(), Item::Comment(_)));
    assert!(server.terminate().success(), "a clean stop");
    loop {
        match stream.next_item() {
            Item::Comment(_) => {}
            other => break assert_eq!(other, Item::End),
        }
    }
}
