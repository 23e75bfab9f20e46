//! Holdings that were left behind (cases B1 to B13): a step that fails gives back what that
//! step claimed, and nothing needs a host that is down.

use serde_json::Value;
use system_tests::books::{self, Holding};

use crate::cloud::{
    Cloud, claim, confirm, consumer, double_up, fail, release, revert, to_migration, vcpu,
};

/// Case B1 (bug 1848343): the server is deleted while its move is being scheduled.
#[test]
fn a_revert_to_a_server_that_ended_releases_its_source() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&to_migration(&i1, &m1, "migration"));
    cloud.accept(&release(&i1, true, "deleted by its owner"));
    assert_eq!(cloud.vcpus(&hosts), [2], "the migration still holds the source");
    let events = cloud.accept(&revert(&i1));
    assert_eq!(events[0]["header"]["kind"], "Released");
    assert_eq!(events[0]["body"]["finding"], "released_owner_ended");
    assert_eq!(cloud.vcpus(&hosts), [0]);
    assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (Holding::new(), Holding::new()));
    cloud.verify();
}

/// Case B1 by Placement's own calls, which cannot say that a server ended: the swap back is
/// carried out, as Placement does.
#[test]
fn a_plain_swap_back_is_carried_out_as_placement_does() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.put(&i1, &vcpu(&hosts[0], 2), &Value::Null).expect(204);
    cloud.hand_over(&i1, &m1, &vcpu(&hosts[0], 2)).expect(204);
    cloud.client.delete(&format!("/allocations/{i1}")).unwrap().expect(404);
    cloud.hand_over(&m1, &i1, &vcpu(&hosts[0], 2)).expect(204);
    assert_eq!(cloud.vcpus(&hosts), [2]);
    assert_eq!(cloud.kinds(&i1), ["Claimed", "MovedToMigration", "Reverted"]);
}

/// Case B3 (bugs 1709902, 1721652): the source of an evacuation goes with the confirm, though
/// its host never speaks again.
#[test]
fn an_evacuation_leaves_nothing_on_the_dead_host() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 4)));
    cloud.accept(&double_up(&i1, "evacuation", &vcpu(&hosts[1], 4)));
    assert_eq!(cloud.vcpus(&hosts), [4, 4]);
    cloud.accept(&confirm(&i1));
    assert_eq!(cloud.vcpus(&hosts), [0, 4]);
    assert_eq!(cloud.kinds(&i1), ["Claimed", "DoubledUp", "Confirmed"]);
}

/// Case B5 (bug 1713786): the step that failed gives back what it claimed, and no more.
#[test]
fn a_failed_evacuation_gives_up_its_destination_only() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let i1 = consumer("I1");
    let generation = || books::read(&cloud.client, &i1).1;
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 4)));
    assert_eq!(generation(), Some(1));
    cloud.accept(&double_up(&i1, "evacuation", &vcpu(&hosts[1], 4)));
    assert_eq!((cloud.vcpus(&hosts), generation()), ([4, 4], Some(2)));
    cloud.accept(&fail(&i1, "no such image"));
    assert_eq!((cloud.vcpus(&hosts), generation()), ([4, 0], Some(3)));
    assert_eq!(cloud.holds(&i1), vcpu(&hosts[0], 4));
    assert_eq!(cloud.history(&i1)[2], pair("DestinationReleased", Some("no such image")));
}

/// Case B6 (bug 1712411): host after host fails its check, and none keeps a claim.
#[test]
fn a_live_migration_that_fails_on_three_hosts_leaves_nothing_on_them() {
    let cloud = Cloud::new();
    let hosts: [String; 4] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&to_migration(&i1, &m1, "live_migration"));
    let mut expected = vec![pair("Claimed", None), pair("MovedToMigration", None)];
    for (number, host) in hosts.iter().enumerate().skip(1) {
        let reason = format!("pre-check on H{} failed", number + 1);
        cloud.accept(&claim(&i1, &vcpu(host, 2)));
        assert_eq!(cloud.used(host)["VCPU"], 2);
        cloud.accept(&fail(&i1, &reason));
        assert_eq!(cloud.vcpus(&hosts), [2, 0, 0, 0]);
        expected.extend([pair("Claimed", None), pair("DestinationReleased", Some(&reason))]);
    }
    cloud.accept(&revert(&i1));
    expected.push(pair("Reverted", None));
    assert_eq!(cloud.vcpus(&hosts), [2, 0, 0, 0]);
    assert_eq!((cloud.holds(&i1), cloud.holds(&m1)), (vcpu(&hosts[0], 2), Holding::new()));
    assert_eq!(cloud.history(&i1), expected);
    cloud.verify();
}

/// Case B8 (bugs 1713796, 1862633): whichever way an unshelve fails, its claim goes.
#[test]
fn an_unshelve_that_fails_gives_its_claim_back_on_either_path() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 4)));
    cloud.accept(&release(&i1, false, "shelved"));
    for reason in ["port binding", "spawn"] {
        cloud.accept(&claim(&i1, &vcpu(&hosts[1], 4)));
        assert_eq!(cloud.vcpus(&hosts), [0, 4]);
        cloud.accept(&release(&i1, false, reason));
        assert_eq!(cloud.vcpus(&hosts), [0, 0]);
        let history = cloud.history(&i1);
        assert_eq!(
            history[history.len() - 2..],
            [pair("Claimed", None), pair("Released", Some(reason))]
        );
    }
}

/// Case B10 (bug 1825537): the caller knows where the server is and says which side stays.
#[test]
fn which_side_stays_is_what_the_caller_says() {
    for (end, figures, state) in
        [(confirm as fn(&str) -> Value, [0, 4], "confirmed"), (revert, [2, 0], "reverted")]
    {
        let cloud = Cloud::new();
        let hosts: [String; 2] = cloud.hosts();
        let (i1, m1) = (consumer("I1"), consumer("M1"));
        cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
        cloud.accept(&to_migration(&i1, &m1, "resize"));
        cloud.accept(&claim(&i1, &vcpu(&hosts[1], 4)));
        cloud.accept(&end(&i1));
        assert_eq!((cloud.vcpus(&hosts), cloud.move_state(&i1).as_str()), (figures, state));
        assert_eq!(cloud.holds(&m1), Holding::new());
        // The other end is refused by name, and changes nothing.
        let other = if state == "confirmed" { revert(&i1) } else { confirm(&i1) };
        let refused = cloud.send(&other).expect(409);
        assert!(refused.detail().contains(state), "{}", refused.text());
        // The same end again answers what happened.
        let again = cloud.send(&end(&i1)).expect(200).json();
        assert_eq!(again["events"], Value::Array(Vec::new()), "{again}");
        assert_eq!(again["unchanged"][0]["already_ended"]["state"], state, "{again}");
        assert_eq!(cloud.vcpus(&hosts), figures);
    }
}

/// Case B13 (bug 1679750): a release needs nobody else to be alive.
#[test]
fn a_release_frees_a_silent_host_at_once() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&release(&i1, true, "deleted while its host was down"));
    assert_eq!((cloud.vcpus(&hosts), cloud.holds(&i1)), ([0], Holding::new()));
    cloud.accept(&claim(&consumer("I2"), &vcpu(&hosts[0], 8)));
}

fn pair(kind: &str, reason: Option<&str>) -> (String, Option<String>) {
    (kind.to_owned(), reason.map(str::to_owned))
}
