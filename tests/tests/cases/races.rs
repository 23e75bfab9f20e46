//! Generations of consumers that come and go (case C6).

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::books;
use system_tests::http::Client;

use crate::cloud::{self, Cloud, consumer, release, vcpu};

/// Releases that a follower answers with a claim.
const ROUNDS: usize = 50;
/// How long the follower waits for an event.
const PATIENCE: Duration = Duration::from_secs(20);

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
