//! The client crate against a real server and a real broker: commands are carried out once whatever
//! is lost, events come once and in order whatever the broker does, views come whole.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use allocd_client::{
    Change, CommandError, Commander, FollowError, FollowOptions, Follower, LedgerHttp, Record,
    Source, View,
};
use async_nats::{Client, ConnectOptions};
use serde_json::{Value, json};
use system_tests::nats::Nats;
use system_tests::proxy::Proxy;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;
use tokio::runtime::Runtime;

/// How long the next thing may take.
const PATIENCE: Duration = Duration::from_secs(120);

struct Scene {
    nats: Nats,
    server: Server,
    host: String,
    runtime: Runtime,
}

impl Scene {
    fn start() -> Scene {
        let nats = Nats::start();
        let server = Server::with(&["--nats", &nats.url()], &[]);
        let host = topology::provider(&server.client(), "host", &[("VCPU", 1_000_000)]);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Scene { nats, server, host, runtime: runtime.unwrap() }
    }

    fn client(&self) -> Client {
        self.connect(&self.nats.url(), ConnectOptions::new())
    }

    fn connect(&self, url: &str, options: ConnectOptions) -> Client {
        self.runtime.block_on(options.retry_on_initial_connect().connect(url)).unwrap()
    }

    fn ledger(&self) -> LedgerHttp {
        LedgerHttp::new(&self.server.url(), "admin")
    }

    fn follower(&self, after: u64, source: Source) -> Follower {
        let options = FollowOptions { after, source, ..quick() };
        Follower::new(self.client(), self.ledger(), options)
    }

    /// Claims over HTTP, in lists of 50, so that many events come at once.
    fn claims(&self, numbers: std::ops::Range<u64>) {
        let all: Vec<Value> = numbers.map(|number| json!({"claim": self.claim(number)})).collect();
        for list in all.chunks(50) {
            self.server.client().post("/ledger/v1/commands", &json!(list)).unwrap().expect(200);
        }
    }

    fn claim(&self, number: u64) -> Value {
        json!({
            "consumer": uuid(number), "project_id": "p", "user_id": "u",
            "options": [{&self.host: {"VCPU": 1}}],
        })
    }

    fn head(&self) -> u64 {
        self.server.client().read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
    }

    /// Waits until the stream is where the ledger is.
    fn published(&self) {
        let deadline = Instant::now() + PATIENCE;
        while system_tests::subscriber::last_sequence(&self.nats.url()) != Some(self.head()) {
            assert!(Instant::now() < deadline, "the stream does not come to {}", self.head());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn in_time<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, what).await.unwrap() })
    }

    /// Follows to the ledger's end; everything that came.
    fn to_end(&self, follower: &mut Follower) -> Vec<Record> {
        let (head, mut records) = (self.head(), Vec::new());
        while follower.position() < head {
            records.push(self.in_time(follower.next()).unwrap());
        }
        records
    }

    fn ends_well(mut self) {
        assert!(self.server.terminate().success(), "a clean stop");
        verify_ledger(&self.server.data_dir());
    }
}

fn quick() -> FollowOptions {
    FollowOptions { quiet: Duration::from_millis(500), page: 300, ..FollowOptions::default() }
}

fn uuid(number: u64) -> String {
    topology::uuid(&format!("consumer {number}")).to_string()
}

#[track_caller]
fn are(records: &[Record], sequences: std::ops::RangeInclusive<u64>) {
    let found: Vec<u64> = records.iter().map(|record| record.header.sequence).collect();
    assert_eq!(found, sequences.collect::<Vec<_>>());
}

/// Case I25: the stream keeps 100 messages, 1,000 events are written, the reader is at 10. It gets
/// 11 to the end, what the stream dropped from the ledger.
#[test]
fn i25_what_limits_dropped_comes_from_the_ledger() {
    let scene = Scene::start();
    scene.published();
    scene.runtime.block_on(async {
        let context =
            async_nats::jetstream::new(async_nats::connect(scene.nats.url()).await.unwrap());
        let stream = context.get_stream("ALLOC_EVENTS").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.max_messages = 100;
        context.update_stream(config).await.unwrap();
    });
    scene.claims(0..1_000);
    scene.published();
    let mut follower = scene.follower(10, Source::Stream);
    let records = scene.to_end(&mut follower);
    are(&records, 11..=scene.head());
    let counts = follower.counts();
    println!("{counts:?}");
    assert!(counts.holes >= 1 && counts.refilled >= scene.head() - 110, "{counts:?}");
    assert_eq!((counts.foreign, counts.duplicates), (0, 0));
    scene.ends_well();
}

/// Cases I15, J13, J17: messages come twice, late, damaged, or not at all. Each event is handed out
/// once and in order, and what was wrong is counted.
#[test]
fn i15_j13_j17_doubles_and_rubbish_change_nothing() {
    let scene = Scene::start();
    scene.claims(0..100);
    let head = scene.head();
    let records = scene.in_time(scene.ledger().records(0, 1_000)).unwrap();
    let client = scene.client();
    // A copy of the stream under other subjects, spoilt in every way.
    let options = FollowOptions {
        after: 5,
        source: Source::Subscription,
        subjects: "copy.>".into(),
        ..quick()
    };
    let late = scene.in_time(scene.ledger().records(head - 60, 1)).unwrap();
    assert_eq!(late[0].header.sequence, head - 59);
    let mut follower = Follower::new(scene.client(), scene.ledger(), options);
    are(&scene.to_end(&mut follower), 6..=head);
    scene.claims(100..150);
    let more = scene.in_time(scene.ledger().records(head, 1_000)).unwrap();
    let send = |bytes: &[u8]| {
        scene.in_time(client.publish("copy.event", bytes.to_vec().into())).unwrap();
    };
    for (at, record) in more.iter().enumerate() {
        match at % 7 {
            // Missing.
            2 => {}
            // Damaged.
            4 => {
                let mut bytes = record.bytes().to_vec();
                *bytes.last_mut().unwrap() ^= 1;
                send(&bytes);
            }
            // Rubbish between good ones, and an old event once more.
            5 => {
                send(b"not an event");
                send(record.bytes());
                send(records[6].bytes());
            }
            // Twice.
            6 => {
                send(record.bytes());
                send(record.bytes());
            }
            _ => send(record.bytes()),
        }
    }
    scene.in_time(client.flush()).unwrap();
    are(&scene.to_end(&mut follower), head + 1..=scene.head());
    let counts = follower.counts();
    println!("{counts:?}");
    assert!(counts.duplicates > 0 && counts.foreign > 0, "{counts:?}");
    assert_eq!(counts.delivered, scene.head() - 5);
    scene.ends_well();
}

/// Case J19: a reader that is slower than its subscription is told of the hole, and reads it from
/// the ledger.
#[test]
fn j19_what_a_slow_reader_misses_comes_from_the_ledger() {
    let scene = Scene::start();
    let options = FollowOptions { source: Source::Subscription, ..quick() };
    let client = scene.connect(&scene.nats.url(), ConnectOptions::new().subscription_capacity(64));
    let mut follower = Follower::new(client, scene.ledger(), options);
    let mut records = scene.to_end(&mut follower);
    for part in 0..5 {
        // Nobody reads meanwhile.
        scene.claims(part * 1_000..(part + 1) * 1_000);
        scene.published();
        records.push(scene.in_time(follower.next()).unwrap());
    }
    records.extend(scene.to_end(&mut follower));
    are(&records, 1..=scene.head());
    let counts = follower.counts();
    println!("{counts:?}");
    assert!(counts.holes > 0 && counts.refilled > 0, "{counts:?}");
    scene.ends_well();
}

/// Case J12: answers of the broker are swallowed, the connection stands. The follower notices by the
/// ledger's head that it hears nothing, and has everything while the broker is still silent.
#[test]
fn j12_a_silent_subscription_is_noticed() {
    let scene = Scene::start();
    scene.published();
    let proxy = Proxy::to(scene.nats.port());
    let url = format!("nats://127.0.0.1:{}", proxy.port());
    let client =
        scene.connect(&url, ConnectOptions::new().request_timeout(Some(Duration::from_secs(1))));
    let mut follower = Follower::new(client, scene.ledger(), quick());
    let mut records = scene.to_end(&mut follower);
    for round in 0..3 {
        proxy.swallow(true);
        scene.claims(round * 100..(round + 1) * 100);
        let begun = Instant::now();
        records.extend(scene.to_end(&mut follower));
        println!("round {round}: level again after {:?}", begun.elapsed());
        proxy.swallow(false);
        scene.claims(10_000 + round * 10..10_010 + round * 10);
        records.extend(scene.to_end(&mut follower));
    }
    are(&records, 1..=scene.head());
    scene.ends_well();
}

/// Case J15: the broker restarts 20 times under load; the follower goes on by itself each time.
#[test]
fn j15_a_follower_outlives_twenty_restarts_of_the_broker() {
    let mut scene = Scene::start();
    let mut follower = scene.follower(0, Source::Stream);
    let mut records = Vec::new();
    for round in 0..20 {
        scene.claims(round * 50..round * 50 + 25);
        records.extend(scene.to_end(&mut follower));
        if round % 2 == 0 {
            scene.nats.kill()
        } else {
            scene.nats.terminate()
        }
        scene.claims(round * 50 + 25..(round + 1) * 50);
        scene.nats.restart();
    }
    records.extend(scene.to_end(&mut follower));
    are(&records, 1..=scene.head());
    println!("{:?}", follower.counts());
    scene.ends_well();
}

/// A ledger that ends before what was seen has lost something, or is another one.
#[test]
fn a_ledger_that_ends_too_early_is_told() {
    let scene = Scene::start();
    let mut follower = scene.follower(1_000, Source::Stream);
    let error = scene.in_time(follower.next()).unwrap_err();
    let head = scene.head();
    assert!(
        matches!(error, FollowError::BeyondEnd { head: told, wanted: 1_000 } if told == head),
        "{error}"
    );
    scene.ends_well();
}

/// Commands are sent again under their ids while the broker and the server are killed: each is
/// carried out once.
#[test]
fn commands_are_carried_out_once_through_kills() {
    let mut scene = Scene::start();
    let client = scene.client();
    let commander = Commander::new(client, "p", "a test")
        .retries(allocd_client::Retries { each: Duration::from_millis(500), in_all: PATIENCE });
    let (mut attempts, mut sequences) = (0, BTreeMap::new());
    for round in 0..12u64 {
        let bodies: Vec<Value> = (0..20).map(|number| scene.claim(round * 20 + number)).collect();
        let sending = scene.runtime.spawn({
            let commander = commander.clone();
            async move {
                let mut all = Vec::new();
                for body in bodies {
                    all.push((body["consumer"].clone(), commander.send("claim", &body).await));
                }
                all
            }
        });
        thread::sleep(Duration::from_millis(3 * round));
        if round % 2 == 0 {
            scene.nats.kill();
            scene.nats.restart();
        } else {
            scene.server.kill();
            scene.server.restart();
        }
        for (consumer, done) in scene.in_time(sending).unwrap() {
            let done = done.unwrap();
            attempts += done.attempts;
            let sequence = done.answer["events"][0]["header"]["sequence"].as_u64().unwrap();
            assert_eq!(sequences.insert(sequence, consumer), None, "one event, two commands");
        }
    }
    println!("240 commands, {attempts} attempts");
    let claimed = scene.server.client().read("/ledger/v1/events?kind=Claimed&limit=1000");
    assert_eq!(claimed["events"].as_array().unwrap().len(), 240);
    scene.ends_well();
}

#[test]
fn a_refusal_is_told_with_its_figures() {
    let scene = Scene::start();
    let commander = Commander::new(scene.client(), "p", "a test");
    let mut body = scene.claim(1);
    body["options"] = json!([{&scene.host: {"VCPU": 2_000_000}}]);
    let refused = scene.in_time(commander.send("claim", &body)).unwrap_err();
    let CommandError::Refused { code: 409, error, .. } = refused else { panic!("{refused}") };
    assert_eq!(error["cause"], "constraint");
    assert_eq!((&error["class"], &error["needed"]), (&json!("VCPU"), &json!(2_000_000)));
    let unknown = scene.in_time(commander.send("fly", &json!({}))).unwrap_err();
    assert!(matches!(unknown, CommandError::Refused { code: 404, .. }), "{unknown}");
    scene.ends_well();
}

/// A view comes whole, then its changes; when its bucket is made anew it begins again.
#[test]
fn a_view_comes_whole_and_begins_again_with_a_new_bucket() {
    let scene = Scene::start();
    scene.claims(0..10);
    let head = scene.head();
    let client = scene.client();
    let mut view = scene.in_time(async { View::new(client, "alloc_usage") });
    let (mut held, mut begun) = (0, 0);
    let mut until = |sequence: u64, begins: u64| loop {
        match scene.in_time(view.next()).unwrap() {
            Change::Begin => begun += 1,
            Change::Put { key, value } if key == scene.host => {
                held = value["classes"]["VCPU"]["held"].as_u64().unwrap();
            }
            Change::AsOf { sequence: at } if at >= sequence && begun >= begins => return held,
            _ => {}
        }
    };
    assert_eq!(until(head, 1), 10);
    scene.claims(10..30);
    assert_eq!(until(scene.head(), 1), 30);
    scene.runtime.block_on(async {
        let context =
            async_nats::jetstream::new(async_nats::connect(scene.nats.url()).await.unwrap());
        context.delete_key_value("alloc_usage").await.unwrap();
    });
    scene.claims(30..40);
    assert_eq!(until(scene.head(), 2), 40);
    scene.ends_well();
}
