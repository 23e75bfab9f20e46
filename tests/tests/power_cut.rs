//! Invariant 1 when the power goes: what was acknowledged was synced (case J1).
//!
//! Clients write until the server is killed; then everything that was not synced is taken from
//! its disk, in each manner that file systems may do so (see [`Manner`]), and the ledger must
//! hold exactly what was acknowledged. `ALLOCD_TEST_CUTS` sets how often (default 20).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use std::env;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use system_tests::binaries;
use system_tests::books;
use system_tests::http::Client;
use system_tests::load::{Outcome, Worker, Write};
use system_tests::power_cut::{Manner, PowerCut};
use system_tests::process::{Process, free_port};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

const CLIENTS: u64 = 4;
const CLASSES: [&str; 2] = ["VCPU", "MEMORY_MB"];

/// How long clients write before a cut, at most, in milliseconds.
const LONGEST: u64 = 250;

/// One in so many cuts comes after a clean stop.
const CLEAN: usize = 5;

/// Each second cut waits until a write was acknowledged; the others come whenever their time is.
const AFTER_A_WRITE: usize = 2;

/// How long a condition is waited for, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// One in so many cuts is followed by another one while the server starts.
const WHILE_STARTING: usize = 3;

#[test]
fn acknowledged_writes_survive_a_power_cut() {
    let cuts: usize = env::var("ALLOCD_TEST_CUTS")
        .map_or(20, |text| text.parse().expect("ALLOCD_TEST_CUTS is a number"));
    let seed = seed::seed(3);
    let mut random = seed::stream(seed, 0);
    let power = PowerCut::new();
    let mut server = start(&power, None);
    let providers = providers(&server.client());
    // The ledger is older than the first cut: its folders are on the disk.
    server.kill();
    power.settle(&server.data_dir());
    server.restart();
    let mut workers: Vec<Worker> = (1..=CLIENTS)
        .map(|part| Worker::new(seed::stream(seed, part), &providers, &CLASSES))
        .collect();
    for number in 1..=cuts {
        let time = Duration::from_millis(random.random_range(0..=LONGEST));
        let clean = number.is_multiple_of(CLEAN);
        let writes = u64::from(number.is_multiple_of(AFTER_A_WRITE));
        let unknown = under_load(&mut server, &mut workers, time, clean, writes);
        let manner = Manner::of(number);
        println!("cut {number} after {time:?}: {manner:?}");
        power.cut(&server.data_dir(), manner, &mut random);
        verify_ledger(&server.data_dir());
        if number.is_multiple_of(WHILE_STARTING) {
            cut_while_starting(&power, &mut server, manner, &mut random);
        }
        server.restart();
        let client = server.client();
        for (worker, write) in workers.iter_mut().zip(&unknown) {
            worker.settle(&client, write);
            worker.check(&client, worker.known.keys().chain(&worker.released));
        }
        books::check_providers(&client, &providers);
    }
    let done: u64 = workers.iter().map(|worker| worker.done).sum();
    println!("{cuts} cuts: {done} writes acknowledged");
    assert!(done >= (cuts / AFTER_A_WRITE) as u64, "the cuts hit next to nothing");
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// The same for a ledger that was made just before: its folder `log` must be on the disk with
/// the first claim that is acknowledged.
#[test]
fn a_new_ledger_survives_a_power_cut() {
    let power = PowerCut::new();
    let mut server = start(&power, None);
    let consumers = claim(&server.client());
    server.kill();
    let manner = Manner { old_names: true, torn: false, acknowledged: false };
    power.cut(&server.data_dir(), manner, &mut seed::stream(0, 0));
    server.restart();
    let client = server.client();
    for consumer in &consumers {
        assert_eq!(books::read(&client, consumer).1, Some(1), "consumer {consumer}");
    }
}

/// The first test would notice a server that does not sync its log: with these syncs left out,
/// the cut takes acknowledged claims.
#[test]
fn a_missing_sync_is_noticed() {
    let power = PowerCut::new();
    let mut server = start(&power, Some(".log"));
    let consumers = claim(&server.client());
    server.kill();
    let manner = Manner { old_names: false, torn: false, acknowledged: false };
    power.cut(&server.data_dir(), manner, &mut seed::stream(0, 0));
    server.restart();
    let client = server.client();
    let lost =
        consumers.iter().filter(|consumer| books::read(&client, consumer).1.is_none()).count();
    assert_eq!(lost, consumers.len(), "nothing of the log was synced");
}

/// If events are gone that were acknowledged, and the file that says so is still there, then
/// neither the server nor `replay verify` passes over it.
#[test]
fn a_ledger_that_lost_acknowledged_events_does_not_start() {
    let power = PowerCut::new();
    let mut server = start(&power, Some(".log"));
    claim(&server.client());
    server.kill();
    let manner = Manner { old_names: false, torn: false, acknowledged: true };
    power.cut(&server.data_dir(), manner, &mut seed::stream(0, 0));
    let mut verify = Command::new(binaries::replay());
    let output = verify.arg("verify").arg("--data-dir").arg(server.data_dir()).output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let log = server.data_dir().with_file_name("refused.log");
    let mut serve = Command::new(binaries::allocd());
    serve.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port()), "--data-dir"]);
    serve.arg(server.data_dir());
    let mut process = Process::start("allocd", serve, &log);
    let deadline = Instant::now() + PATIENCE;
    while process.running() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!process.running(), "it serves a ledger that has lost acknowledged events");
    let words = fs::read_to_string(log).unwrap();
    assert!(words.contains("acknowledged"), "{words}");
}

fn start(power: &PowerCut, forget: Option<&str>) -> Server {
    let environment = power.environment(forget);
    let pairs: Vec<(&str, &str)> =
        environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    Server::with(&[], &pairs)
}

/// Ten acknowledged claims.
fn claim(client: &Client) -> Vec<String> {
    let host = topology::provider(client, "H1", &[("VCPU", 100)]);
    let claim = json!({
        "allocations": {host: {"resources": {"VCPU": 1}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "consumer_generation": Value::Null,
    });
    let consumers: Vec<String> =
        (0..10).map(|number| topology::uuid(&format!("consumer {number}")).to_string()).collect();
    for consumer in &consumers {
        client.put(&format!("/allocations/{consumer}"), &claim).unwrap().expect(204);
    }
    consumers
}

/// Let the workers write until the server ends, after `time` and so many writes; what each got no
/// answer to.
fn under_load(
    server: &mut Server,
    workers: &mut [Worker],
    time: Duration,
    clean: bool,
    writes: u64,
) -> Vec<Write> {
    let acknowledged = AtomicU64::new(0);
    let clients: Vec<Client> = workers.iter().map(|_| server.client()).collect();
    thread::scope(|scope| {
        let running: Vec<_> = workers
            .iter_mut()
            .zip(&clients)
            .map(|(worker, client)| scope.spawn(|| work(worker, client, &acknowledged)))
            .collect();
        thread::sleep(time);
        let deadline = Instant::now() + PATIENCE;
        while acknowledged.load(Ordering::Relaxed) < writes && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(server.running(), "the server ended by itself");
        if clean {
            assert!(server.terminate().success(), "a clean stop");
        } else {
            server.kill();
        }
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Write until no answer comes; the write that got none.
fn work(worker: &mut Worker, client: &Client, acknowledged: &AtomicU64) -> Write {
    loop {
        match worker.step(client) {
            Outcome::Unknown(write) => return write,
            Outcome::Done => drop(acknowledged.fetch_add(1, Ordering::Relaxed)),
            Outcome::Refused => {}
        }
    }
}

/// The power goes again while the server recovers from the last cut.
fn cut_while_starting(power: &PowerCut, server: &mut Server, manner: Manner, random: &mut StdRng) {
    server.start_and_kill(Duration::from_millis(random.random_range(10..150)));
    power.cut(&server.data_dir(), manner, random);
    verify_ledger(&server.data_dir());
}

fn providers(client: &Client) -> Vec<String> {
    let stock: Vec<(&str, u64)> = CLASSES.iter().map(|&class| (class, 100)).collect();
    (0..6).map(|number| topology::provider(client, &format!("host{number}"), &stock)).collect()
}
