//! Resizes that stay on their host, and attempts that fail (cases A1, A3, A5).

use serde_json::{Value, json};
use system_tests::books::Holding;

use crate::cloud::{
    Cloud, claim, confirm, consumer, double_up, fail, holding, revert, to_migration, vcpu,
};

const CAPACITY: [(&str, u64); 3] = [("VCPU", 2), ("MEMORY_MB", 8192), ("DISK_GB", 1028)];

/// The server before and after its resize: one VCPU more, the same full disk.
fn flavors(host: &str) -> (Holding, Holding) {
    let of =
        |vcpu| holding(&[(host, "VCPU", vcpu), (host, "MEMORY_MB", 2048), (host, "DISK_GB", 1028)]);
    (of(1), of(2))
}

/// Case A1 (bug 1790204): what is held on the way is the larger of both, class by class.
#[test]
fn a_resize_on_its_own_full_host_holds_the_larger_of_both() {
    for confirmed in [true, false] {
        let cloud = Cloud::new();
        let host = cloud.host("H1", &CAPACITY);
        let (i1, m1) = (consumer("I1"), consumer("M1"));
        let (small, big) = flavors(&host);
        cloud.accept(&claim(&i1, &small));
        cloud.accept(&to_migration(&i1, &m1, "resize"));
        assert_eq!(cloud.used(&host), small[&host]);
        cloud.accept(&claim(&i1, &big));
        assert_eq!(cloud.used(&host), big[&host], "the peak is 2/2048/1028, within the inventory");
        assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (big.clone(), small.clone()));
        let (end, left) = if confirmed { (confirm(&i1), big) } else { (revert(&i1), small) };
        cloud.accept(&end);
        assert_eq!(cloud.used(&host), left[&host]);
        assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (left, Holding::new()));
        cloud.verify();
    }
}

/// Case A1 for both sides on the instance itself: it stores the larger of both.
#[test]
fn a_double_up_on_its_own_full_host_stores_the_larger_of_both() {
    for confirmed in [true, false] {
        let cloud = Cloud::new();
        let host = cloud.host("H1", &CAPACITY);
        let i1 = consumer("I1");
        let (small, big) = flavors(&host);
        cloud.accept(&claim(&i1, &small));
        cloud.accept(&double_up(&i1, "resize", &big));
        assert_eq!((cloud.used(&host), cloud.holds(&i1)), (big[&host].clone(), big.clone()));
        let (end, left) = if confirmed { (confirm(&i1), big) } else { (revert(&i1), small) };
        cloud.accept(&end);
        assert_eq!((cloud.used(&host), cloud.holds(&i1)), (left[&host].clone(), left));
    }
}

/// Case A1 by Placement's own calls: refused with Placement's arithmetic, in its words.
#[test]
fn the_same_resize_by_plain_calls_is_refused_as_placement_does() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &CAPACITY);
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    let (small, big) = flavors(&host);
    cloud.put(&i1, &small, &Value::Null).expect(204);
    cloud.hand_over(&i1, &m1, &small).expect(204);
    let refused = cloud.put(&i1, &big, &Value::Null).expect(409);
    assert!(refused.detail().contains("would exceed the capacity"), "{}", refused.text());
    assert_eq!(cloud.used(&host), small[&host]);
    assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (Holding::new(), small));
}

/// Case A3 (bug 1707252): source and destination of the same id do not cancel out.
#[test]
fn the_event_of_a_same_host_claim_names_both_holdings() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("VCPU", 16)]);
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&host, 2)));
    cloud.accept(&to_migration(&i1, &m1, "resize"));
    let events = cloud.accept(&claim(&i1, &vcpu(&host, 4)));
    assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (vcpu(&host, 4), vcpu(&host, 2)));
    assert_eq!(events.len(), 1);
    let this = &events[0]["body"]["moves"][0];
    assert_eq!(this["source"], json!(vcpu(&host, 2)));
    assert_eq!(this["destination"], json!(vcpu(&host, 4)));
    cloud.accept(&confirm(&i1));
    assert_eq!(cloud.used(&host)["VCPU"], 4);
    assert_eq!(cloud.holds(&m1), Holding::new());
}

/// Case A5 (bug 1712850): an attempt that failed on the source's own host is taken back by an
/// event of its own before the next is claimed; each moment can be read again afterwards.
#[test]
fn a_failed_attempt_on_the_source_host_is_taken_back_before_the_next() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    let steps = [
        (claim(&i1, &vcpu(&hosts[0], 2)), [2, 0]),
        (to_migration(&i1, &m1, "resize"), [2, 0]),
        (claim(&i1, &vcpu(&hosts[0], 4)), [4, 0]),
        (fail(&i1, "no free NUMA cell"), [2, 0]),
        (claim(&i1, &vcpu(&hosts[1], 4)), [2, 4]),
        (confirm(&i1), [0, 4]),
    ];
    let mut moments = Vec::new();
    for (step, figures) in steps {
        assert_eq!(cloud.accept(&step).len(), 1, "each step is an event of its own");
        assert_eq!(cloud.vcpus(&hosts), figures, "after {step}");
        moments.push((cloud.sequence(), figures));
    }
    for (sequence, figures) in moments {
        assert_eq!(cloud.replayed(sequence, &hosts), figures, "at event {sequence}");
    }
    cloud.verify();
}
