//! Figures, not a test: commands a second by NATS beside HTTP, the publisher's lag at the full rate of
//! claims, and the time to fill a lost stream again. Beside them how long a sync to disk takes here.
//!
//! ```text
//! cargo nextest run --workspace --test nats_bench --run-ignored all --no-capture
//! ALLOCD_BENCH_SECONDS  how long each rate is measured (5)
//! ALLOCD_BENCH_EVENTS   how many events a lost stream has (100000)
//! ```
#![allow(clippy::unwrap_used, missing_docs)]

use std::env;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::nats::Nats;
use system_tests::server::Server;
use system_tests::subscriber::last_sequence;
use system_tests::topology;
use uuid::Uuid;

const HOSTS: usize = 50;

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

struct Scene {
    nats: Nats,
    server: Server,
    hosts: Vec<String>,
}

impl Scene {
    fn start() -> Scene {
        let nats = Nats::start();
        let server = Server::with(&["--nats", &nats.url()], &[]);
        let client = server.client();
        let host = |number| {
            topology::provider(&client, &format!("host{number:02}"), &[("VCPU", 100_000_000)])
        };
        Scene { nats, hosts: (0..HOSTS).map(host).collect(), server }
    }

    fn claim(&self, client: usize) -> Value {
        json!({
            "consumer": Uuid::new_v4(), "project_id": "p", "user_id": "u",
            "consumer_type": "INSTANCE", "options": [{&self.hosts[client % HOSTS]: {"VCPU": 1}}],
        })
    }

    fn head(&self) -> u64 {
        self.server.client().read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
    }
}

/// Commands a second of so many clients, each sending one after the other.
fn rate(clients: usize, seconds: u64, send: impl Fn(usize, &AtomicBool) -> u64 + Sync) -> f64 {
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let done: u64 = thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|client| {
                let (send, stop) = (&send, &stop);
                scope.spawn(move || send(client, stop))
            })
            .collect();
        thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        all.into_iter().map(|client| client.join().unwrap()).sum()
    });
    done as f64 / begun.elapsed().as_secs_f64()
}

fn by_http(scene: &Scene, client: usize, stop: &AtomicBool) -> u64 {
    let connection = scene.server.client();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let body = json!({"claim": scene.claim(client)});
        connection.post("/ledger/v1/commands", &body).unwrap().expect(200);
        done += 1;
    }
    done
}

fn by_nats(scene: &Scene, client: usize, stop: &AtomicBool) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = async_nats::connect(scene.nats.url()).await.unwrap();
        let mut done = 0;
        while !stop.load(Ordering::Relaxed) {
            let body = scene.claim(client).to_string().into();
            let reply = connection.request("alloc.v1.command.claim", body).await.unwrap();
            let failed = reply.headers.as_ref().and_then(|it| it.get("Nats-Service-Error"));
            assert!(failed.is_none(), "{failed:?}");
            done += 1;
        }
        done
    })
}

/// The median of 200 syncs of 4 KiB, in milliseconds.
fn sync_time() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join("synced")).unwrap();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let begun = Instant::now();
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[100].as_secs_f64() * 1e3
}

#[test]
#[ignore = "figures, not a test"]
fn rates_and_lags() {
    let (seconds, events) =
        (number("ALLOCD_BENCH_SECONDS", 5), number("ALLOCD_BENCH_EVENTS", 100_000));
    println!("a sync of 4 KiB takes {:.2} ms", sync_time());
    let scene = Scene::start();
    for clients in [1, 50] {
        let http = rate(clients, seconds, |client, stop| by_http(&scene, client, stop));
        let nats = rate(clients, seconds, |client, stop| by_nats(&scene, client, stop));
        println!("{clients:>2} clients: {http:>8.0} commands/s by HTTP, {nats:>8.0} by NATS");
    }
    println!("a sync of 4 KiB takes {:.2} ms", sync_time());
    lag(&scene, seconds);
    refill(&scene, events);
}

/// How far the stream is behind while 50 clients claim as fast as they can.
fn lag(scene: &Scene, seconds: u64) {
    let (most, sum, looks) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    let rate = thread::scope(|scope| {
        scope.spawn(|| {
            let client = scene.server.client();
            while !ended.load(Ordering::Relaxed) {
                let ready = client.get("/readyz").unwrap().json();
                let lag = ready["publisher"]["lag"].as_u64().unwrap();
                most.fetch_max(lag, Ordering::Relaxed);
                sum.fetch_add(lag, Ordering::Relaxed);
                looks.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let rate = rate(50, seconds, |client, stop| by_http(scene, client, stop));
        ended.store(true, Ordering::Relaxed);
        rate
    });
    let mean = sum.load(Ordering::Relaxed) as f64 / looks.load(Ordering::Relaxed).max(1) as f64;
    let most = most.load(Ordering::Relaxed);
    println!("at {rate:.0} claims/s the stream lacks {mean:.0} events on average, {most} at most");
}

/// How long a stream that is gone takes to be whole again.
fn refill(scene: &Scene, events: u64) {
    while scene.head() < events {
        let claims: Vec<Value> =
            (0..200).map(|client| json!({"claim": scene.claim(client)})).collect();
        let client = scene.server.client();
        client.post("/ledger/v1/commands", &json!(claims)).unwrap().expect(200);
    }
    let (url, head) = (scene.nats.url(), scene.head());
    while last_sequence(&url) != Some(head) {
        thread::sleep(Duration::from_millis(50));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(&url).await.unwrap());
        context.delete_stream("ALLOC_EVENTS").await.unwrap();
    });
    let gone = Instant::now();
    while last_sequence(&url).is_none_or(|last| last == 0) {
        thread::sleep(Duration::from_millis(5));
    }
    let begun = Instant::now();
    while last_sequence(&url) != Some(head) {
        thread::sleep(Duration::from_millis(5));
    }
    let filled = begun.elapsed().as_secs_f64();
    println!(
        "{head} events: noticed and begun after {:.1} s, filled in {filled:.1} s ({:.0} events/s)",
        gone.elapsed().as_secs_f64() - filled,
        head as f64 / filled
    );
}
