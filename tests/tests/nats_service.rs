//! Commands and queries by NATS request and reply, on a real broker: the same commands and answers
//! as over HTTP.
#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use serde_json::{Value, json};
use system_tests::asker::Asker;
use system_tests::nats::Nats;
use system_tests::replay_tool::replay;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

/// How long the service may take to come back once the broker has.
const BACK: Duration = Duration::from_secs(120);

struct Scene {
    nats: Nats,
    server: Server,
    host: String,
    asker: Asker,
}

impl Scene {
    fn start() -> Scene {
        let nats = Nats::start();
        let server = Server::with(&["--nats", &nats.url()], &[]);
        let host = topology::provider(&server.client(), "host", &[("VCPU", 8)]);
        let asker = Asker::new(&nats.url());
        Scene { nats, server, host, asker }
    }

    fn claim(&self, consumer: &str, amount: u64) -> Value {
        json!({
            "consumer": uuid(consumer), "project_id": "p", "user_id": "u",
            "consumer_type": "INSTANCE", "options": [{&self.host: {"VCPU": amount}}],
        })
    }

    fn head(&self) -> u64 {
        self.server.client().read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
    }

    fn ends_well(mut self) {
        assert!(self.server.terminate().success(), "a clean stop");
        verify_ledger(&self.server.data_dir());
    }
}

/// A request that is wrong: subject, headers, body, and the code of the error.
type Wrong<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [u8], u16);

fn uuid(name: &str) -> String {
    topology::uuid(&format!("consumer {name}")).to_string()
}

#[test]
fn a_command_by_nats_has_the_outcome_that_http_gives() {
    let scene = Scene::start();
    let reply = scene.asker.command("claim", &[], &scene.claim("a", 3)).ok();
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    assert!(reply.header("X-OpenStack-Request-ID").is_some_and(|id| id.starts_with("req-")));
    let done = reply.json();
    assert_eq!((&done["outcome"], &done["repeated"]), (&json!("accepted"), &json!(false)));
    assert_eq!(done["events"][0]["header"]["kind"], "Claimed");
    let held = scene.server.client().read(&format!("/resource_providers/{}/usages", scene.host));
    assert_eq!(held["usages"]["VCPU"], 3);
    // What HTTP answers to the same refused command is what NATS answers.
    let refused = scene.asker.command("claim", &[], &scene.claim("b", 9));
    assert_eq!(refused.error(), Some(409));
    let body = json!({"claim": scene.claim("c", 9)});
    let over_http = scene.server.client().post("/ledger/v1/commands", &body).unwrap();
    let by_nats = refused.json()["errors"][0].clone();
    for field in ["status", "title", "cause", "passed_over", "shortages", "needed", "free"] {
        assert_eq!(by_nats[field], over_http.json()["errors"][0][field], "{field}");
    }
    scene.ends_well();
}

#[test]
fn messagepack_is_answered_with_messagepack() {
    let scene = Scene::start();
    let packed = rmp_serde::to_vec_named(&scene.claim("a", 2)).unwrap();
    let form = [("Content-Type", "application/msgpack")];
    let reply = scene.asker.ask("alloc.v1.command.claim", &form, &packed).ok();
    assert_eq!(reply.header("Content-Type"), Some("application/msgpack"));
    let done: Value = rmp_serde::from_slice(&reply.body).unwrap();
    assert_eq!(done["events"][0]["body"]["consumers"][0]["consumer"], uuid("a"));
    let packed = rmp_serde::to_vec_named(&json!({"project": "p"})).unwrap();
    let usages = scene.asker.ask("alloc.v1.query.usages", &form, &packed).ok();
    let usages: Value = rmp_serde::from_slice(&usages.body).unwrap();
    assert_eq!(usages["types"]["INSTANCE"]["classes"]["VCPU"]["held"], 2);
    scene.ends_well();
}

/// Invariant 6 on both ways in: a key has one outcome, whichever way it comes.
#[test]
fn a_key_has_one_outcome_by_nats_and_http() {
    let scene = Scene::start();
    let headers = [("Idempotency-Key", "k-1"), ("X-Project-Id", "p")];
    let first = scene.asker.command("claim", &headers, &scene.claim("a", 2)).ok().json();
    let again = scene.asker.command("claim", &headers, &scene.claim("a", 2)).ok().json();
    assert_eq!((&again["repeated"], &again["events"]), (&json!(true), &first["events"]));
    let client = scene.server.client().with("idempotency-key", "k-1").with("x-project-id", "p");
    let body = json!({"claim": scene.claim("a", 2)});
    let over_http = client.post("/ledger/v1/commands", &body).unwrap().expect(200).json();
    assert_eq!((&over_http["repeated"], &over_http["events"]), (&json!(true), &first["events"]));
    let other = scene.asker.command("claim", &headers, &scene.claim("a", 1));
    assert_eq!(other.json()["errors"][0]["cause"], "command_id_reused");
    scene.ends_well();
}

#[test]
fn what_is_wrong_is_a_service_error_and_changes_nothing() {
    let scene = Scene::start();
    let claim = scene.claim("a", 1).to_string();
    scene.asker.query("moves", &json!({})).ok();
    let before = scene.head();
    let key = "k".repeat(256);
    let msgpack = ("Content-Type", "application/msgpack");
    let wrong: [Wrong<'_>; 12] = [
        ("command.fly", &[], b"{}", 404),
        ("command.claim", &[], b"", 400),
        ("command.claim", &[], b"{\"consumer\": 1}", 400),
        ("command.claim", &[], b"\xff\x00", 400),
        ("command.claim", &[msgpack], claim.as_bytes(), 400),
        ("command.claim", &[("Content-Type", "text/plain")], claim.as_bytes(), 415),
        ("command.claim", &[("Idempotency-Key", &key)], claim.as_bytes(), 400),
        ("query.fly", &[], b"{}", 404),
        ("query.consumer", &[], b"{}", 400),
        ("query.consumers", &[], b"{\"pony\": 1}", 400),
        ("query.candidates", &[], b"[]", 400),
        ("query.events", &[("Ledger-At", "5")], b"{}", 400),
    ];
    for (subject, headers, body, code) in wrong {
        let reply = scene.asker.ask(&format!("alloc.v1.{subject}"), headers, body);
        assert_eq!(reply.error(), Some(code), "{subject} {body:?}: {:?}", reply.headers);
        assert_eq!(reply.json()["errors"][0]["status"], code);
    }
    assert_eq!(scene.head(), before);
    scene.ends_well();
}

#[test]
fn queries_are_answered_as_gets_are() {
    let scene = Scene::start();
    scene.asker.command("claim", &[], &scene.claim("a", 3)).ok();
    let (id, host) = (uuid("a"), &scene.host);
    let same: [(&str, Value, String); 10] = [
        ("consumer", json!({"id": id}), format!("/ledger/v1/consumers/{id}")),
        ("consumer_history", json!({"id": id}), format!("/ledger/v1/consumers/{id}/history")),
        ("provider_usages", json!({"id": host}), format!("/resource_providers/{host}/usages")),
        ("usages", json!({"project": "p"}), "/ledger/v1/usages?project=p".into()),
        ("show_usages", json!({"project_id": "p"}), "/usages?project_id=p".into()),
        ("moves", json!({"live": true}), "/ledger/v1/moves?live=true".into()),
        ("fits", json!({"resources": "VCPU:1"}), "/ledger/v1/fits?resources=VCPU:1".into()),
        (
            "candidates",
            json!({"resources": "VCPU:1"}),
            "/allocation_candidates?resources=VCPU:1".into(),
        ),
        (
            "explain",
            json!({"resources": "VCPU:9"}),
            "/ledger/v1/explain/candidates?resources=VCPU:9".into(),
        ),
        ("events", json!({"kind": "Claimed"}), "/ledger/v1/events?kind=Claimed".into()),
    ];
    for (name, parameters, path) in same {
        let by_nats = scene.asker.query(name, &parameters).ok().json();
        assert_eq!(by_nats, scene.server.client().read(&path), "{name}");
    }
    let past = scene
        .asker
        .ask(
            "alloc.v1.query.provider_usages",
            &[("Ledger-At", "3")],
            json!({"id": host}).to_string().as_bytes(),
        )
        .ok();
    assert_eq!(past.header("ledger-sequence"), Some("3"));
    assert_eq!(past.json()["usages"]["VCPU"], 0);
    scene.ends_well();
}

#[test]
fn the_service_api_tells_who_serves_and_how_busy_it_is() {
    let scene = Scene::start();
    scene.asker.command("claim", &[], &scene.claim("a", 3)).ok();
    scene.asker.command("claim", &[], &scene.claim("b", 9));
    let within = Duration::from_millis(500);
    let pings = scene.asker.all("$SRV.PING", within);
    assert_eq!(pings.len(), 1);
    assert_eq!(
        (&pings[0]["name"], &pings[0]["type"]),
        (&json!("allocd"), &json!("io.nats.micro.v1.ping_response"))
    );
    let id = pings[0]["id"].as_str().unwrap();
    let info = &scene.asker.all(&format!("$SRV.INFO.allocd.{id}"), within)[0];
    assert_eq!(info["endpoints"][0]["subject"], "alloc.v1.command.*");
    assert_eq!(info["endpoints"][1]["queue_group"], "allocd");
    let stats = &scene.asker.all("$SRV.STATS.allocd", within)[0];
    let commands = &stats["endpoints"][0];
    assert_eq!((&commands["num_requests"], &commands["num_errors"]), (&json!(2), &json!(1)));
    assert!(commands["last_error"].as_str().unwrap().starts_with("409:"), "{commands}");
    assert!(commands["processing_time"].as_u64().unwrap() > 0);
    scene.ends_well();
}

/// The broker restarts 20 times while a client claims over HTTP and another by NATS: HTTP never
/// notices, and NATS is served again each time without help (J15).
#[test]
fn the_service_comes_back_whenever_the_broker_does() {
    let mut scene = Scene::start();
    // What was lost on the way is asked again soon, under the same key.
    let options = ConnectOptions::new().request_timeout(Some(Duration::from_secs(1)));
    let asker = Asker::with(&scene.nats.url(), options);
    for round in 0..20 {
        let name = format!("round {round}");
        asker.command("claim", &[("Idempotency-Key", &name)], &scene.claim(&name, 1)).ok();
        let key = format!("release {round}");
        let release = json!({"consumer": uuid(&name)});
        asker.command("release", &[("Idempotency-Key", &key)], &release).ok();
        if round % 2 == 0 {
            scene.nats.kill()
        } else {
            scene.nats.terminate()
        }
        let client = scene.server.client();
        let body = json!({"claim": scene.claim("over http", 8)});
        client.post("/ledger/v1/commands", &body).unwrap().expect(200);
        let release = json!({"release": {"consumer": uuid("over http")}});
        client.post("/ledger/v1/commands", &release).unwrap().expect(200);
        scene.nats.restart();
    }
    asker.query("moves", &json!({})).ok();
    scene.ends_well();
}

/// Two ledgers on one broker: the second does not take the first one's commands, and says why.
#[test]
fn another_ledgers_commands_are_not_taken() {
    let scene = Scene::start();
    scene.asker.query("moves", &json!({})).ok();
    let mut other = Server::with(&["--nats", &scene.nats.url()], &[]);
    let service =
        |server: &Server| server.client().get("/readyz").unwrap().json()["service"].clone();
    let deadline = Instant::now() + BACK;
    while !service(&other)["fault"].to_string().contains("same subjects") {
        assert!(Instant::now() < deadline, "{}", service(&other));
        thread::sleep(Duration::from_millis(50));
    }
    for number in 0..20 {
        let name = format!("c{number}");
        scene.asker.command("claim", &[], &scene.claim(&name, 1)).error();
    }
    assert_eq!(service(&scene.server)["connected"], true);
    let head = other.client().read("/ledger/v1/events?limit=1")["sequence"].clone();
    assert_eq!(head, 1, "the other ledger was given a command");
    // It serves once the first is gone.
    let mut scene = scene;
    assert!(scene.server.terminate().success(), "a clean stop");
    while service(&other)["connected"] != true {
        assert!(Instant::now() < deadline, "{}", service(&other));
        thread::sleep(Duration::from_millis(50));
    }
    assert!(other.terminate().success(), "a clean stop");
}

/// The server ends when it is told to, also while the broker is away or silent, whatever it was
/// waiting for there.
#[test]
fn the_server_ends_while_the_broker_is_away_or_silent() {
    for round in 0..6 {
        let mut nats = Nats::start();
        let mut server = Server::with(&["--nats", &nats.url()], &[]);
        // From the middle of connecting to long after.
        thread::sleep(Duration::from_millis(500 * (round / 2)));
        if round % 2 == 0 {
            nats.kill()
        } else {
            nats.pause()
        }
        assert!(server.terminate().success(), "a clean stop");
    }
}

#[test]
fn the_service_can_be_switched_off() {
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url(), "--nats-service", "false"], &[]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    system_tests::subscriber::Subscriber::start(&nats.url()).wait_for(1, BACK);
    let asker = Asker::new(&nats.url());
    assert!(asker.try_ask("alloc.v1.query.moves", &[], b"{}").is_none(), "{host}");
    assert!(server.terminate().success(), "a clean stop");
}

/// Who asked is on record: the broker's client by the name it gives itself.
#[test]
fn the_actor_is_on_record() {
    let scene = Scene::start();
    let headers = [
        ("Alloc-Actor", "nova-conductor"),
        ("X-OpenStack-Request-ID", "req-1b5b2e3a-4c5d-4e6f-8a9b-0c1d2e3f4a5b"),
    ];
    let done = scene.asker.command("claim", &headers, &scene.claim("a", 3)).ok().json();
    assert_eq!(done["events"][0]["header"]["request_id"], headers[1].1);
    // Names are in the private part, which is not published: the tool on the ledger's folder reads it.
    let told = replay(&scene.server.data_dir(), &["history", "--request-id", headers[1].1]);
    told.tells(&["Claimed", "by nats:nova-conductor"]);
    scene.ends_well();
}
