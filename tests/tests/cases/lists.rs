//! Lists of everybody, while everybody goes on (case K1).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use system_tests::books;
use system_tests::http::Client;
use system_tests::stop::StopOnDrop;

use crate::cloud::{BULK, Cloud, consumer, release};

/// Consumers that are there before the list is asked for.
const CONSUMERS: usize = 50_000;

/// One in so many is a migration.
const MIGRATION: usize = 10;

/// One in so many migrations is released while the list is read.
const RELEASED: usize = 20;

/// Rows of a page.
const PAGE: usize = 1_000;

/// How old a consumer has to be.
const AGE: Duration = Duration::from_secs(1);

fn claim(host: &str, name: &str, consumer_type: &str) -> Value {
    json!({"claim": {
        "consumer": consumer(name), "project_id": "p", "user_id": "u",
        "consumer_type": consumer_type, "options": [{host: {"VCPU": 1}}],
    }})
}

/// All rows of a list, page by page, each page with the time at which it had been read.
fn pages(client: &Client, query: &str) -> Vec<(SystemTime, Vec<Value>)> {
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.read(&format!("/ledger/v1/consumers?{query}{after}"));
        assert!(page["sequence"].as_u64() > Some(0));
        pages.push((SystemTime::now(), page["consumers"].as_array().unwrap().clone()));
        let Some(next) = page["next_after"].as_str() else { return pages };
        after = format!("&after={next}");
    }
}

/// When a consumer began to hold something, as the list tells it.
fn created(row: &Value) -> SystemTime {
    let time: Timestamp = row["created_at"].as_str().unwrap().parse().expect("a time");
    time.into()
}

/// Case K1: of 50,000 consumers the migrations of a certain age, page by page, while others come
/// and go: each of those that stay comes once, in order, and nobody who is too young or of another type.
#[test]
fn migrations_of_an_age_are_listed_while_others_come_and_go() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("VCPU", 1_000_000)]);
    let kind =
        |number: usize| if number.is_multiple_of(MIGRATION) { "MIGRATION" } else { "INSTANCE" };
    let numbers: Vec<usize> = (0..CONSUMERS).collect();
    for list in numbers.chunks(BULK) {
        let claims = list.iter().map(|n| claim(&host, &format!("C{n}"), kind(*n)));
        cloud.accept(&claims.collect::<Vec<_>>().into());
    }
    let migrations = (0..CONSUMERS).step_by(MIGRATION);
    let (leave, stay): (Vec<usize>, Vec<usize>) =
        migrations.partition(|number| number.is_multiple_of(MIGRATION * RELEASED));
    let stay: BTreeSet<String> =
        stay.iter().map(|number| consumer(&format!("C{number}"))).collect();
    // Everybody gets old enough.
    let all_there = SystemTime::now();
    while all_there.elapsed().unwrap() <= AGE {
        thread::sleep(Duration::from_millis(10));
    }
    let stop = AtomicBool::new(false);
    let pages = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return number;
                }
                cloud.accept(&claim(&host, &format!("young {number}"), "MIGRATION"));
                if let Some(gone) = leave.get(number) {
                    cloud.accept(&release(&consumer(&format!("C{gone}")), false, "done"));
                }
            }
            unreachable!("numbers do not end")
        });
        let query = format!("type=MIGRATION&older_than={}&limit={PAGE}", AGE.as_secs());
        let pages = {
            let _stop = StopOnDrop(&stop);
            pages(&cloud.server.client(), &query)
        };
        println!("{} written meanwhile", writer.join().unwrap());
        pages
    });
    let rows: Vec<&Value> = pages.iter().flat_map(|(_, rows)| rows).collect();
    let seen: Vec<&str> = rows.iter().map(|row| row["uuid"].as_str().unwrap()).collect();
    assert!(seen.is_sorted_by(|a, b| a < b), "each once and in order");
    let missing = stay.iter().filter(|uuid| seen.binary_search(&uuid.as_str()).is_err()).count();
    assert_eq!(missing, 0, "of {} that were there all the time", stay.len());
    assert!(rows.iter().all(|row| row["consumer_type"] == "MIGRATION"));
    for (read, rows) in &pages {
        assert!(rows.len() <= PAGE);
        for row in rows {
            assert!(created(row) + AGE <= *read, "{row} is too young");
        }
    }
    let old = cloud.client.read("/ledger/v1/consumers?type=MIGRATION&older_than=1h");
    assert_eq!((&old["consumers"], &old["next_after"]), (&json!([]), &Value::Null));
    let row = &cloud.client.read("/ledger/v1/providers")["providers"][0];
    let held = row["inventories"]["VCPU"]["held"].as_u64();
    assert_eq!(held, books::usages(&cloud.client, &host).get("VCPU").copied());
}
