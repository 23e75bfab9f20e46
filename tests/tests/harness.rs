//! The helpers that other tests lean on, tried by themselves; and pages that name tests.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::json;
use system_tests::binaries;
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

/// The tests and files that a page of documentation names are there.
#[test]
fn pages_name_tests_that_exist() {
    let root = binaries::root();
    let mut sources = String::new();
    for folder in ["ledger", "projector", "api", "replay", "tests"] {
        read_sources(&root.join(folder), &mut sources);
    }
    for page in ["docs/cases.md", "docs/differences.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let rows = text.lines().filter(|line| line.starts_with('|'));
        // What stands in the last column between backticks.
        let named = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
        let named: BTreeSet<&str> =
            named.flat_map(|column| column.split('`').skip(1).step_by(2)).collect();
        for name in &named {
            let places: [PathBuf; 3] =
                ["", "tests/tests/cases", "ledger/src"].map(|folder| root.join(folder).join(name));
            let is_test = sources.contains(&format!("fn {name}("));
            let is_word = !name.contains('_') && !name.contains(".rs");
            let there = is_test || is_word || places.iter().any(|place| place.exists());
            assert!(there, "{page} names {name}");
        }
        println!("{page}: {} names", named.len());
    }
}

fn read_sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}
