//! What only the real server shows: what a library would answer before us, and its end.

use crate::server::Server;

#[test]
fn a_length_that_is_no_number_is_answered_by_us() {
    let server = Server::start();
    let head = "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: hi mom\r\n\r\n";
    let answer = String::from_utf8_lossy(&server.raw(head.as_bytes())).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("content-length header must be an integer"), "{answer}");
    // Authentication comes first.
    let head =
        "GET /traits HTTP/1.1\r\nHost: x\r\nContent-Length: hi mom\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8_lossy(&server.raw(head.as_bytes())).into_owned();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[test]
fn what_is_no_http_ends_its_connection_only() {
    let server = Server::start();
    for rubbish in
        [&b"\x16\x03\x01\x02\x00rubbish\r\n\r\n"[..], b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        let answer = server.raw(rubbish);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    }
    assert_eq!(server.send("GET", "/", &[], b"").status, 200);
}

#[test]
fn bodies_and_heads_have_limits() {
    let server = Server::start();
    let long = vec![b' '; 16 * 1024 * 1024 + 1];
    let answer =
        server.send("POST", "/resource_providers", &["Content-Type: application/json"], &long);
    assert_eq!(answer.status, 413);
    let long = format!("X-Long: {}", "x".repeat(1_000_000));
    assert_eq!(server.send("GET", "/", &[&long], b"").status, 431);
}

#[test]
fn operators_need_no_token() {
    let server = Server::start();
    for (path, wanted) in
        [("/healthz", "ok"), ("/readyz", "\"ready\":true"), ("/metrics", "allocd_requests_total")]
    {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = String::from_utf8_lossy(&server.raw(head.as_bytes())).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(wanted), "{path}: {answer}");
    }
}

#[test]
fn it_ends_on_sigterm() {
    let mut server = Server::start();
    assert_eq!(server.send("GET", "/", &[], b"").status, 200);
    assert!(server.terminate().success());
}
