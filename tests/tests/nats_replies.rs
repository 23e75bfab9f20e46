//! Answers by NATS go to inboxes only: whoever may only ask cannot have the server write for him.
#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use serde_json::{Value, json};
use system_tests::asker::Asker;
use system_tests::nats::Nats;
use system_tests::server::Server;
use system_tests::subscriber::last_sequence;
use system_tests::topology;

/// How long a condition is waited for, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVED: &str = "the service is there";

fn readyz(server: &Server) -> Value {
    server.client().get("/readyz").unwrap().json()
}

#[track_caller]
fn until(server: &Server, what: &str, so: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ready = readyz(server);
        if so(&ready) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {ready}\n{}", server.log_tail());
        thread::sleep(Duration::from_millis(20));
    }
}

fn claim(host: &str, name: &str) -> Value {
    json!({
        "consumer": topology::uuid(name), "project_id": "p", "user_id": "u",
        "options": [{host: {"VCPU": 1}}],
    })
}

#[test]
fn an_answer_never_lands_where_the_ledger_writes() {
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    let asker = Asker::new(&nats.url());
    asker.command("claim", &[], &claim(&host, "honest")).ok();
    let level = |ready: &Value| {
        ["publisher", "buckets"].iter().all(|part| ready[part]["lag"] == 0)
            && ready["service"]["connected"] == true
    };
    until(&server, "level", level);
    let head = readyz(&server)["sequence"].as_u64().unwrap();
    let evil = claim(&host, "evil").to_string();
    let subjects = [
        ("alloc.v1.query.moves", "{}"),
        ("alloc.v1.query.nonsense", "{}"),
        ("alloc.v1.command.claim", evil.as_str()),
        ("$SRV.PING", ""),
        ("$SRV.STATS.allocd", ""),
    ];
    let replies = [
        "alloc.v1.event.Claimed.x.-",
        "alloc.v1.command.claim",
        "$KV.alloc_usage.evil",
        "$JS.API.STREAM.DELETE.KV_alloc_moves",
        "$SYS.REQ.SERVER.PING",
        "$SRV.INFO",
        "anywhere.else",
    ];
    for (subject, body) in subjects {
        for reply in replies {
            asker.send(subject, reply, body.as_bytes());
        }
    }
    let sent = u64::try_from(subjects.len() * replies.len()).unwrap();
    until(&server, "all were seen", |ready| ready["service"]["no_inbox"] == sent);
    // Whatever an answer had written would be found by now: questions are answered in order.
    asker.query("moves", &json!({})).ok();
    asker.command("claim", &[], &claim(&host, "honest too")).ok();
    until(&server, "level", level);
    let ready = readyz(&server);
    assert_eq!(ready["sequence"], head + 1, "a command without an inbox was carried out");
    assert_eq!(last_sequence(&nats.url()), Some(head + 1));
    assert_eq!(ready["publisher"]["alarm"], Value::Null);
    assert_eq!(ready["buckets"]["repairs"], 0, "{ready}");
    let metrics = server.client().get("/metrics").unwrap().text();
    let counted = format!("not_taken_total{{reason=\"no_inbox\"}} {sent}\n");
    assert!(metrics.contains(&counted), "{metrics}");
    let told = server.log().lines().filter(|line| line.contains("no inbox")).count();
    assert!((1..=20).contains(&told), "{told} lines for {sent} requests\n{}", server.log());
    assert!(server.terminate().success(), "a clean stop");
}

/// The operator says where inboxes are; the usual one is none then.
#[test]
fn inboxes_are_where_the_operator_says() {
    let nats = Nats::start();
    let inboxes = "_INBOX_nova, _INBOX_neutron.";
    let mut server = Server::with(&["--nats", &nats.url(), "--nats-inbox", inboxes], &[]);
    for prefix in ["_INBOX_nova", "_INBOX_neutron"] {
        let options = ConnectOptions::new().custom_inbox_prefix(prefix);
        Asker::with(&nats.url(), options).query("moves", &json!({})).ok();
    }
    Asker::new(&nats.url()).send("alloc.v1.query.moves", "_INBOX.a.b", b"{}");
    until(&server, SERVED, |ready| ready["service"]["no_inbox"] == 1);
    assert!(server.terminate().success(), "a clean stop");
}

/// Clients in another account ask through an import: the broker makes the reply subjects, and takes
/// none like them from clients.
#[test]
fn another_account_is_answered() {
    let config = "accounts {
        LEDGER {
            jetstream: enabled
            users: [ { user: allocd, password: a } ]
            exports: [ { service: 'alloc.v1.command.>' }, { service: 'alloc.v1.query.>' } ]
        }
        NOVA {
            users: [ { user: nova, password: b } ]
            imports: [
                { service: { account: LEDGER, subject: 'alloc.v1.command.>' }, share: true },
                { service: { account: LEDGER, subject: 'alloc.v1.query.>' } }
            ]
        }
    }";
    let nats = Nats::with(config, &[]);
    let arguments = ["--nats", &nats.url(), "--nats-user", "allocd"];
    let mut server = Server::with(&arguments, &[("ALLOCD_NATS_PASSWORD", "a")]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    until(&server, SERVED, |ready| ready["service"]["connected"] == true);
    let login = |user: &str, password: &str| {
        ConnectOptions::with_user_and_password(user.into(), password.into())
    };
    let inside = Asker::with(&nats.url(), login("allocd", "a"));
    inside.send("alloc.v1.query.moves", "_R_.forged.1", b"{}");
    let nova = Asker::with(&nats.url(), login("nova", "b"));
    nova.command("claim", &[], &claim(&host, "by nova")).ok();
    nova.query("moves", &json!({})).ok();
    let service = readyz(&server)["service"].clone();
    assert_eq!((&service["requests"], &service["no_inbox"]), (&json!(2), &json!(0)), "{service}");
    assert!(server.terminate().success(), "a clean stop");
}
