//! Generations of consumers that come and go (case C6).

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::books;
use system_tests::http::Client;

use crate::cloud::{self, Cloud, consumer, holding, release, vcpu};

/// Clients that write and delete the same consumers.
const CLIENTS: usize = 8;

/// Writes of each.
const WRITES: usize = 60;

/// Releases that a follower answers with a claim.
const ROUNDS: usize = 50;
/// How long the follower waits for an event.
const PATIENCE: Duration = Duration::from_secs(120);

/// Case C6 (bug 1798688): the conflict says what to send instead.
#[test]
fn an_old_generation_of_a_released_consumer_is_told_to_be_null() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    for generation in [Value::Null, json!(1), json!(2)] {
        cloud.put(&c1, &vcpu(&hosts[0], 2), &generation).expect(204);
    }
    assert_eq!(books::read(&cloud.client, &c1).1, Some(3));
    cloud.client.delete(&format!("/allocations/{c1}")).unwrap().expect(204);
    let refused = cloud.put(&c1, &vcpu(&hosts[0], 2), &json!(3)).expect(409);
    assert!(refused.detail().contains("expected null but got 3"), "{}", refused.text());
    assert_eq!(refused.json()["errors"][0]["code"], "placement.concurrent_update");
    cloud.put(&c1, &vcpu(&hosts[0], 2), &Value::Null).expect(204);
    assert_eq!(books::read(&cloud.client, &c1).1, Some(1));
}

/// Case C6 for who follows the events: whoever sees the release may claim at once.
#[test]
fn who_sees_a_release_and_claims_at_once_is_never_refused() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    let claimed = vcpu(&hosts[0], 2);
    cloud.put(&c1, &claimed, &Value::Null).expect(204);
    let start = cloud.sequence();
    thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let client = cloud.server.client();
            let claim = cloud::body(&claimed, &Value::Null);
            let mut after = start;
            for _ in 0..ROUNDS {
                after = next(&client, after, "Released");
                client.put(&format!("/allocations/{c1}"), &claim).unwrap().expect(204);
            }
        });
        let mut after = start;
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                cloud.client.delete(&format!("/allocations/{c1}")).unwrap().expect(204);
            } else {
                cloud.accept(&release(&c1, false, "offloaded"));
            }
            after = next(&cloud.client, after, "Claimed");
        }
        follower.join().unwrap();
    });
    assert_eq!(cloud.kinds(&c1).len(), 1 + 2 * ROUNDS);
}

/// Placement may answer a DELETE with 500 while others write, on a deadlock of its database: here
/// one writer decides, and each write is done, a conflict, or about nothing.
#[test]
fn deletes_while_others_write_are_never_a_fault_of_the_server() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let both = holding(&[(&hosts[0], "VCPU", 1), (&hosts[1], "VCPU", 1)]);
    let names: Vec<String> = (0..4).map(|number| consumer(&format!("C{number}"))).collect();
    let start = Barrier::new(CLIENTS);
    let statuses: BTreeMap<u16, usize> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (cloud, both, names, start) = (&cloud, &both, &names, &start);
                scope.spawn(move || {
                    let client = cloud.server.client();
                    start.wait();
                    let mut statuses = Vec::new();
                    for round in 0..WRITES {
                        let path =
                            format!("/allocations/{}", names[(number + round) % names.len()]);
                        let answer = if (number + round) % 2 == 0 {
                            client.delete(&path)
                        } else {
                            client.put(&path, &cloud::body(both, &Value::Null))
                        };
                        statuses.push(answer.unwrap().status);
                    }
                    statuses
                })
            })
            .collect();
        let mut counts = BTreeMap::new();
        for status in clients.into_iter().flat_map(|client| client.join().unwrap()) {
            *counts.entry(status).or_default() += 1;
        }
        counts
    });
    println!("{statuses:?}");
    assert!(statuses.keys().all(|status| [204, 404, 409].contains(status)), "{statuses:?}");
    books::check_providers(&cloud.client, &hosts);
    cloud.verify();
}

/// Wait for the next event of a kind; its sequence.
fn next(client: &Client, after: u64, kind: &str) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let page = client.read(&format!("/ledger/v1/events?after={after}&kind={kind}&limit=1"));
        if let Some(sequence) = page["events"][0]["header"]["sequence"].as_u64() {
            return sequence;
        }
    }
    panic!("no {kind} after {after} within {PATIENCE:?}");
}
