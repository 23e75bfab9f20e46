//! One command id, one outcome (case C13): every write of Placement's API and every command is
//! sent twice with one id, in each kind of outcome, with the world changed in between so that
//! without the id the answer would be another; and once more after the server was killed.

mod commands;
mod placement;

use std::collections::BTreeSet;

use allocd::http::operation::Operation;
use allocd::http::router;
use serde_json::{Value, json};

use crate::cloud;
use crate::server::{Answer, Server};

/// The reshaper is for services alone.
const ROLES: &str = "X-Roles: admin, service";

/// A write, what has to be there before it, and what changes the world after it.
struct Case {
    /// The route's operation, or the command's name.
    write: &'static str,
    /// What it meets.
    kind: &'static str,
    status: u16,
    before: Value,
    request: Request,
    /// Commands that make the same request mean something else; they may look at the answer.
    after: Box<dyn Fn(&Answer) -> Value>,
}

struct Request {
    method: &'static str,
    path: String,
    version: &'static str,
    body: Value,
}

impl Case {
    fn new(write: &'static str, kind: &'static str, status: u16, request: Request) -> Self {
        Self { write, kind, status, before: json!([]), request, after: Box::new(|_| json!([])) }
    }

    fn before(self, before: Value) -> Self {
        Self { before, ..self }
    }

    fn after(self, after: Value) -> Self {
        Self { after: Box::new(move |_| after.clone()), ..self }
    }

    fn after_answer(self, after: impl Fn(&Answer) -> Value + 'static) -> Self {
        Self { after: Box::new(after), ..self }
    }

    fn send(&self, server: &Server, number: usize) -> Answer {
        let key = format!("Idempotency-Key: case {number}");
        let version = format!("OpenStack-API-Version: placement {}", self.request.version);
        let Request { method, path, body, .. } = &self.request;
        if body.is_null() {
            return server.send(method, path, &[&key, &version, ROLES], b"");
        }
        server.json(method, path, &[&key, &version, ROLES], body)
    }
}

/// All of an answer but what is of this one sending: its request id, whether it is a repeat, and
/// the sequence that it is true at.
fn told(answer: &Answer) -> Value {
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let mut body = match answer.body.is_empty() {
        true => Value::Null,
        false => answer.json(),
    };
    let own = |object: &mut Value| {
        if let Some(object) = object.as_object_mut() {
            for name in ["request_id", "sequence", "repeated"] {
                object.remove(name);
            }
        }
    };
    own(&mut body);
    if let Some(errors) = body["errors"].as_array_mut() {
        errors.iter_mut().for_each(own);
    }
    json!({
        "status": answer.status,
        "location": header("location"),
        "last-modified": header("last-modified").filter(|_| answer.status < 300),
        "content-type": header("content-type"),
        "body": body,
    })
}

fn command(body: Value) -> Request {
    Request { method: "POST", path: "/ledger/v1/commands".to_owned(), version: "1.39", body }
}

/// A host with a tree of its own and some VCPU.
fn host(n: u32) -> Value {
    json!([
        {"create_provider": {"uuid": cloud::host(n), "name": format!("h{n}")}},
        {"change_inventories": {"provider": cloud::host(n), "change": {"replace_all": {"VCPU": {"total": 8}}}}},
    ])
}

/// Several lists of commands as one.
fn all(lists: &[Value]) -> Value {
    lists
        .iter()
        .flat_map(|list| match list {
            Value::Array(list) => list.clone(),
            one => vec![one.clone()],
        })
        .collect()
}

fn holds(consumer: u32, host: u32, amount: u32) -> Value {
    cloud::claim(consumer, host, &json!({"VCPU": amount}))
}

fn done(server: &Server, commands: &Value) {
    // Each by itself: a list is answered from the state before it where it searches.
    for command in commands.as_array().into_iter().flatten() {
        cloud::done(server, command);
    }
}

#[test]
fn every_write_sent_twice_with_one_id_is_answered_the_same() {
    let mut server = Server::start();
    let cases: Vec<Case> = placement::cases().into_iter().chain(commands::cases()).collect();
    let mut first: Vec<Value> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        done(&server, &case.before);
        let answer = case.send(&server, number);
        let name = format!("{} ({})", case.write, case.kind);
        if answer.status != case.status {
            wrong.push(format!("{name}: {} and not {}", answer.status, case.status));
        }
        done(&server, &(case.after)(&answer));
        let again = told(&case.send(&server, number));
        let answer = told(&answer);
        if again != answer {
            wrong.push(format!("{name}: {answer} and then {again}"));
        }
        first.push(answer);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.restart();
    for (number, (case, answer)) in cases.iter().zip(&first).enumerate() {
        let again = told(&case.send(&server, number));
        if again != *answer {
            wrong.push(format!("{} ({}): {answer} and then {again}", case.write, case.kind));
        }
    }
    assert!(wrong.is_empty(), "after a restart: {}", wrong.join("\n"));
    // Another body under a used id is refused, whatever it would do.
    for (number, case) in cases.iter().enumerate().filter(|(_, case)| case.kind != "malformed") {
        let other = Case::new("", "", 422, command(json!({"create_trait": {"name": "CUSTOM_O"}})));
        assert_eq!(other.send(&server, number).status, 422, "{} ({})", case.write, case.kind);
    }
}

/// A new route that writes has to be put into the cases.
#[test]
fn no_route_that_writes_is_left_out() {
    // It writes what somebody says, not the ledger; sending it again changes nothing.
    let no_command = BTreeSet::from([Operation::LedgerLiving.name()]);
    let of_commands = BTreeSet::from([Operation::LedgerCommands.name()]);
    let routes: BTreeSet<&str> =
        router::writable().map(|(operation, ..)| operation.name()).collect();
    let covered: BTreeSet<&str> = placement::cases().iter().map(|case| case.write).collect();
    let rest: BTreeSet<&str> = routes.difference(&covered).copied().collect();
    assert_eq!(rest, no_command.union(&of_commands).copied().collect());
    for operation in covered {
        let cases = placement::cases();
        let kinds: BTreeSet<&str> =
            cases.iter().filter(|case| case.write == operation).map(|case| case.kind).collect();
        assert!(kinds.contains("accepted") && kinds.len() > 1, "{operation}: {kinds:?}");
    }
}

/// A new command has to be put into the cases. The server says which there are.
#[test]
fn no_command_is_left_out() {
    let server = Server::start();
    let told = server.json("POST", "/ledger/v1/commands", &[], &json!({"fly": {}})).error();
    let told = told["detail"].as_str().expect("a text").to_owned();
    let (_, list) = told.split_once("expected one of").expect("a list");
    let commands: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
    let covered: BTreeSet<&str> = commands::cases().iter().map(|case| case.write).collect();
    assert!(commands.len() > 20, "{told}");
    assert_eq!(commands, covered);
}
