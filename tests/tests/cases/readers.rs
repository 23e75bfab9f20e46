//! What others read while a move ends (case A7).

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use system_tests::http::Client;

use crate::cloud::{Cloud, PROJECT, claim, confirm, consumer, release, revert, to_migration, vcpu};

/// Moves that end while they are watched.
const ROUNDS: usize = 10;
/// Readers of each kind.
const READERS: usize = 2;
/// Reads of one reader in a round, at least; half of them before the move ends.
const READS: usize = 30;

/// What a reader may see: before and after, and nothing between.
type Seen = BTreeSet<Vec<u64>>;

/// Case A7 (bugs 1879878, 1894095): with confirm, both sides and then the destination.
#[test]
fn a_reader_sees_a_confirm_before_or_after_and_never_between() {
    watched(confirm, [0, 4]);
}

/// Case A7 with revert: both sides and then the source.
#[test]
fn a_reader_sees_a_revert_before_or_after_and_never_between() {
    watched(revert, [2, 0]);
}

fn watched(end: fn(&str) -> Value, after: [u64; 2]) {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    let before = [2, 4];
    for _ in 0..ROUNDS {
        cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
        cloud.accept(&to_migration(&i1, &m1, "resize"));
        cloud.accept(&claim(&i1, &vcpu(&hosts[1], 4)));
        assert_eq!(cloud.vcpus(&hosts), before);
        let (of_hosts, of_project) = watch(&cloud, &hosts, &end(&i1));
        assert_eq!(of_hosts, Seen::from([before.to_vec(), after.to_vec()]), "used of both hosts");
        let sums = Seen::from([vec![before.iter().sum()], vec![after.iter().sum()]]);
        assert_eq!(of_project, sums, "used by the project");
        cloud.accept(&release(&i1, false, "the next round"));
    }
}

/// Send `end` while readers look; what they saw of the hosts, and of the project.
fn watch(cloud: &Cloud, hosts: &[String; 2], end: &Value) -> (Seen, Seen) {
    let ended = AtomicBool::new(false);
    let start = Barrier::new(2 * READERS + 1);
    thread::scope(|scope| {
        let (ended, start) = (&ended, &start);
        let read = |look: fn(&Client, &[String; 2]) -> Vec<u64>| {
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    scope.spawn(move || {
                        let client = cloud.server.client();
                        let mut seen = vec![look(&client, hosts)];
                        start.wait();
                        let mut left = READS / 2;
                        while left > 0 {
                            left -= usize::from(ended.load(Ordering::SeqCst));
                            seen.push(look(&client, hosts));
                        }
                        never_back(&seen)
                    })
                })
                .collect();
            readers
        };
        let (of_hosts, of_project) = (read(summaries), read(project));
        start.wait();
        thread::sleep(Duration::from_millis(20));
        cloud.accept(end);
        ended.store(true, Ordering::SeqCst);
        let all = |readers: Vec<thread::ScopedJoinHandle<'_, Seen>>| {
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        };
        (all(of_hosts), all(of_project))
    })
}

/// All that one reader saw; it must not see something, then something else, then the first again.
fn never_back(seen: &[Vec<u64>]) -> Seen {
    let mut changes = seen.to_vec();
    changes.dedup();
    let distinct: Seen = changes.iter().cloned().collect();
    assert_eq!(changes.len(), distinct.len(), "back to what was before: {changes:?}");
    distinct
}

/// VCPU used of both hosts in one answer.
fn summaries(client: &Client, hosts: &[String; 2]) -> Vec<u64> {
    let answer = client.read("/allocation_candidates?resources=VCPU:1");
    let used =
        |host: &String| answer["provider_summaries"][host]["resources"]["VCPU"]["used"].as_u64();
    hosts.iter().map(|host| used(host).expect("both hosts have room")).collect()
}

/// VCPU used by the project in one answer: all its consumer types.
fn project(client: &Client, _: &[String; 2]) -> Vec<u64> {
    let answer = client.read(&format!("/usages?project_id={PROJECT}"));
    let types = answer["usages"].as_object().expect("usages are an object");
    vec![types.values().filter_map(|usage| usage["VCPU"].as_u64()).sum()]
}
