//! A flood of queries by NATS: commands and the queries of others go through all the while, the log
//! stays short, and memory is bounded by what may wait.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::Client;
use serde_json::{Value, json};
use system_tests::asker::Asker;
use system_tests::nats::Nats;
use system_tests::server::Server;
use system_tests::topology;

const FLOODS: usize = 2;
const QUERIES: usize = 100_000;
const CLAIMS: usize = 100;

/// How long a condition is waited for, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes that memory may grow by: what may wait and be in hand, and room for the allocator.
const GROWTH: u64 = 96 * 1024 * 1024;

/// Lines of the log that a flood may cost.
const LINES: usize = 200;

#[test]
fn a_flood_of_queries_keeps_no_command_and_no_other_query_waiting() {
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 1_000)]);
    let (claimer, reader) = (Asker::new(&nats.url()), Asker::new(&nats.url()));
    claimer.query("moves", &json!({})).ok();
    let before = memory(&server);
    let url = nats.url();
    let slowest = thread::scope(|scope| {
        let floods: Vec<_> = (0..FLOODS).map(|_| scope.spawn(|| flood(&url))).collect();
        let reading = scope.spawn(|| {
            for _ in 0..CLAIMS {
                let usages = reader.try_ask("alloc.v1.query.usages", &[], br#"{"project": "p"}"#);
                usages.expect("an answer at the first try").ok();
            }
        });
        let mut slowest = Duration::ZERO;
        let mut claims = 0;
        // Claims go on until the flood is over, so that some of them meet it.
        while claims < CLAIMS || floods.iter().any(|flood| !flood.is_finished()) {
            let begun = Instant::now();
            let claim = json!({
                "consumer": topology::uuid(&format!("consumer {claims}")),
                "project_id": "p", "user_id": "u", "options": [{&host: {"VCPU": 1}}],
            });
            // Whether or not there is room is answered; that there is too much to do never.
            let answer =
                claimer.try_ask("alloc.v1.command.claim", &[], claim.to_string().as_bytes());
            let answer = answer.expect("an answer at the first try");
            assert!(matches!(answer.error(), None | Some(409)), "{:?}", answer.headers);
            slowest = slowest.max(begun.elapsed());
            claims += 1;
        }
        println!("{claims} claims while {} queries came", FLOODS * QUERIES);
        reading.join().unwrap();
        slowest
    });
    settled(&server);
    let after = memory(&server);
    let status = server.client().get("/readyz").unwrap().json();
    let metrics = server.client().get("/metrics").unwrap().text();
    metrics
        .lines()
        .filter(|line| line.contains("not_taken_total{"))
        .for_each(|it| println!("{it}"));
    println!(
        "slowest claim {slowest:?}; memory {before} before, {after} after; {}",
        status["service"]
    );
    assert!(after < before + GROWTH, "{after} bytes after {before}");
    let lines = server.log().lines().count();
    assert!(lines < LINES, "{lines} lines\n{}", server.log_tail());
    assert_eq!(status["service"]["connected"], true);
    claimer.query("moves", &json!({})).ok();
    assert!(server.terminate().success(), "a clean stop");
}

/// Sends queries as quickly as the broker takes them, from one inbox.
fn flood(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client: Client = async_nats::connect(url).await.unwrap();
        let inbox = client.new_inbox();
        for number in 0..QUERIES {
            let reply = format!("{inbox}.{number}");
            let subject = "alloc.v1.query.list_providers";
            client.publish_with_reply(subject, reply, "{}".into()).await.unwrap();
        }
        client.flush().await.unwrap();
    });
}

/// Waits until nothing is in hand any more.
fn settled(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metrics = server.client().get("/metrics").unwrap().text();
        if metrics.contains("allocd_requests_in_hand 0\n") {
            return;
        }
        assert!(Instant::now() < deadline, "requests are in hand for ever");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Bytes of the server's memory that are in use.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: Value = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap().into();
    kib.as_u64().unwrap() * 1024
}
