//! Invariant 8: the stream is a copy that the ledger can fill again. Whatever becomes of it, in the
//! end message n is event n, all of them, and no claim was refused meanwhile.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use system_tests::audit::audit;
use system_tests::claims::{Claimed, Claimer};
use system_tests::nats::Nats;
use system_tests::seed;
use system_tests::server::Server;
use system_tests::subscriber::{Subscriber, intrude, last_sequence};
use system_tests::topology;

/// How long mending may take, so that nothing hangs for ever.
const MENDING: Duration = Duration::from_secs(600);

/// A broker, a server that publishes to it, and a client that claims.
struct Scene {
    nats: Nats,
    server: Server,
    claimer: Claimer,
    claimed: Vec<Claimed>,
}

impl Scene {
    fn start(seed: u64) -> Scene {
        let nats = Nats::start();
        let server = Server::with(&["--nats", &nats.url()], &[]);
        let host = topology::provider(&server.client(), "host", &[("VCPU", 100_000)]);
        let random = seed::stream(seed::seed(seed), 0);
        let claimer = Claimer::new(server.client(), random, &[host]);
        Scene { nats, server, claimer, claimed: Vec::new() }
    }

    fn claim(&mut self, count: usize) {
        self.claimed.extend((0..count).map(|_| self.claimer.claim()));
    }

    /// The last event: nobody else writes.
    fn head(&self) -> u64 {
        self.claimed.last().unwrap().sequence
    }

    /// Wait until the stream ends where the ledger does.
    #[track_caller]
    fn wait_until_level(&self) {
        let deadline = Instant::now() + MENDING;
        while last_sequence(&self.nats.url()) != Some(self.head()) {
            let last = last_sequence(&self.nats.url());
            assert!(Instant::now() < deadline, "the stream ends at {last:?}, not {}", self.head());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Check that a subscriber who comes now gets every event.
    #[track_caller]
    fn ends_whole(mut self) {
        self.wait_until_level();
        let subscriber = Subscriber::start(&self.nats.url());
        subscriber.wait_for(usize::try_from(self.head()).unwrap(), MENDING);
        let records = audit(&subscriber.finish()).unwrap();
        assert_eq!(records.len() as u64, self.head());
        for claim in &self.claimed {
            let record = &records[usize::try_from(claim.sequence).unwrap() - 1];
            assert_eq!(record.header.command_id.as_ref(), Some(&claim.key));
        }
        assert!(self.server.terminate().success(), "a clean stop");
    }
}

/// The broker loses its whole store: the stream is made anew and filled from the first event on.
#[test]
fn a_lost_stream_is_filled_again() {
    let mut scene = Scene::start(21);
    scene.claim(300);
    scene.wait_until_level();
    scene.nats.kill();
    fs::remove_dir_all(scene.nats.store()).unwrap();
    scene.claim(20);
    scene.nats.restart();
    scene.claim(20);
    scene.ends_whole();
}

/// The broker comes back with an older copy of its store: what it lacks is published again.
#[test]
fn an_older_copy_of_the_stream_is_brought_up_to_date() {
    let mut scene = Scene::start(22);
    scene.claim(100);
    scene.wait_until_level();
    let store = scene.nats.store();
    let copy = store.with_file_name("copy");
    scene.nats.terminate();
    copy_folder(&store, &copy);
    scene.nats.restart();
    scene.claim(100);
    scene.wait_until_level();
    scene.nats.kill();
    fs::remove_dir_all(&store).unwrap();
    fs::rename(&copy, &store).unwrap();
    scene.nats.restart();
    scene.claim(20);
    scene.ends_whole();
}

/// Somebody else's messages stand where events belong: the stream is made anew.
#[test]
fn foreign_messages_do_not_stay() {
    let mut scene = Scene::start(23);
    scene.claim(100);
    scene.wait_until_level();
    // More of them than there will be events, so that the ends tell whether they are gone.
    assert_eq!(intrude(&scene.nats.url(), 10), scene.head() + 10);
    scene.claim(5);
    scene.ends_whole();
}

fn copy_folder(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "the store is copied");
}
