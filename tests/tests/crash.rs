//! Invariant 1: an acknowledged command survives kill -9 at any instant, and none is ever
//! half applied.
//!
//! Clients claim, move and release over HTTP until the server is killed under them; after
//! each restart the ledger must hold exactly what was acknowledged, and of each write whose
//! answer never came, all or nothing. `ALLOCD_TEST_KILLS` sets how often (default 200).
#![allow(clippy::unwrap_used, missing_docs)]

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;
use system_tests::books;
use system_tests::http::Client;
use system_tests::load::{Outcome, Worker, Write};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

const CLIENTS: u64 = 4;
const PROVIDERS: usize = 6;
const CLASSES: [&str; 2] = ["VCPU", "MEMORY_MB"];

/// Of each class on each provider: little enough that some claims are refused.
const TOTAL: u64 = 100;

/// How long after it became ready a server is killed, at most.
const LONGEST: u64 = 150;

/// Each second kill waits until a write was acknowledged; the others come whenever their time is.
const AFTER_A_WRITE: usize = 2;

/// How long it waits, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// One in so many kills comes while the server starts, before it is ready.
const WHILE_STARTING: u32 = 8;

/// All holdings, not only those written since the last kill, are checked once in so many kills.
const FULL_CHECK: usize = 25;

#[test]
fn acknowledged_writes_survive_sigkill() {
    let kills: usize = env::var("ALLOCD_TEST_KILLS")
        .map_or(200, |text| text.parse().expect("ALLOCD_TEST_KILLS is a number"));
    let seed = seed::seed(1);
    let mut random = seed::stream(seed, 0);
    let mut server = Server::start();
    let providers = providers(&server.client());
    let mut workers: Vec<Worker> = (1..=CLIENTS)
        .map(|part| Worker::new(seed::stream(seed, part), &providers, &CLASSES))
        .collect();
    for kill in 1..=kills {
        let unknown = under_load(
            &mut server,
            &mut workers,
            Duration::from_millis(random.random_range(0..=LONGEST)),
            u64::from(kill.is_multiple_of(AFTER_A_WRITE)),
        );
        start_again(&mut server, &mut random);
        let client = server.client();
        for (worker, write) in workers.iter_mut().zip(&unknown) {
            check_worker(&client, worker, write, Extent::of(kill, kills));
        }
        books::check_providers(&client, &providers);
    }
    let done: u64 = workers.iter().map(|worker| worker.done).sum();
    let refused: u64 = workers.iter().map(|worker| worker.refused).sum();
    println!(
        "{kills} kills: {done} writes acknowledged, {refused} refused, {} cut off",
        kills as u64 * CLIENTS
    );
    assert!(done >= (kills / AFTER_A_WRITE) as u64, "the kills hit next to nothing");
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// Which consumers are checked after a kill.
#[derive(Clone, Copy)]
enum Extent {
    /// Those written since the last kill.
    Touched,
    /// All that hold something.
    Holding,
    /// Those that held something once, too.
    Everything,
}

impl Extent {
    fn of(kill: usize, kills: usize) -> Extent {
        match kill {
            last if last == kills => Extent::Everything,
            some if some % FULL_CHECK == 0 => Extent::Holding,
            _ => Extent::Touched,
        }
    }
}

/// Let the workers write until the server is killed, after `time` and so many writes.
fn under_load(
    server: &mut Server,
    workers: &mut [Worker],
    time: Duration,
    writes: u64,
) -> Vec<Write> {
    let acknowledged = AtomicU64::new(0);
    // Connections of their own: clones of one client would share one.
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
        server.kill();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Write until no answer comes; the write that got none.
fn work(worker: &mut Worker, client: &Client, acknowledged: &AtomicU64) -> Write {
    worker.touched.clear();
    loop {
        match worker.step(client) {
            Outcome::Unknown(write) => return write,
            Outcome::Done => drop(acknowledged.fetch_add(1, Ordering::Relaxed)),
            Outcome::Refused => {}
        }
    }
}

fn check_worker(client: &Client, worker: &mut Worker, unknown: &Write, extent: Extent) {
    worker.settle(client, unknown);
    match extent {
        Extent::Touched => worker.check(client, &worker.touched),
        Extent::Holding => worker.check(client, worker.known.keys()),
        Extent::Everything => worker.check(client, worker.known.keys().chain(&worker.released)),
    }
}

/// Start the server on what is on disk; now and then kill it while it starts, first.
fn start_again(server: &mut Server, random: &mut StdRng) {
    if random.random_ratio(1, WHILE_STARTING) {
        server.start_and_kill(Duration::from_millis(random.random_range(0..60)));
    }
    server.restart();
}

fn providers(client: &Client) -> Vec<String> {
    let stock: Vec<(&str, u64)> = CLASSES.iter().map(|&class| (class, TOTAL)).collect();
    (0..PROVIDERS)
        .map(|number| topology::provider(client, &format!("host{number}"), &stock))
        .collect()
}
