//! Clients that are slow or greedy: they cost the server little, and nobody else waits for them.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::http::Client;
use system_tests::raw;
use system_tests::server::Server;
use system_tests::sse::{Item, Sse};
use system_tests::topology;

const STREAM: &str = "/ledger/v1/events/stream";
/// Between two bytes of a slow client, and between two looks at the server.
const STEP: Duration = Duration::from_millis(100);
/// How long a server without time limits is given until the test fails.
const FOREVER: Duration = Duration::from_secs(60);

/// A metric's value by its name and labels.
fn metric(client: &Client, name: &str) -> u64 {
    let text = client.get("/metrics").unwrap().text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse::<f64>().unwrap() as u64
}

fn closed(client: &Client, reason: &str) -> u64 {
    metric(client, &format!("allocd_connections_closed_total{{reason=\"{reason}\"}}"))
}

/// Sends a byte each [`STEP`] until the server answers or ends the connection; what it answered.
fn drip(stream: &mut TcpStream) -> Vec<u8> {
    let begun = Instant::now();
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(STEP)).unwrap();
    while begun.elapsed() < FOREVER {
        let sent = stream.write(b"x").is_ok();
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) => return answer,
            Ok(read) => answer.extend_from_slice(&some[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && sent => {}
            Err(_) => return answer,
        }
    }
    panic!("the server waits for this client forever");
}

#[test]
fn a_head_that_trickles_ends_the_connection() {
    let server = Server::start();
    let mut slow = raw::connect(server.port());
    slow.write_all(b"GET / HTTP/1.1\r\nx-slow: ").unwrap();
    assert_eq!(drip(&mut slow), b"");
    assert_eq!(closed(&server.client(), "head"), 1);
}

#[test]
fn a_body_that_trickles_is_given_up_with_the_reason() {
    let server = Server::start();
    let mut slow = raw::connect(server.port());
    slow.write_all(
        b"PUT /traits/CUSTOM_A HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\n\
          openstack-api-version: placement 1.39\r\naccept: application/json\r\n\
          content-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
    )
    .unwrap();
    let answer = drip(&mut slow);
    assert_eq!(raw::status(&answer), Some(408));
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("The body comes too slowly"), "{text}");
    server.client().get("/traits/CUSTOM_A").unwrap().expect(404);
}

/// Three hundred and fifty connections that each send a head slowly are all the server may have.
/// Others are served all the same.
#[test]
fn slow_heads_make_room_for_who_has_a_request() {
    let server = Server::with(&["--max-connections", "350"], &[]);
    let mut slow: Vec<TcpStream> = (0..350).map(|_| raw::connect(server.port())).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nx-slow: ").unwrap();
    }
    for round in 0..50 {
        for stream in &mut slow {
            // Those that made room are gone.
            let _ = stream.write(b"x");
        }
        // In the first second any of them may still be honest.
        let begun = Instant::now();
        while server.client().get("/").unwrap().status == 503 {
            assert!(round == 0 && begun.elapsed() < FOREVER, "round {round} was refused");
            thread::sleep(STEP);
        }
    }
    assert!(closed(&server.client(), "crowded") > 0);
}

#[test]
fn idle_connections_go_first_and_health_answers_in_a_full_house() {
    let server = Server::with(&["--max-connections", "8"], &[]);
    let port = server.port();
    let open_stream = || Sse::open(port, &format!("{STREAM}?after=latest"), &[]);
    // Seven that are used and one that is idle: that one makes room.
    let mut streams: Vec<Sse> = (0..7).map(|_| open_stream()).collect();
    let mut idle = raw::connect(port);
    streams.push(open_stream());
    assert!(raw::is_ended(&mut idle), "the idle connection was kept");
    for stream in &mut streams {
        assert!(matches!(stream.next_item(), Item::Comment(_)), "a connection in use was ended");
    }
    // All eight are in use now.
    for _ in 0..100 {
        for path in ["/healthz", "/readyz", "/metrics"] {
            server.client().get(path).unwrap().expect(200);
        }
    }
    // Those who hold connections for nothing do not keep the others out.
    let held: Vec<TcpStream> = (0..100).map(|_| raw::connect(port)).collect();
    server.client().get("/healthz").unwrap().expect(200);
    let refused = server.client().get("/resource_providers").unwrap().expect(503);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    drop(held);
    drop(streams.pop());
    let begun = Instant::now();
    while server.client().get("/resource_providers").unwrap().status == 503 {
        assert!(begun.elapsed() < FOREVER, "a place that is free again is not given away");
        thread::sleep(STEP);
    }
}

/// Many large events, in few groups.
fn events(client: &Client, host: &str, lists: u64) {
    let consumer = |number: u64| topology::uuid(&format!("consumer {number}")).to_string();
    for _ in 0..lists {
        let list: Vec<Value> = (0..100)
            .flat_map(|number| {
                let reason = "r".repeat(1_000);
                [
                    json!({"claim": {
                        "consumer": consumer(number), "project_id": "p", "user_id": "u",
                        "options": [{host: {"VCPU": 1}}],
                    }}),
                    json!({"release": {"consumer": consumer(number), "reason": reason}}),
                ]
            })
            .collect();
        client.post("/ledger/v1/commands", &json!(list)).unwrap().expect(200);
    }
}

/// A hundred readers of events that read nothing: what waits for them is bounded, each is ended,
/// and nobody else waits meanwhile.
#[test]
fn readers_that_read_nothing_cost_little_and_end() {
    const READERS: u64 = 100;
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "host", &[("VCPU", 1_000_000)]);
    events(&client, &host, 10);
    let before = metric(&client, "process_resident_memory_bytes");
    let readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = raw::narrow(server.port());
            let head = format!("GET {STREAM} HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let (mut most, mut resident) = (0, 0);
    let begun = Instant::now();
    while metric(&client, "allocd_event_streams_ended_total{reason=\"slow\"}") < READERS {
        assert!(begun.elapsed() < FOREVER, "readers that take nothing are kept");
        most = most.max(metric(&client, "allocd_memory_bytes{part=\"event_streams\"}"));
        resident = resident.max(metric(&client, "process_resident_memory_bytes"));
        events(&client, &host, 1);
    }
    // Two pieces of 32 KiB and an event for each, and 2 MiB of the latest events.
    assert!(most > 0 && most < READERS * 70_000 + (2 << 20), "{most} bytes waited");
    assert!(resident < before + (100 << 20), "from {before} to {resident} bytes");
    let begun = Instant::now();
    while closed(&client, "stalled") < READERS {
        assert!(begun.elapsed() < FOREVER, "connections that take nothing are kept");
        thread::sleep(STEP);
    }
    assert!(metric(&client, "allocd_memory_bytes{part=\"event_streams\"}") <= 2 << 20);
    assert_eq!(metric(&client, "allocd_memory_bytes{part=\"unsent_answers\"}"), 0);
    drop(readers);
}
