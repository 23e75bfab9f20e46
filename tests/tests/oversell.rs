//! Invariant 4 from outside: in every interleaving of many clients, no provider is used
//! above its capacity, and what was acknowledged is what is used. With the races that
//! Placement's users reported (launchpad bug numbers at each test).
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::http::{Answer, Client};
use system_tests::load::{Outcome, Worker};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

/// Clients write at random while others watch the usages.
#[test]
fn usage_stays_within_capacity_and_equals_what_was_acknowledged() {
    const CLIENTS: u64 = 8;
    const STEPS: usize = 400;
    const CLASSES: [&str; 3] = ["VCPU", "MEMORY_MB", "DISK_GB"];
    let seed = seed::seed(2);
    let mut server = Server::start();
    let client = server.client();
    let stock: Vec<(&str, u64)> = CLASSES.iter().map(|&class| (class, 60)).collect();
    let providers: Vec<String> = (0..5)
        .map(|number| topology::provider(&client, &format!("host{number}"), &stock))
        .collect();
    let mut workers: Vec<Worker> = (1..=CLIENTS)
        .map(|part| Worker::new(seed::stream(seed, part), &providers, &CLASSES))
        .collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| watch(&server.client(), &providers, &done));
        let writing: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(|| write(worker, &server.client(), STEPS)))
            .collect();
        let results: Vec<_> = writing.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        let looks = watch.join().unwrap();
        results.into_iter().for_each(|result| result.unwrap());
        println!("{looks} looks at the usages meanwhile");
    });
    check_against_books(&client, &workers, &providers);
    let refused: u64 = workers.iter().map(|worker| worker.refused).sum();
    assert!(refused > 0, "the providers were never full: this test saw nothing");
    println!("{} writes, {refused} of them refused", CLIENTS * STEPS as u64);
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

fn write(worker: &mut Worker, client: &Client, steps: usize) {
    for _ in 0..steps {
        if let Outcome::Unknown(write) = worker.step(client) {
            worker.settle(client, &write);
        }
    }
}

fn watch(client: &Client, providers: &[String], done: &AtomicBool) -> u64 {
    let mut looks = 0;
    while !done.load(Ordering::Relaxed) {
        for provider in providers {
            books::check_capacity(client, provider);
            looks += 1;
        }
    }
    looks
}

fn check_against_books(client: &Client, workers: &[Worker], providers: &[String]) {
    for worker in workers {
        worker.check(client, worker.known.keys().chain(&worker.released));
    }
    let sums = books::sums(workers.iter().flat_map(Worker::holdings));
    for provider in providers {
        assert_eq!(
            books::usages(client, provider),
            sums.get(provider).cloned().unwrap_or_default(),
            "usages of {provider}"
        );
    }
    books::check_providers(client, providers);
}

/// C1 (bugs 1719933, 1770220, 1728722): claims on one provider never collide with each
/// other; only a true lack of room refuses.
#[test]
fn a_hundred_claims_at_once_fill_a_provider_exactly() {
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "H1", &[("VCPU", 60)]);
    let began = Instant::now();
    let answers = all_at_once(&server, 100, |client, number| {
        put(client, &consumer(number), &holding(&[(&host, "VCPU", 1)]), &Value::Null)
    });
    println!("100 claims of 100 clients took {:?}", began.elapsed());
    let (fit, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 204);
    assert_eq!((fit.len(), refused.len()), (60, 40));
    for answer in refused {
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(answer.detail().contains("would exceed the capacity"), "{}", answer.text());
        assert_ne!(
            answer.json()["errors"][0]["code"],
            "placement.concurrent_update",
            "{}",
            answer.text()
        );
    }
    assert_eq!(books::usages(&client, &host)["VCPU"], 60);
}

/// C2 (bugs 1778576, 1778591, 1779725): a refused first claim leaves no consumer behind, so
/// the next first claim still says null.
#[test]
fn a_refused_first_claim_leaves_no_consumer() {
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "H1", &[("VCPU", 4)]);
    let other = topology::provider(&client, "H2", &[("VCPU", 4)]);
    widen_max_unit(&client, &host);
    let c1 = consumer(1);
    put(&client, &c1, &holding(&[(&host, "VCPU", 40)]), &Value::Null).expect(409);
    assert_eq!(books::read(&client, &c1), (Holding::new(), None));
    put(&client, &c1, &holding(&[(&host, "VCPU", 2)]), &Value::Null).expect(204);
    assert_eq!(books::read(&client, &c1).1, Some(1));
    put(&client, &consumer(2), &holding(&[(&host, "VCPU", 1), (&other, "VCPU", 1)]), &Value::Null)
        .expect(204);
    // The second half does not fit: the first half must not stay.
    put(&client, &consumer(3), &holding(&[(&host, "VCPU", 1), (&other, "VCPU", 4)]), &Value::Null)
        .expect(409);
    assert_eq!(books::usages(&client, &host)["VCPU"], 3);
    assert_eq!(books::usages(&client, &other)["VCPU"], 1);
}

/// Total 4, but a single claim may ask for up to 100: so that the refusal is one of capacity.
fn widen_max_unit(client: &Client, host: &str) {
    let path = format!("/resource_providers/{host}/inventories/VCPU");
    let body = json!({"resource_provider_generation": 1, "total": 4, "max_unit": 100});
    client.put(&path, &body).unwrap().expect(200);
}

/// C3 (bug 1778743): the consumers of one POST are added up.
#[test]
fn two_consumers_that_fit_alone_but_not_together_are_refused() {
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "H1", &[("VCPU", 4)]);
    let (c1, c2) = (consumer(1), consumer(2));
    let three = body(&holding(&[(&host, "VCPU", 3)]), &Value::Null);
    let mut both = serde_json::Map::new();
    both.insert(c1.clone(), three.clone());
    both.insert(c2.clone(), three);
    let answer = client.post("/allocations", &both.into()).unwrap().expect(409);
    assert!(answer.detail().contains("would exceed the capacity"), "{}", answer.text());
    for consumer in [c1, c2] {
        assert_eq!(books::read(&client, &consumer), (Holding::new(), None));
    }
    assert!(books::usages(&client, &host).is_empty());
}

/// C9 (story 2009159): the first use of a project, a user and a consumer type by many at once.
#[test]
fn first_use_of_a_project_by_twenty_claims_at_once() {
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "H1", &[("VCPU", 100)]);
    let answers = all_at_once(&server, 20, |client, number| {
        put(client, &consumer(number), &holding(&[(&host, "VCPU", 2)]), &Value::Null)
    });
    for answer in answers {
        answer.expect(204);
    }
    let usages = client.read("/usages?project_id=unseen-project");
    assert_eq!(usages["usages"], json!({"INSTANCE": {"VCPU": 40, "consumer_count": 20}}));
}

/// The same kind of race where the losers must lose: one consumer, the same generation.
#[test]
fn of_twenty_writes_with_one_generation_exactly_one_wins() {
    let server = Server::start();
    let client = server.client();
    let host = topology::provider(&client, "H1", &[("VCPU", 100)]);
    let c1 = consumer(1);
    let answers = all_at_once(&server, 20, |client, number| {
        put(client, &c1, &holding(&[(&host, "VCPU", number + 1)]), &Value::Null)
    });
    assert_eq!(answers.iter().filter(|answer| answer.status == 204).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 204) {
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert_eq!(
            answer.json()["errors"][0]["code"],
            "placement.concurrent_update",
            "{}",
            answer.text()
        );
    }
    assert_eq!(books::read(&client, &c1).1, Some(1));
}

/// Moves to the last free place by two consumers at once: one fits, and neither is torn.
#[test]
fn of_two_moves_to_the_last_place_one_fits() {
    let server = Server::start();
    let client = server.client();
    let source = topology::provider(&client, "H1", &[("VCPU", 8)]);
    let destination = topology::provider(&client, "H2", &[("VCPU", 4)]);
    for number in 0..2 {
        put(&client, &consumer(number), &holding(&[(&source, "VCPU", 4)]), &Value::Null)
            .expect(204);
    }
    let answers = all_at_once(&server, 2, |client, number| {
        let mut both = serde_json::Map::new();
        both.insert(consumer(number), body(&holding(&[(&destination, "VCPU", 4)]), &json!(1)));
        both.insert(consumer(number + 10), body(&holding(&[(&source, "VCPU", 4)]), &Value::Null));
        client.post("/allocations", &both.into()).unwrap()
    });
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409]);
    assert_eq!(books::usages(&client, &source)["VCPU"], 8);
    assert_eq!(books::usages(&client, &destination)["VCPU"], 4);
    books::check_providers(&client, &[source, destination]);
}

/// Let `count` clients, each on a connection of its own, send a request at the same time.
fn all_at_once(
    server: &Server,
    count: u64,
    send: impl Fn(&Client, u64) -> Answer + Sync,
) -> Vec<Answer> {
    let barrier = Barrier::new(usize::try_from(count).unwrap());
    thread::scope(|scope| {
        let (send, barrier) = (&send, &barrier);
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    let client = server.client();
                    client.get("/").unwrap();
                    barrier.wait();
                    send(&client, number)
                })
            })
            .collect();
        let answers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        // Anything that was still going on would change the sums after this.
        thread::sleep(Duration::from_millis(10));
        answers
    })
}

fn consumer(number: u64) -> String {
    topology::uuid(&format!("consumer {number}")).to_string()
}

fn holding(parts: &[(&str, &str, u64)]) -> Holding {
    let mut holding = Holding::new();
    for &(provider, class, amount) in parts {
        holding.entry(provider.to_owned()).or_default().insert(class.to_owned(), amount);
    }
    holding
}

fn body(holding: &Holding, generation: &Value) -> Value {
    json!({
        "allocations": books::to_json(holding),
        "project_id": "unseen-project",
        "user_id": "unseen-user",
        "consumer_type": "INSTANCE",
        "consumer_generation": generation,
    })
}

fn put(client: &Client, consumer: &str, holding: &Holding, generation: &Value) -> Answer {
    client.put(&format!("/allocations/{consumer}"), &body(holding, generation)).unwrap()
}
