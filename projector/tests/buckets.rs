//! The key-value buckets on a real nats-server: a late watcher gets the whole view and then the
//! changes, and a bucket that was spoilt is made right.

mod common;

use async_nats::jetstream::Context;
use common::nats::NatsServer;
use common::{claim, consumer, holding, make_provider, must, open, provider, runtime, until};
use futures::StreamExt;
use ledger::Ledger;
use ledger::command::{Command, Confirm, MoveKind, MoveToMigration, Release, SetAggregates};
use projector::buckets::{AS_OF, Buckets, BucketsOptions, CAPACITY, MOVES, USAGE};
use projector::connection::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

type Entries = BTreeMap<String, Value>;

struct Scene {
    server: NatsServer,
    _dir: TempDir,
    ledger: Ledger,
    buckets: Buckets,
    runtime: Runtime,
    context: Context,
}

impl Scene {
    fn start() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut BucketsOptions)) -> Self {
        let server = NatsServer::start();
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = open(dir.path());
        let mut options = BucketsOptions {
            inspect_every: Duration::from_millis(200),
            ..BucketsOptions::new(Connection::to(server.url()))
        };
        change(&mut options);
        let buckets = Buckets::start(&ledger, options).expect("a thread");
        let runtime = runtime();
        let context = runtime.block_on(server.jetstream());
        Self { server, _dir: dir, ledger, buckets, runtime, context }
    }

    /// Waits until the buckets are as the ledger is.
    fn settled(&self) {
        until("the buckets are level", || {
            let status = self.buckets.status();
            status.connected && status.fault.is_none() && status.lag == 0
        });
    }

    /// What a watcher that comes now gets: each key once, up to the moment when it is level.
    fn whole(&self, bucket: &str) -> Entries {
        let mut found = None;
        until("the bucket can be asked for", || {
            found = self.runtime.block_on(self.context.get_key_value(bucket)).ok();
            found.is_some()
        });
        let store = found.expect("it was found");
        self.runtime.block_on(async {
            let mut keys = store.keys().await.expect("keys");
            let mut entries = Entries::new();
            while let Some(key) = keys.next().await {
                let key = key.expect("a key");
                if let Some(value) = store.get(key.clone()).await.expect("a value") {
                    entries.insert(key, serde_json::from_slice(&value).expect("JSON"));
                }
            }
            entries
        })
    }

    fn end(self) {
        self.buckets.stop();
        self.ledger.close();
    }
}

/// Entries without `_as_of` and without when they were written.
fn facts(mut entries: Entries) -> Entries {
    entries.remove(AS_OF).expect("a bucket says as of when it is true");
    for value in entries.values_mut() {
        value.as_object_mut().expect("an object").remove("sequence").expect("each has a sequence");
    }
    entries
}

fn aggregates(number: u128, names: &[&str]) -> Command {
    Command::SetAggregates(SetAggregates {
        provider: provider(number),
        generation: None,
        aggregates: names.iter().map(|&name| name.to_owned()).collect(),
    })
}

fn open_move(scene: &Scene, number: u128) {
    must(&scene.ledger, vec![claim(number, holding(provider(1), &[("VCPU", 2)]))]);
    must(
        &scene.ledger,
        vec![Command::MoveToMigration(MoveToMigration {
            consumer: consumer(number),
            migration: consumer(number + 1_000),
            kind: MoveKind::Migration,
        })],
    );
    must(&scene.ledger, vec![claim(number, holding(provider(2), &[("VCPU", 2)]))]);
}

fn confirm(scene: &Scene, number: u128) {
    let confirm = Confirm { consumer: consumer(number), move_id: None };
    must(&scene.ledger, vec![Command::Confirm(confirm)]);
}

#[test]
fn each_bucket_has_the_figures_of_the_state() {
    let scene = Scene::start();
    must(&scene.ledger, make_provider(1, &[("VCPU", 8), ("DISK_GB", 100)]));
    must(&scene.ledger, make_provider(2, &[("VCPU", 4)]));
    must(&scene.ledger, vec![aggregates(1, &["rack a", "zone"]), aggregates(2, &["zone"])]);
    open_move(&scene, 1);
    scene.settled();
    let head = scene.ledger.view().sequence();
    let usage = scene.whole(USAGE);
    assert_eq!(usage[AS_OF]["sequence"], head);
    let one = &usage[&provider(1).to_string()];
    assert_eq!((&one["name"], &one["aggregates"]), (&json!("host-1"), &json!(["rack a", "zone"])));
    let vcpu = json!({"total": 8, "reserved": 0, "allocation_ratio": 1.0, "capacity": 8, "held": 2, "free": 6});
    assert_eq!(one["classes"]["VCPU"], vcpu);
    let moves = facts(scene.whole(MOVES));
    let this = moves.values().next().expect("a move");
    assert_eq!((&this["state"], &this["live"]), (&json!("claimed"), &json!(true)));
    assert_eq!(this["instance"], consumer(1).to_string());
    let capacity = facts(scene.whole(CAPACITY));
    let sum = |key: &str| {
        let sum = &capacity[key];
        (
            sum["providers"].clone(),
            sum["capacity"].clone(),
            sum["held"].clone(),
            sum["free"].clone(),
        )
    };
    assert_eq!(sum("VCPU._all"), (json!(2), json!(12), json!(4), json!(8)));
    assert_eq!(sum("VCPU.zone"), (json!(2), json!(12), json!(4), json!(8)));
    assert_eq!(sum("VCPU.rack=20a"), (json!(1), json!(8), json!(2), json!(6)));
    assert_eq!(sum("DISK_GB._all"), (json!(1), json!(100), json!(0), json!(100)));
    scene.end();
}

/// What follows the events comes to what a writer that begins anew would write.
#[test]
fn changes_come_to_the_same_as_a_new_beginning() {
    let scene = Scene::start();
    for number in 1..=4 {
        must(&scene.ledger, make_provider(number, &[("VCPU", 1_000), ("DISK_GB", 10)]));
    }
    scene.settled();
    for round in 0..20u128 {
        must(
            &scene.ledger,
            vec![aggregates(1 + round % 4, &["a", "b", "c"][..(round % 4) as usize])],
        );
        open_move(&scene, 10 + round);
        if round % 2 == 0 {
            confirm(&scene, 10 + round);
        }
        if round % 3 == 0 {
            let release = Release { consumer: consumer(10 + round), ended: true, reason: None };
            must(&scene.ledger, vec![Command::Release(release)]);
        }
        if round % 5 == 0 {
            scene.settled();
        }
    }
    let gone = ledger::command::DeleteProvider { uuid: provider(4) };
    must(&scene.ledger, vec![Command::DeleteProvider(gone)]);
    scene.settled();
    let followed = [USAGE, MOVES, CAPACITY].map(|bucket| facts(scene.whole(bucket)));
    assert!(!followed[0].contains_key(&provider(4).to_string()));
    scene.buckets.stop();
    for bucket in [USAGE, MOVES, CAPACITY] {
        let deleted = scene.runtime.block_on(scene.context.delete_key_value(bucket));
        deleted.expect("the bucket goes");
    }
    let options = BucketsOptions::new(Connection::to(scene.server.url()));
    let buckets = Buckets::start(&scene.ledger, options).expect("a thread");
    let scene = Scene { buckets, ..scene };
    scene.settled();
    assert_eq!([USAGE, MOVES, CAPACITY].map(|bucket| facts(scene.whole(bucket))), followed);
    scene.end();
}

/// A watcher sees the newest value of a round only, and what it sees under `_as_of` is complete.
#[test]
fn a_watcher_gets_the_whole_view_then_the_changes() {
    let scene = Scene::start();
    must(&scene.ledger, make_provider(1, &[("VCPU", 100_000)]));
    must(&scene.ledger, make_provider(2, &[("VCPU", 8)]));
    scene.settled();
    let store = scene.runtime.block_on(scene.context.get_key_value(USAGE)).expect("the bucket");
    let mut watch = scene.runtime.block_on(store.watch_with_history(">")).expect("a watch");
    let next = |watch: &mut async_nats::jetstream::kv::Watch| {
        let entry = scene
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(30), watch.next()).await });
        let entry = entry.expect("in time").expect("the watch goes on").expect("an entry");
        let value: Value = serde_json::from_slice(&entry.value).expect("JSON");
        (entry.key, value)
    };
    let first: Vec<String> = (0..3).map(|_| next(&mut watch).0).collect();
    assert!(first.contains(&AS_OF.to_owned()) && first.contains(&provider(2).to_string()));
    for number in 0..500 {
        must(&scene.ledger, vec![claim(number, holding(provider(1), &[("VCPU", 1)]))]);
    }
    let head = scene.ledger.view().sequence();
    let (mut values, mut held) = (0, 0);
    loop {
        let (key, value) = next(&mut watch);
        if key == AS_OF {
            if value["sequence"] == head {
                break;
            }
            continue;
        }
        assert_eq!(key, provider(1).to_string(), "nothing else changed");
        let now = value["classes"]["VCPU"]["held"].as_u64().expect("a figure");
        assert!(now > held, "{now} after {held}");
        (values, held) = (values + 1, now);
    }
    assert_eq!(held, 500);
    assert!(values < 500, "{values} values for 500 events: not the newest only");
    scene.end();
}

#[test]
fn a_bucket_that_is_gone_emptied_or_written_to_is_made_right() {
    let scene = Scene::start();
    must(&scene.ledger, make_provider(1, &[("VCPU", 8)]));
    must(&scene.ledger, make_provider(2, &[("VCPU", 8)]));
    scene.settled();
    let good = facts(scene.whole(USAGE));
    let spoil: [fn(&Scene); 3] = [
        |scene| {
            let gone = scene.runtime.block_on(scene.context.delete_key_value(USAGE));
            gone.expect("the bucket goes");
        },
        |scene| {
            scene.runtime.block_on(async {
                let stream = scene.context.get_stream("KV_alloc_usage").await.expect("the stream");
                stream.purge().await.expect("emptied");
                // Emptying alone is seen with the next look; a write is what others would do.
                let store = scene.context.get_key_value(USAGE).await.expect("the bucket");
                store.put("foreign", "1".into()).await.expect("written");
            });
        },
        |scene| {
            scene.runtime.block_on(async {
                let store = scene.context.get_key_value(USAGE).await.expect("the bucket");
                store.put(provider(1).to_string(), "{}".into()).await.expect("written");
            });
        },
    ];
    for (round, spoil) in (1..).zip(spoil) {
        spoil(&scene);
        until("it is noticed", || scene.buckets.status().repairs >= round);
        scene.settled();
        assert_eq!(facts(scene.whole(USAGE)), good);
    }
    scene.end();
}

#[test]
fn a_server_that_was_away_gets_what_happened_meanwhile() {
    let mut scene = Scene::start();
    must(&scene.ledger, make_provider(1, &[("VCPU", 1_000)]));
    scene.settled();
    for round in 0..3 {
        scene.server.kill();
        for number in 0..50 {
            let wanted = holding(provider(1), &[("VCPU", 1)]);
            must(&scene.ledger, vec![claim(round * 100 + number, wanted)]);
        }
        until("the loss is seen", || !scene.buckets.status().connected);
        scene.server.run();
        scene.settled();
        let value = facts(scene.whole(USAGE)).remove(&provider(1).to_string()).expect("there");
        assert_eq!(value["classes"]["VCPU"]["held"], json!((round + 1) * 50));
    }
    scene.end();
}

#[test]
fn moves_that_ended_go_after_a_while() {
    let scene = Scene::with(|options| options.ended_kept = Duration::from_secs(2));
    must(&scene.ledger, make_provider(1, &[("VCPU", 8)]));
    must(&scene.ledger, make_provider(2, &[("VCPU", 8)]));
    open_move(&scene, 1);
    open_move(&scene, 2);
    confirm(&scene, 1);
    until("the one that ended is gone", || {
        scene.settled();
        facts(scene.whole(MOVES)).len() == 1
    });
    let left = facts(scene.whole(MOVES));
    assert_eq!(left.values().next().expect("a move")["instance"], consumer(2).to_string());
    scene.end();
}

#[test]
fn another_ledgers_buckets_are_left_alone() {
    let scene = Scene::start();
    must(&scene.ledger, make_provider(1, &[("VCPU", 8)]));
    scene.settled();
    let dir = tempfile::tempdir().expect("a directory");
    let other = open(dir.path());
    let options = BucketsOptions::new(Connection::to(scene.server.url()));
    let stranger = Buckets::start(&other, options).expect("a thread");
    until("it says so", || stranger.status().fault.is_some_and(|it| it.contains("belongs to")));
    let good = facts(scene.whole(USAGE));
    assert!(good.contains_key(&provider(1).to_string()));
    stranger.stop();
    other.close();
    scene.end();
}
