//! The helpers that other tests lean on, tried by themselves.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;
use system_tests::garble;
use system_tests::nats::Nats;
use system_tests::seed;

/// The nats-server is real, keeps what was stored over SIGKILL, and comes back on its port.
#[test]
fn nats_server_is_killed_and_comes_back_on_its_port() {
    let mut nats = Nats::start();
    let url = nats.url();
    let created =
        ask(&url, "$JS.API.STREAM.CREATE.S", r#"{"name":"S","subjects":["s"],"storage":"file"}"#);
    assert!(created.contains("\"did_create\":true"), "{created}");
    nats.kill();
    nats.restart();
    assert_eq!(nats.url(), url);
    let info = ask(&url, "$JS.API.STREAM.INFO.S", "");
    assert!(info.contains("\"name\":\"S\""), "{info}");
    nats.terminate();
}

/// One request and its reply, in NATS's own words.
fn ask(url: &str, subject: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("nats://").unwrap()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let request = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply {}\r\n{body}\r\n",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    lines.by_ref().find(|line| line.starts_with("MSG reply")).unwrap();
    lines.next().unwrap()
}

/// What is said to be no JSON is none.
#[test]
fn garbled_bodies_are_not_json() {
    let mut random = seed::stream(5, 0);
    let text = json!({"a": [1, {"b": "c"}], "d": null}).to_string().into_bytes();
    for _ in 0..2_000 {
        for bytes in [
            garble::cut(&mut random, &text),
            garble::poison(&mut random, &text),
            garble::rubbish(&mut random),
        ] {
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
            assert!(read.is_err(), "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
    for bytes in garble::wrong_everywhere() {
        let read: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
        let object = read.ok().filter(serde_json::Value::is_object);
        // Deeply nested objects are the only ones among them; their one field is unknown everywhere.
        assert!(object.is_none_or(|object| object["a"].is_object()));
    }
}

/// Each value of a body is made wrong in turn.
#[test]
fn wrong_values_reach_every_place() {
    let texts = garble::wrong_values(&json!({"a": [1], "b": {"c": 2}}));
    // a, a/0, b, b/c
    assert_eq!(texts.len() % 4, 0);
    for expected in [
        r#"{"a":true,"b":{"c":2}}"#,
        r#"{"a":[true],"b":{"c":2}}"#,
        r#"{"a":[1],"b":true}"#,
        r#"{"a":[1],"b":{"c":true}}"#,
    ] {
        assert!(texts.iter().any(|text| text == expected), "{expected}");
    }
}
