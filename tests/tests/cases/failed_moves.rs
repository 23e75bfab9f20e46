//! Moves that fail, told to the ledger as they are: where the server is, and what failed (cases A5,
//! B3, B5, B6, B8, B10 by `resize`, `reschedule`, `host_changed` and `fail`).

use serde_json::{Value, json};
use system_tests::books::Holding;

use crate::cloud::{Cloud, claim, confirm, consumer, vcpu};

fn resize(instance: &str, migration: &str, kind: &str, options: &[Holding]) -> Value {
    json!({"resize": {
        "consumer": instance, "migration": migration, "kind": kind,
        "options": options, "max_attempts": 4,
    }})
}

fn host_changed(instance: &str, host: &str) -> Value {
    json!({"host_changed": {"consumer": instance, "host": host}})
}

fn fail(instance: &str, reason: &str) -> Value {
    json!({"fail": {"consumer": instance, "reason": reason}})
}

fn reschedule(instance: &str, reason: &str) -> Value {
    json!({"reschedule": {"consumer": instance, "reason": reason}})
}

/// Hosts of 8 VCPU each; I1 holds 2 of the first and moves to 4 of another.
fn moving<const N: usize>(kind: &str) -> (Cloud, [String; N], String, String) {
    let cloud = Cloud::new();
    let hosts: [String; N] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    let options: Vec<Holding> = hosts.iter().map(|host| vcpu(host, 4)).collect();
    cloud.accept(&resize(&i1, &m1, kind, &options));
    (cloud, hosts, i1, m1)
}

/// Case B10 (bug 1825537): which half goes is decided by where the server is on record, not by
/// which step failed.
#[test]
fn a_move_that_fails_ends_where_the_server_is_on_record() {
    for (on, figures, state) in
        [(None, [2, 0], "reverted"), (Some(1), [0, 4], "confirmed"), (Some(0), [2, 0], "reverted")]
    {
        let (cloud, hosts, i1, m1) = moving::<2>("migration");
        assert_eq!(cloud.vcpus(&hosts), [2, 4]);
        if let Some(host) = on {
            cloud.accept(&host_changed(&i1, &hosts[1]));
            cloud.accept(&host_changed(&i1, &hosts[host]));
            assert_eq!(cloud.vcpus(&hosts), [2, 4], "it holds what it held");
        }
        cloud.accept(&fail(&i1, "finish_resize"));
        assert_eq!((cloud.vcpus(&hosts), cloud.move_state(&i1).as_str()), (figures, state));
        assert_eq!(cloud.holds(&m1), Holding::new());
        let history = cloud.history(&i1);
        assert_eq!(history.last().unwrap().1.as_deref(), Some("finish_resize"));
        cloud.verify();
    }
}

/// Cases A5 and B6 (bugs 1712850, 1712411): host after host fails, the own one too; each attempt is
/// taken back by an event of its own, with its reason.
#[test]
fn host_after_host_fails_and_each_attempt_is_taken_back() {
    let (cloud, hosts, i1, _) = moving::<4>("resize");
    let figures = [[4, 0, 0, 0], [2, 4, 0, 0], [2, 0, 4, 0], [2, 0, 0, 4], [2, 0, 0, 0]];
    assert_eq!(cloud.vcpus(&hosts), figures[0]);
    for (number, expected) in (1..).zip(&figures[1..]) {
        cloud.accept(&reschedule(&i1, &format!("attempt {number}")));
        assert_eq!(cloud.vcpus(&hosts), *expected);
    }
    cloud.accept(&fail(&i1, "no host is left"));
    assert_eq!(cloud.vcpus(&hosts), [2, 0, 0, 0]);
    let released: Vec<String> = cloud
        .history(&i1)
        .into_iter()
        .filter(|(kind, _)| kind == "DestinationReleased")
        .filter_map(|(_, reason)| reason)
        .collect();
    assert_eq!(released, ["attempt 1", "attempt 2", "attempt 3", "attempt 4"]);
    cloud.verify();
}

/// Cases B3 and B5 (bugs 1709902, 1721652, 1713786): an evacuation ends without the dead host, and
/// a failed one gives back what it claimed and nothing else.
#[test]
fn an_evacuation_ends_without_the_dead_host_either_way() {
    for (end, figures) in
        [(confirm as fn(&str) -> Value, [0, 4]), (|who| fail(who, "no such image"), [2, 0])]
    {
        let (cloud, hosts, i1, m1) = moving::<2>("evacuation");
        assert_eq!(cloud.vcpus(&hosts), [2, 4]);
        cloud.accept(&end(&i1));
        assert_eq!((cloud.vcpus(&hosts), cloud.holds(&m1)), (figures, Holding::new()));
    }
}

/// Case B8 (bugs 1713796, 1862633): two ways to fail, one outcome but for the reason.
#[test]
fn whatever_fails_the_same_goes() {
    let outcome = |reason: &str| {
        let (cloud, hosts, i1, _) = moving::<2>("live_migration");
        cloud.accept(&fail(&i1, reason));
        assert_eq!(cloud.vcpus(&hosts), [2, 0]);
        cloud.kinds(&i1)
    };
    assert_eq!(outcome("port binding"), outcome("spawn"));
}
