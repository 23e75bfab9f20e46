//! TLS and every way to log in to a real broker: events are published, buckets written and commands
//! taken; what is secret is shown nowhere; a broker that refuses us harms nobody.
#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::{Duration, Instant};

use allocd_client::{Change, FollowOptions, Follower, LedgerHttp, View};
use async_nats::ConnectOptions;
use nkeys::KeyPair;
use serde_json::{Value, json};
use system_tests::asker::Asker;
use system_tests::binaries;
use system_tests::certificates::Certificates;
use system_tests::credentials::Credentials;
use system_tests::nats::Nats;
use system_tests::server::Server;
use system_tests::topology;

/// How long connections may take to stand.
const PATIENCE: Duration = Duration::from_secs(120);

const PASSWORD: &str = "hush-hush-pass";

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
        thread::sleep(Duration::from_millis(50));
    }
}

/// Everything that uses NATS works; and the log has none of the secrets.
fn works(mut server: Server, asker: &Asker, secrets: &[&str]) {
    topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    let level = |part: &Value| part["connected"] == true && part["lag"] == 0;
    until(&server, "published, written, served", |ready| {
        level(&ready["publisher"])
            && level(&ready["buckets"])
            && ready["service"]["connected"] == true
    });
    let warnings = readyz(&server)["publisher"]["warnings"].clone();
    assert_eq!(warnings, json!([]), "a guarded server needs no warning");
    asker.query("consumers", &json!({})).ok();
    server.client().get("/metrics").unwrap().expect(200);
    let told = format!("{}{}", server.log_tail(), readyz(&server));
    for secret in secrets {
        assert!(!told.contains(secret), "{told}");
    }
    assert!(server.terminate().success(), "a clean stop");
}

/// A broker that speaks TLS only, wants a certificate of ours, and a password.
fn tls_broker(certificates: &Certificates) -> Nats {
    let config = format!(
        "tls {{ cert_file: server.pem, key_file: server.key, ca_file: ca.pem, verify: true }}\n\
         authorization {{ user: allocd, password: {PASSWORD} }}\n"
    );
    Nats::with(
        &config,
        &[
            ("server.pem", &certificates.server),
            ("server.key", &certificates.server_key),
            ("ca.pem", &certificates.authority),
            ("client.pem", &certificates.client),
            ("client.key", &certificates.client_key),
            ("other.pem", &Certificates::make().authority),
        ],
    )
}

fn path(nats: &Nats, name: &str) -> String {
    nats.file(name).to_str().unwrap().to_owned()
}

#[test]
fn tls_with_certificates_of_both_sides_and_a_password() {
    let nats = tls_broker(&Certificates::make());
    let files = ["ca.pem", "client.pem", "client.key"].map(|name| path(&nats, name));
    let [ca, cert, key] = &files;
    let arguments = [
        "--nats",
        &nats.url(),
        "--nats-ca",
        ca,
        "--nats-cert",
        cert,
        "--nats-key",
        key,
        "--nats-user",
        "allocd",
    ];
    let server = Server::with(&arguments, &[("ALLOCD_NATS_PASSWORD", PASSWORD)]);
    let options = ConnectOptions::with_user_and_password("allocd".into(), PASSWORD.into())
        .add_root_certificates(nats.file("ca.pem"))
        .add_client_certificate(nats.file("client.pem"), nats.file("client.key"))
        .require_tls(true);
    works(server, &Asker::with(&nats.url(), options), &[PASSWORD]);
}

/// A wrong password, another authority, a missing certificate: each is told, nothing secret is, and
/// HTTP is served all the while.
#[test]
fn a_broker_that_refuses_us_is_told_and_harms_nobody() {
    let nats = tls_broker(&Certificates::make());
    let files = ["ca.pem", "other.pem", "client.pem", "client.key"].map(|name| path(&nats, name));
    let [ca, other, cert, key] = &files;
    let url = nats.url();
    let base = ["--nats", &url, "--nats-user", "allocd"];
    for (more, password) in [
        (vec!["--nats-ca", ca, "--nats-cert", cert, "--nats-key", key], "wrong-hush"),
        (vec!["--nats-ca", other, "--nats-cert", cert, "--nats-key", key], PASSWORD),
        (vec!["--nats-ca", ca], PASSWORD),
    ] {
        let arguments = [&base[..], &more].concat();
        let server = Server::with(&arguments, &[("ALLOCD_NATS_PASSWORD", password)]);
        until(&server, "the fault is told", |ready| {
            ["publisher", "buckets", "service"]
                .iter()
                .all(|part| ready[part]["connected"] == false && ready[part]["fault"].is_string())
        });
        topology::provider(&server.client(), "host", &[("VCPU", 8)]);
        assert_eq!(readyz(&server)["ready"], true);
        assert!(!format!("{}{}", server.log_tail(), readyz(&server)).contains("hush"));
    }
}

#[test]
fn a_user_and_a_password_in_the_url_or_a_token() {
    let config = format!("authorization {{ user: allocd, password: {PASSWORD} }}");
    let nats = Nats::with(&config, &[]);
    let url = nats.url().replace("nats://", &format!("nats://allocd:{PASSWORD}@"));
    let server = Server::with(&["--nats", &url], &[]);
    let options = ConnectOptions::with_user_and_password("allocd".into(), PASSWORD.into());
    works(server, &Asker::with(&nats.url(), options), &[PASSWORD]);
    let nats = Nats::with(&format!("authorization {{ token: {PASSWORD} }}"), &[]);
    let server = Server::with(&["--nats", &nats.url()], &[("ALLOCD_NATS_TOKEN", PASSWORD)]);
    let options = ConnectOptions::with_token(PASSWORD.into());
    works(server, &Asker::with(&nats.url(), options), &[PASSWORD]);
}

#[test]
fn an_nkey() {
    let key = KeyPair::new_user();
    let seed = key.seed().unwrap();
    let config = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", key.public_key());
    let nats = Nats::with(&config, &[("seed", &seed)]);
    let server = Server::with(&["--nats", &nats.url(), "--nats-nkey", &path(&nats, "seed")], &[]);
    works(server, &Asker::with(&nats.url(), ConnectOptions::with_nkey(seed.clone())), &[&seed]);
}

/// A broker in operator mode: a JWT and its seed in a file of credentials.
#[test]
fn a_file_of_credentials() {
    let credentials = Credentials::make();
    let nats = Nats::with(&credentials.config, &[("allocd.creds", &credentials.file)]);
    let file = path(&nats, "allocd.creds");
    let server = Server::with(&["--nats", &nats.url(), "--nats-creds", &file], &[]);
    let options = ConnectOptions::with_credentials(&credentials.file).unwrap();
    works(server, &Asker::with(&nats.url(), options), &[&credentials.seed]);
}

/// The permissions of docs/nats.md are enough for each role, and no more than that.
#[test]
fn the_permissions_that_are_written_down_are_those_that_are_needed() {
    let page = std::fs::read_to_string(binaries::root().join("docs/nats.md")).unwrap();
    let begin = page.find("    authorization {").unwrap();
    let block = page[begin..].split("\n\n").next().unwrap();
    let config = block.replace("$A", PASSWORD).replace("$B", "nova").replace("$C", "board");
    let nats = Nats::with(&config, &[]);
    let arguments = ["--nats", &nats.url(), "--nats-user", "allocd"];
    let mut server = Server::with(&arguments, &[("ALLOCD_NATS_PASSWORD", PASSWORD)]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    until(&server, "published and written", |ready| {
        ["publisher", "buckets"]
            .iter()
            .all(|it| ready[it]["connected"] == true && ready[it]["lag"] == 0)
    });
    let login = |user: &str, password: &str| {
        ConnectOptions::with_user_and_password(user.into(), password.into())
            .request_timeout(Some(Duration::from_secs(2)))
    };
    let claim = json!({
        "consumer": topology::uuid("server"), "project_id": "p", "user_id": "u",
        "options": [{&host: {"VCPU": 1}}],
    });
    let nova = Asker::with(&nats.url(), login("nova", "nova"));
    nova.command("claim", &[], &claim).ok();
    let board = Asker::with(&nats.url(), login("dashboard", "board"));
    board.query("moves", &json!({})).ok();
    let command = board.try_ask("alloc.v1.command.release", &[], claim.to_string().as_bytes());
    assert!(command.is_none(), "a dashboard can change something");
    assert!(nova.try_ask("alloc.v1.event.Claimed.x.-", &[], b"forged").is_none());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = login("dashboard", "board").connect(nats.url()).await.unwrap();
        let mut view = View::new(client.clone(), "alloc_usage");
        let wanted = async {
            loop {
                if let Change::Put { value, .. } = view.next().await.unwrap() {
                    assert_eq!(value["name"], "host");
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wanted).await.expect("a dashboard can watch a view");
        let ledger = LedgerHttp::new(&server.url(), "admin");
        let mut follower = Follower::new(client, ledger, FollowOptions::default());
        for sequence in 1..=4 {
            let record = tokio::time::timeout(PATIENCE, follower.next()).await.unwrap().unwrap();
            assert_eq!(record.header.sequence, sequence);
        }
        assert_eq!(follower.counts().refilled, 0, "a dashboard can follow the stream");
    });
    until(&server, "nothing foreign came", |ready| ready["publisher"]["alarm"].is_null());
    assert!(server.terminate().success(), "a clean stop");
}

/// Without a login, and with limits that drop events, the server says what may go wrong.
#[test]
fn what_may_go_wrong_with_the_stream_is_told_at_the_start() {
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    let warns =
        |ready: &Value, word: &str| ready["publisher"]["warnings"].to_string().contains(word);
    until(&server, "anybody may publish", |ready| warns(ready, "anybody who reaches it"));
    assert!(!warns(&readyz(&server), "max_msgs"));
    limit(&nats.url());
    server.restart();
    until(&server, "events may be dropped", |ready| warns(ready, "max_msgs"));
    assert!(server.log_tail().contains("may drop events"), "{}", server.log_tail());
    assert!(server.terminate().success(), "a clean stop");
}

fn limit(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(url).await.unwrap());
        let stream = context.get_stream("ALLOC_EVENTS").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.max_messages = 100;
        context.update_stream(config).await.unwrap();
    });
}
