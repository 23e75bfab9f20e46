//! Invariant 9: no request, however malformed, changes anything or stops the server.
//!
//! Each test sends its share of rubbish to a server that holds something, over plain
//! sockets, and demands: no answer is a 500, none is a success, everything reads as before,
//! the ledger has no new event, and nothing panicked.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Write;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use system_tests::garble;
use system_tests::raw;
use system_tests::routes::{self, Route};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

const JSON: &str = "content-type: application/json\r\nopenstack-api-version: placement 1.39\r\nx-roles: admin,service\r\n";

/// A server with a provider and a consumer on it, and how it reads.
struct Site {
    server: Server,
    routes: Vec<Route>,
    before: Vec<Value>,
    sequence: Value,
}

impl Site {
    fn new() -> Site {
        let server = Server::start();
        let client = server.client();
        let provider = topology::provider(&client, "host", &[("VCPU", 10)]);
        let consumer = topology::uuid("consumer").to_string();
        let body = json!({
            "allocations": {&provider: {"resources": {"VCPU": 2}}},
            "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": null,
        });
        client.put(&format!("/allocations/{consumer}"), &body).unwrap().expect(204);
        let routes = routes::all(&provider, &consumer);
        let mut site = Site { server, routes, before: Vec::new(), sequence: Value::Null };
        site.before = site.state();
        site.sequence = site.sequence();
        site
    }

    /// All that could have changed.
    fn state(&self) -> Vec<Value> {
        let client = self.server.client();
        let below = |rest: &str| format!("/resource_providers/{}{rest}", topology::uuid("host"));
        let consumer = format!("/allocations/{}", topology::uuid("consumer"));
        let paths = [
            "/resource_providers".to_owned(),
            "/resource_classes".to_owned(),
            "/traits".to_owned(),
            "/usages?project_id=p".to_owned(),
            below("/inventories"),
            below("/usages"),
            below("/aggregates"),
            below("/traits"),
            below("/allocations"),
            consumer,
        ];
        let mut state: Vec<Value> = paths.iter().map(|path| client.read(path)).collect();
        state.push(client.read("/ledger/v1/moves")["moves"].clone());
        state
    }

    /// The ledger's last sequence.
    fn sequence(&self) -> Value {
        self.server.client().read("/ledger/v1/moves")["sequence"].clone()
    }

    /// Send a write that must be refused.
    fn refused(&self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let status = raw::request(self.server.port(), method, path.as_bytes(), headers, body);
        let refused = status.is_some_and(|status| (400..500).contains(&status));
        assert!(refused, "{status:?} to {method} {path}: {}", shown(body));
    }

    /// Send anything; it must not be answered as a fault of the server.
    fn survived(&self, bytes: &[u8]) {
        let status = raw::status(&raw::exchange(self.server.port(), bytes));
        // Not Implemented and HTTP Version Not Supported blame the request.
        let fine = status.is_none_or(|status| status < 500 || status == 501 || status == 505);
        assert!(fine, "{status:?} to {}", shown(bytes));
    }

    fn writes(&self) -> impl Iterator<Item = (&Route, &'static str, &Value)> {
        self.routes
            .iter()
            .flat_map(|route| route.writes.iter().map(move |(method, body)| (route, *method, body)))
    }

    /// [`Site::unharmed`], and the ledger has no new event.
    fn untouched(self) {
        assert_eq!(self.sequence(), self.sequence, "the ledger's last sequence");
        self.unharmed();
    }

    /// The server lives, nothing changed, nothing panicked, and the ledger on disk is whole.
    /// An event that tells of a search in vain may have been added.
    fn unharmed(mut self) {
        assert!(self.server.running(), "the server has ended:\n{}", self.server.log_tail());
        assert_eq!(self.state(), self.before);
        assert!(!self.server.log_tail().contains("panicked"), "{}", self.server.log_tail());
        assert!(self.server.terminate().success(), "a clean stop");
        verify_ledger(&self.server.data_dir());
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned()
}

/// Bodies that are no JSON, or no object.
#[test]
fn bodies_that_are_not_json() {
    let site = Site::new();
    let texts = garble::wrong_everywhere();
    for (route, method, _) in site.writes() {
        for text in &texts {
            site.refused(method, &route.path, JSON, text);
        }
    }
    site.untouched();
}

/// Right bodies with one value wrong.
#[test]
fn values_of_wrong_type_and_size() {
    let site = Site::new();
    for (route, method, body) in site.writes() {
        for text in garble::wrong_values(body) {
            site.refused(method, &route.path, JSON, text.as_bytes());
        }
    }
    site.untouched();
}

/// Right bodies cut short, poisoned, or replaced by noise, with fixed seeds.
#[test]
fn fuzzed_bodies() {
    let site = Site::new();
    let seed = seed::seed(3);
    for (part, (route, method, body)) in (1..).zip(site.writes()) {
        let mut random = seed::stream(seed, part);
        let text = body.to_string().into_bytes();
        for round in 0..300 {
            let bytes = match round % 3 {
                0 => garble::cut(&mut random, &text),
                1 => garble::poison(&mut random, &text),
                _ => garble::rubbish(&mut random),
            };
            site.refused(method, &route.path, JSON, &bytes);
        }
    }
    site.untouched();
}

/// MessagePack, which the ledger's own API takes, of the worst kind.
#[test]
fn messagepack_that_is_no_command() {
    let site = Site::new();
    let mut random = seed::stream(seed::seed(6), 0);
    let mut texts = garble::wrong_messagepack();
    texts.extend((0..300).map(|_| garble::rubbish(&mut random)));
    for kind in ["application/msgpack", "application/x-msgpack", "application/vnd.msgpack"] {
        for text in &texts {
            site.refused("POST", "/ledger/v1/commands", &format!("content-type: {kind}\r\n"), text);
        }
    }
    site.untouched();
}

/// Bodies larger than any limit, announced and sent, or announced only.
#[test]
fn bodies_that_are_too_large() {
    let site = Site::new();
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(20 << 20)).into_bytes();
    let blank = vec![b' '; 20 << 20];
    for (path, body) in [("/resource_providers", long), ("/ledger/v1/commands", blank)] {
        let status = raw::request(site.server.port(), "POST", path.as_bytes(), JSON, &body);
        // The server need not read it all, and its answer may be lost when it closes early.
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{status:?} to POST {path}"
        );
    }
    for length in [
        "18446744073709551615",
        "99999999999999999999999",
        "9223372036854775808",
        "-1",
        "0x10",
        "1,1",
        "1 1",
        "",
    ] {
        let head = format!(
            "POST /resource_providers HTTP/1.1\r\nhost: h\r\nx-auth-token: admin\r\n{JSON}content-length: {length}\r\n\r\n{{}}"
        );
        site.survived(head.as_bytes());
    }
    site.untouched();
}

/// The wrong content type, or none.
#[test]
fn content_types() {
    let site = Site::new();
    let version = "openstack-api-version: placement 1.39\r\n";
    for (route, method, body) in site.writes() {
        for kind in [
            "text/plain",
            "application/xml",
            "application/JSON5",
            ";",
            "\u{7f}",
            "application/x-www-form-urlencoded",
        ] {
            let headers = format!("{version}content-type: {kind}\r\n");
            site.refused(method, &route.path, &headers, body.to_string().as_bytes());
        }
        site.refused(method, &route.path, version, body.to_string().as_bytes());
    }
    site.untouched();
}

/// Every route by methods it does not have, and with unfit headers.
#[test]
fn methods_and_headers() {
    let site = Site::new();
    let versions = [
        "",
        "1.39",
        "placement",
        "placement 1",
        "placement 1.x",
        "placement 99.99",
        "placement -1.-1",
        "placement latest latest",
    ];
    for route in &site.routes {
        for method in ["PATCH", "OPTIONS", "HEAD", "TRACE", "BREW", "get", "G\u{e9}T"] {
            site.survived(request(method, route.path.as_bytes(), JSON).as_slice());
        }
        for version in versions {
            let headers =
                format!("content-type: application/json\r\nopenstack-api-version: {version}\r\n");
            site.survived(request("GET", route.path.as_bytes(), &headers).as_slice());
        }
        for accept in [
            "",
            ",,,;;;",
            "*/*;q=9",
            "application/json;q=nan",
            "text/html;q=-1,*/*;q=0",
            "\u{fe}\u{ff}",
        ] {
            site.survived(
                request("GET", route.path.as_bytes(), &format!("accept: {accept}\r\n")).as_slice(),
            );
        }
    }
    site.untouched();
}

/// Paths and query strings that nobody should send.
#[test]
fn paths_and_queries() {
    let site = Site::new();
    let endings: [&[u8]; 12] = [
        b"/",
        b"//",
        b"/..",
        b"/%",
        b"/%zz",
        b"/%00",
        b"/%ff",
        b"?%",
        b"?%ff=%ff",
        b"?a=b&a=b&=&&&=",
        b"?limit=%F0%9F%92%A5",
        b"#x",
    ];
    for route in &site.routes {
        for ending in endings {
            site.survived(&request("GET", &[route.path.as_bytes(), ending].concat(), JSON));
        }
    }
    for path in queries() {
        site.survived(&request("GET", path.as_bytes(), JSON));
    }
    site.unharmed();
}

/// Queries at the limits of what can be asked, all of them refused or empty.
fn queries() -> Vec<String> {
    let candidates = |query: String| format!("/allocation_candidates?{query}");
    let groups: Vec<String> =
        (0..2_000).map(|number| format!("resources{number}=VCPU:1")).collect();
    let traits: Vec<String> = (0..2_000).map(|number| format!("CUSTOM_{number}")).collect();
    vec![
        candidates(format!("{}&group_policy=none", groups.join("&"))),
        candidates(format!("resources=VCPU:1&required={}", traits.join(","))),
        candidates("resources=VCPU:".to_owned() + &"9".repeat(400)),
        candidates("resources=VCPU:-9223372036854775809".to_owned()),
        candidates("resources=VCPU:1&limit=".to_owned() + &"9".repeat(400)),
        candidates("resources=VCPU:1&limit=0".to_owned()),
        candidates("resources=:,:,:".to_owned()),
        candidates("resources=VCPU:1&same_subtree=_A,_B,_C".to_owned()),
        candidates("resources=VCPU:1&in_tree=%00".to_owned()),
        candidates("resources=VCPU:1&root_required=".to_owned()),
        candidates("resources_".to_owned() + &"A".repeat(60_000) + "=VCPU:1"),
        "/resource_providers?member_of=in:".to_owned() + &",".repeat(1_000),
        "/resource_providers?resources=VCPU:1e9".to_owned(),
        "/resource_providers?name=".to_owned() + &"%F0%9F%92%A5".repeat(1_000),
        "/usages?project_id=".to_owned() + &"x".repeat(5_000),
        "/ledger/v1/events?after=-1".to_owned(),
        "/ledger/v1/events?after=18446744073709551616".to_owned(),
        "/ledger/v1/events?limit=99999999999999999999".to_owned(),
        "/".to_owned() + &"x".repeat(200_000),
        "/".repeat(10_000),
    ]
}

/// Bytes that are no HTTP at all, or only the beginning of some.
#[test]
fn rubbish_on_the_socket() {
    let site = Site::new();
    let mut random = seed::stream(seed::seed(4), 0);
    let whole = request("GET", b"/resource_providers", JSON);
    for round in 0..300 {
        let bytes = match round % 4 {
            0 => garble::rubbish(&mut random),
            1 => garble::cut(&mut random, &whole),
            2 => garble::poison(&mut random, &whole),
            _ => mixed_up(&mut random, &whole),
        };
        site.survived(&bytes);
    }
    for bytes in not_http() {
        site.survived(&bytes);
    }
    site.untouched();
}

/// A request with some bytes changed. Only GET: it must never become a write that succeeds.
fn mixed_up(random: &mut StdRng, whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..random.random_range(1..=8) {
        // Not within the method.
        let place = random.random_range(4..bytes.len());
        bytes[place] = random.random();
    }
    bytes
}

fn not_http() -> Vec<Vec<u8>> {
    let many_headers: String = (0..2_000).map(|number| format!("x-{number}: y\r\n")).collect();
    vec![
        b"\r\n\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET http://[::1 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n".to_vec(),
        b"GET /".to_vec(),
        vec![b'A'; 1 << 20],
        request("GET", b"/", &many_headers),
        request("GET", b"/", &format!("x: {}\r\n", "y".repeat(1 << 20))),
        b"POST /allocations HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n".to_vec(),
        b"POST /allocations HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n{}".to_vec(),
        b"POST /allocations HTTP/1.1\r\nhost: x\r\nx-auth-token: admin\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"a\":".to_vec(),
    ]
}

/// Clients that open a connection, say half a sentence and wait: others are served meanwhile.
#[test]
fn idle_and_slow_connections_do_not_block_others() {
    let site = Site::new();
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut stream = raw::connect(site.server.port());
        if number % 2 == 0 {
            stream.write_all(b"POST /allocations HTTP/1.1\r\nhost: x\r\ncontent-le").unwrap();
        }
        idle.push(stream);
    }
    site.server.client().get("/").unwrap().expect(200);
    drop(idle);
    site.untouched();
}

fn request(method: &str, path: &[u8], headers: &str) -> Vec<u8> {
    let rest = format!(
        " HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nx-auth-token: admin\r\n{headers}\r\n"
    );
    [method.as_bytes(), b" ", path, rest.as_bytes()].concat()
}
