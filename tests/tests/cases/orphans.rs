//! Holdings that nobody gives back by himself, and the commands that put each right (cases B1,
//! B13, B20).

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use system_tests::books::Holding;

use crate::cloud::{Cloud, claim, consumer, release, to_migration, vcpu};

fn orphans(cloud: &Cloud, query: &str) -> Vec<Value> {
    let answer = cloud.client.read(&format!("/ledger/v1/orphans?{query}"));
    let rows = answer["orphans"].as_array().expect("a list").clone();
    assert_eq!(answer["total"].as_u64(), Some(rows.len() as u64), "{answer}");
    rows
}

fn feed(cloud: &Cloud, list: &Value) -> Value {
    cloud.client.post("/ledger/v1/living", list).unwrap().expect(200).json()
}

/// A moment by the server's clock that is after all that was answered so far.
fn now(cloud: &Cloud) -> String {
    let answer = cloud.client.read("/ledger/v1/orphans");
    answer["as_of"].as_str().expect("a time").to_owned()
}

fn mend(cloud: &Cloud, row: &Value) -> Vec<Value> {
    cloud.accept(&row["mend"])
}

/// Case B20: 5 of 1,000 servers end behind the ledger's back.
#[test]
fn a_list_of_the_living_finds_exactly_those_that_are_gone() {
    const SERVERS: usize = 1_000;
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("VCPU", SERVERS as u64)]);
    let all: Vec<String> = (0..SERVERS).map(|number| consumer(&format!("I{number}"))).collect();
    let claims: Vec<Value> = all.iter().map(|one| claim(one, &vcpu(&host, 1))).collect();
    for some in claims.chunks(250) {
        let client = cloud.client.request_id("req-11111111-2222-4333-8444-555555555555");
        client.post("/ledger/v1/commands", &json!(some)).unwrap().expect(200);
    }
    let (dead, living) = all.split_at(5);
    let list = json!({"as_of": now(&cloud), "living": living});
    let told = feed(&cloud, &list);
    assert_eq!((told["compared"].as_u64(), told["total"].as_u64()), (Some(1_000), Some(5)));
    let rows = orphans(&cloud, "kind=not_living");
    let mut found: Vec<&str> = rows.iter().map(|row| row["consumer"].as_str().unwrap()).collect();
    let mut wanted: Vec<&str> = dead.iter().map(String::as_str).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    for row in &rows {
        assert!(row["age_seconds"].as_u64().is_some(), "{row}");
        assert_eq!(row["last"]["request_id"], "req-11111111-2222-4333-8444-555555555555", "{row}");
        assert_eq!(row["last"]["actor"]["user"], "admin", "{row}");
        assert_eq!(row["holds"][&host]["VCPU"], 1, "{row}");
    }
    let metrics = cloud.client.get("/metrics").unwrap().text();
    assert!(metrics.contains("allocd_orphans{kind=\"not_living\"} 5"), "{metrics}");
    for row in &rows {
        let events = mend(&cloud, row);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["header"]["kind"], "Released");
    }
    assert_eq!(cloud.used(&host)["VCPU"], SERVERS as u64 - 5);
    assert!(orphans(&cloud, "").is_empty());
    assert_eq!(feed(&cloud, &list)["total"], 0, "a second run finds none");
    cloud.verify();
}

/// Case B20: what a list showed is there after a restart, also after a crash. Damaged, it is as if
/// no list had come yet, and the server says so.
#[test]
fn what_a_list_showed_survives_a_restart() {
    let mut cloud = Cloud::new();
    let [host]: [String; 1] = cloud.hosts();
    let [i1, i2, i3] = ["I1", "I2", "I3"].map(consumer);
    for one in [&i1, &i2] {
        cloud.accept(&claim(one, &vcpu(&host, 1)));
    }
    let list = json!({"as_of": now(&cloud), "living": [i3]});
    assert_eq!(feed(&cloud, &list)["total"], 3);
    let told = |cloud: &Cloud| -> Vec<(Value, Value, Value, Value)> {
        let rows = orphans(cloud, "").into_iter();
        rows.map(|mut row| {
            (row["kind"].take(), row["consumer"].take(), row["source"].take(), row["mend"].take())
        })
        .collect()
    };
    let before = told(&cloud);
    assert_eq!(before.len(), 3, "{before:?}");
    let restart = |cloud: &mut Cloud| {
        cloud.server.restart();
        cloud.client = cloud.server.client();
    };
    cloud.server.kill();
    restart(&mut cloud);
    assert_eq!(told(&cloud), before);
    // What was put right meanwhile is no finding any more, and stays so.
    cloud.accept(&release(&i1, true, "gone"));
    assert_eq!(orphans(&cloud, "").len(), 2);
    restart(&mut cloud);
    assert_eq!(orphans(&cloud, "").len(), 2);
    let file = cloud.server.data_dir().join("living");
    assert!(cloud.server.terminate().success());
    std::fs::write(&file, b"ALLOCLIV, or not").unwrap();
    restart(&mut cloud);
    assert!(orphans(&cloud, "").is_empty());
    assert!(cloud.server.log().contains("what lists of the living showed is discarded"));
    assert_eq!(feed(&cloud, &list)["total"], 2, "the next list says it again");
    cloud.verify();
}

/// Lists come in ranges, and what is younger than a list is not in it.
#[test]
fn a_range_tells_of_its_own_ids_only_and_never_of_younger_ones() {
    let cloud = Cloud::new();
    let [host]: [String; 1] = cloud.hosts();
    let mut all: Vec<String> = (0..4).map(|number| consumer(&format!("I{number}"))).collect();
    all.sort_unstable();
    for one in &all[..3] {
        cloud.accept(&claim(one, &vcpu(&host, 1)));
    }
    let as_of = now(&cloud);
    cloud.accept(&claim(&all[3], &vcpu(&host, 1)));
    let low = json!({"as_of": as_of, "last": all[1], "living": [all[1]]});
    assert_eq!(feed(&cloud, &low)["findings"][0]["consumer"], all[0].as_str());
    let high = json!({"as_of": as_of, "first": all[2], "living": []});
    assert_eq!(feed(&cloud, &high)["findings"][0]["consumer"], all[2].as_str());
    assert_eq!(orphans(&cloud, "").len(), 2, "the first range's is still there");
    let outside = json!({"as_of": as_of, "first": all[2], "living": [all[0]]});
    cloud.client.post("/ledger/v1/living", &outside).unwrap().expect(400);
    let future = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 31_556_952;
    let future = json!({"as_of": format!("{}-01-01T00:00:00Z", 1972 + future), "living": []});
    cloud.client.post("/ledger/v1/living", &future).unwrap().expect(400);
    // The next list of the same range takes the place of the first.
    let right = json!({"as_of": as_of, "last": all[1], "living": [all[0], all[1]]});
    assert_eq!(feed(&cloud, &right)["total"], 0);
    assert_eq!(orphans(&cloud, "").len(), 1);
}

/// Case B13 (bug 1679750): a host that comes back late says that it runs a released server.
#[test]
fn a_late_report_of_a_host_is_a_finding_and_never_a_claim() {
    let cloud = Cloud::new();
    let hosts: [String; 2] = cloud.hosts();
    let (i1, i2) = (consumer("I1"), consumer("I2"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&claim(&i2, &vcpu(&hosts[1], 2)));
    cloud.accept(&release(&i1, true, "deleted while its host was down"));
    let report = json!({"as_of": now(&cloud), "provider": hosts[0], "living": [i1, i2]});
    let told = feed(&cloud, &report);
    let kind = |consumer: &str| {
        let rows = told["findings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["consumer"] == consumer).unwrap();
        assert_eq!(row["mend"], json!([]), "{row}");
        row["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!((&*kind(&i1), &*kind(&i2)), ("runs_without_allocation", "runs_elsewhere"));
    assert_eq!((cloud.vcpus(&hosts), cloud.holds(&i1)), ([0, 2], Holding::new()));
    let row = &orphans(&cloud, "kind=runs_without_allocation")[0];
    assert_eq!(row["last"]["kind"], "Released", "{row}");
    assert_eq!(row["told"]["provider"], hosts[0].as_str(), "{row}");
    // Once it is claimed for, the finding is gone.
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    assert!(orphans(&cloud, "kind=runs_without_allocation").is_empty());
}

/// Case B1 (bug 1848343): the end of a server is known, and its move holds the source still.
#[test]
fn the_move_of_a_server_that_ended_is_listed_and_mended() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&to_migration(&i1, &m1, "migration"));
    cloud.accept(&release(&i1, true, "deleted by its owner"));
    let rows = orphans(&cloud, "");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["kind"], &rows[0]["consumer"]), (&json!("move_of_ended"), &json!(i1)));
    assert_eq!(rows[0]["migration"], m1.as_str());
    assert_eq!(mend(&cloud, &rows[0])[0]["header"]["kind"], "Released");
    assert_eq!(cloud.vcpus(&hosts), [0]);
    assert!(orphans(&cloud, "").is_empty());
    cloud.verify();
}

/// The instance of a move is gone, and only a list of the living knows.
#[test]
fn a_migration_whose_instance_is_gone_is_found_by_a_list_and_mended_whole() {
    for destination in [false, true] {
        let cloud = Cloud::new();
        let hosts: [String; 2] = cloud.hosts();
        let (i1, m1) = (consumer("I1"), consumer("M1"));
        cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
        cloud.accept(&to_migration(&i1, &m1, "migration"));
        if destination {
            cloud.accept(&claim(&i1, &vcpu(&hosts[1], 2)));
        }
        let told = feed(&cloud, &json!({"as_of": now(&cloud), "living": []}));
        assert_eq!(told["total"], 1, "the migration is no finding of its own: {told}");
        let row = &told["findings"][0];
        assert_eq!((&row["kind"], &row["consumer"]), (&json!("not_living"), &json!(i1)));
        mend(&cloud, row);
        assert_eq!(cloud.vcpus(&hosts), [0, 0]);
        assert!(orphans(&cloud, "").is_empty());
    }
}

/// A move that stays open, and one that was abandoned.
#[test]
fn open_and_abandoned_moves_are_listed_and_mended() {
    let cloud = Cloud::with(&["--open-move-bound", "0"]);
    let hosts: [String; 1] = cloud.hosts();
    let (i1, m1) = (consumer("I1"), consumer("M1"));
    cloud.accept(&claim(&i1, &vcpu(&hosts[0], 2)));
    cloud.accept(&to_migration(&i1, &m1, "resize"));
    let rows = orphans(&cloud, "kind=move_stays_open");
    assert_eq!(rows[0]["consumer"], i1.as_str(), "{rows:?}");
    assert!(orphans(&cloud, "open_longer_than=1h").is_empty());
    mend(&cloud, &rows[0]);
    assert_eq!(cloud.holds(&i1), vcpu(&hosts[0], 2));
    assert!(orphans(&cloud, "").is_empty());
    cloud.accept(&to_migration(&i1, &m1, "resize"));
    cloud.client.delete(&format!("/allocations/{m1}")).unwrap().expect(204);
    let rows = orphans(&cloud, "");
    assert_eq!((rows.len(), &rows[0]["kind"]), (1, &json!("move_abandoned")), "{rows:?}");
    mend(&cloud, &rows[0]);
    assert!(orphans(&cloud, "").is_empty());
    cloud.client.get("/ledger/v1/orphans?kind=lost").unwrap().expect(400);
    cloud.verify();
}
