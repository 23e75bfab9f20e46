//! Invariant 8 (message n on NATS is event n, or is missing and will come) and that NATS away,
//! slow or dying never stops or slows the ledger: a real broker, a real subscriber, real kills.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use system_tests::audit::audit;
use system_tests::claims::{Claimed, Claimer};
use system_tests::http::Client;
use system_tests::nats::Nats;
use system_tests::record::Record;
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::subscriber::{Delivery, Subscriber, last_sequence};
use system_tests::topology;

const CLAIMS: u64 = 10_000;
const CLAIMERS: u64 = 8;
const PROVIDERS: usize = 20;

/// VCPUs of a provider: more than are ever claimed, so that no claim may be refused.
const TOTAL: u64 = 100_000;

/// How long the broker's copy may take to be whole once everything runs, so that nothing hangs.
const ARRIVAL: Duration = Duration::from_secs(600);

/// How long the claimers may take to a point of the story, so that nothing hangs.
const PROGRESS: Duration = Duration::from_secs(600);

/// Clients keep claiming while the broker is killed twice and the server once. Each claim is
/// accepted, and a subscriber gets each event once, in order, with the chain whole.
#[test]
fn a_subscriber_gets_every_event_once_in_order_through_kills_of_both_sides() {
    let seed = seed::seed(11);
    let mut nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let providers = providers(&server.client());
    let subscriber = Subscriber::start(&nats.url());
    let done = AtomicU64::new(0);
    let claimed: Vec<Claimed> = thread::scope(|scope| {
        let mut unanswered = Vec::new();
        let running: Vec<_> = (0..CLAIMERS)
            .map(|part| {
                let random = seed::stream(seed, part);
                let mut claimer = Claimer::new(server.client(), random, &providers);
                unanswered.push(claimer.unanswered());
                let done = &done;
                scope.spawn(move || claim_all(&mut claimer, done))
            })
            .collect();
        wait_until(&done, 1_500);
        // All is well so far.
        subscriber.wait_for(1, ARRIVAL);
        nats.kill();
        // The claims go on without the broker.
        wait_until(&done, 3_500);
        nats.restart();
        wait_until(&done, 5_000);
        server.kill();
        // Somebody's claim is left without an answer.
        wait(|| unanswered.iter().any(|count| count.load(Ordering::SeqCst) > 0), "a claim in vain");
        server.restart();
        wait_until(&done, 6_500);
        nats.kill();
        wait_until(&done, 8_000);
        nats.restart();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(claimed.len() as u64, CLAIMS);
    let repeated: u64 = claimed.iter().map(|claim| claim.requests - 1).sum();
    let events = head(&server.client());
    subscriber.wait_for(usize::try_from(events).unwrap(), ARRIVAL);
    let records = audit(&subscriber.finish()).unwrap();
    println!("{} claims, {repeated} requests repeated, {events} events", claimed.len());
    assert!(repeated > 0, "the claim in vain was repeated");
    assert_eq!(records.len() as u64, events);
    check_claims(&claimed, &records);
    check_against_ledger(&server.client(), &records);
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// While the broker is stopped all claims are accepted; when it is back their events come.
#[test]
fn claims_go_on_without_the_broker_and_their_events_arrive_when_it_is_back() {
    claims_go_on_through(Nats::terminate, Nats::restart);
}

/// The same with a broker that keeps its connections and answers nothing.
#[test]
fn claims_go_on_with_a_frozen_broker_and_their_events_arrive_when_it_goes_on() {
    claims_go_on_through(|nats| nats.pause(), |nats| nats.resume());
}

fn claims_go_on_through(trouble: fn(&mut Nats), mend: fn(&mut Nats)) {
    let mut nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let client = server.client();
    let provider = providers(&client).remove(0);
    let before = usize::try_from(head(&client)).unwrap();
    let subscriber = Subscriber::start(&nats.url());
    subscriber.wait_for(before, ARRIVAL);
    trouble(&mut nats);
    let mut random = seed::stream(seed::seed(12), 0);
    let consumers: Vec<String> = (0..100).map(|_| seed::uuid(&mut random).to_string()).collect();
    let begun = Instant::now();
    for consumer in &consumers {
        put(&client, consumer, &provider);
    }
    println!("100 claims meanwhile took {:?}", begun.elapsed());
    // They were answered, and not one of their events is with the broker: nobody waited for it.
    assert_eq!(head(&client), before as u64 + 100);
    assert!(client.read("/readyz")["publisher"]["lag"].as_u64() >= Some(100));
    assert_eq!(subscriber.count(), before);
    mend(&mut nats);
    subscriber.wait_for(before + 100, ARRIVAL);
    let deliveries = subscriber.finish();
    let records = audit(&deliveries).unwrap();
    let told = records[before..].iter().map(|record| record.consumers()[0].to_string());
    assert_eq!(told.collect::<Vec<_>>(), consumers);
    audit_is_not_fooled(&deliveries);
    assert!(server.terminate().success(), "a clean stop");
}

fn put(client: &Client, consumer: &str, provider: &str) {
    let body = json!({
        "allocations": {provider: {"resources": {"VCPU": 1}}}, "project_id": "project",
        "user_id": "user", "consumer_type": "INSTANCE", "consumer_generation": null,
    });
    client.put(&format!("/allocations/{consumer}"), &body).unwrap().expect(204);
}

/// The server is killed between commit and publish, again and again (30 times, or
/// `ALLOCD_TEST_KILLS`), with the broker well, frozen or away. No event is ever missing.
#[test]
fn kills_between_commit_and_publish_lose_no_event() {
    let kills: u64 = env::var("ALLOCD_TEST_KILLS")
        .map_or(30, |text| text.parse().expect("ALLOCD_TEST_KILLS is a number"));
    let seed = seed::seed(13);
    let mut random = seed::stream(seed, u64::MAX);
    let mut nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let providers = providers(&server.client());
    let subscriber = Subscriber::start(&nats.url());
    let mut claimed = Vec::new();
    let mut behind = 0;
    for kill in 0..kills {
        let mut claimer = Claimer::new(server.client(), seed::stream(seed, kill), &providers);
        let broker = Broker::of(kill);
        broker.trouble(&mut nats);
        for _ in 0..random.random_range(1..=20) {
            claimed.push(claimer.claim());
        }
        pause(&mut random, broker);
        server.kill();
        broker.mend(&mut nats);
        let acknowledged = claimed.last().unwrap().sequence;
        behind += u64::from(last_sequence(&nats.url()).is_none_or(|last| last < acknowledged));
        server.restart();
    }
    let events = head(&server.client());
    subscriber.wait_for(usize::try_from(events).unwrap(), ARRIVAL);
    let records = audit(&subscriber.finish()).unwrap();
    println!("{kills} kills, {behind} of them with events unpublished; {events} events");
    // Each third kill came while the broker was away, so that nothing could be published.
    assert!(behind >= kills / 3, "only {behind} kills came between commit and publish");
    assert_eq!(records.len() as u64, events);
    check_claims(&claimed, &records);
    check_against_ledger(&server.client(), &records);
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// How the broker is while claims are made and the server is killed.
#[derive(Clone, Copy, PartialEq)]
enum Broker {
    Well,
    Frozen,
    Away,
}

impl Broker {
    fn of(kill: u64) -> Broker {
        [Broker::Well, Broker::Frozen, Broker::Away][usize::try_from(kill % 3).unwrap()]
    }

    fn trouble(self, nats: &mut Nats) {
        match self {
            Broker::Well => {}
            Broker::Frozen => nats.pause(),
            Broker::Away => nats.kill(),
        }
    }

    fn mend(self, nats: &mut Nats) {
        match self {
            Broker::Well => {}
            Broker::Frozen => nats.resume(),
            Broker::Away => nats.restart(),
        }
    }
}

/// With the broker well, kill at once or a moment later, so that some events are half way.
fn pause(random: &mut StdRng, broker: Broker) {
    if broker == Broker::Well {
        thread::sleep(Duration::from_micros(random.random_range(0..2_000)));
    }
}

/// Claim until all claimers together have made [`CLAIMS`].
fn claim_all(claimer: &mut Claimer, done: &AtomicU64) -> Vec<Claimed> {
    (0..CLAIMS / CLAIMERS)
        .map(|_| {
            let claimed = claimer.claim();
            done.fetch_add(1, Ordering::Relaxed);
            claimed
        })
        .collect()
}

#[track_caller]
fn wait_until(done: &AtomicU64, claims: u64) {
    wait(|| done.load(Ordering::Relaxed) >= claims, &format!("{claims} claims"));
}

#[track_caller]
fn wait(so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PROGRESS;
    while !so() {
        assert!(Instant::now() < deadline, "not within {PROGRESS:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// That the audit can fail: it does not pass a copy with a message left out, doubled or in
/// another's place, with a header or any one byte of a body changed.
fn audit_is_not_fooled(deliveries: &[Delivery]) {
    let middle = deliveries.len() / 2;
    let wrong = |change: &dyn Fn(&mut Vec<Delivery>)| {
        let mut copy = deliveries.to_vec();
        change(&mut copy);
        audit(&copy).expect_err("the change was not seen")
    };
    wrong(&|copy| drop(copy.remove(middle)));
    wrong(&|copy| copy.insert(middle, copy[middle].clone()));
    wrong(&|copy| copy.swap(middle, middle + 1));
    wrong(&|copy| copy[middle].headers.retain(|(name, _)| name != "Nats-Msg-Id"));
    // Left out, and the ones after it moved up so that the places have no gap.
    wrong(&|copy| {
        copy.remove(middle);
        (1..).zip(copy).for_each(|(sequence, delivery)| delivery.sequence = sequence);
    });
    for place in 0..deliveries[middle].body.len() {
        wrong(&|copy| copy[middle].body[place] ^= 1);
    }
}

/// Each claim is the event that its answer named, and each id is there once.
fn check_claims(claimed: &[Claimed], records: &[Record]) {
    let mut by_key: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.header.kind == "Claimed") {
        let key = record.header.command_id.as_deref().unwrap();
        assert!(by_key.insert(key, record).is_none(), "{key} was carried out twice");
    }
    for claim in claimed {
        let record = by_key.remove(claim.key.as_str()).expect("an accepted claim has an event");
        assert_eq!(record.header.sequence, claim.sequence, "{}", claim.key);
        let consumers: Vec<String> = record.consumers().iter().map(ToString::to_string).collect();
        assert_eq!(consumers, [claim.consumer.as_str()]);
    }
    assert!(by_key.is_empty(), "{} claims that nobody made", by_key.len());
}

/// The copy has what the ledger itself tells.
fn check_against_ledger(client: &Client, records: &[Record]) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut after = 0;
    for page in records.chunks(1_000) {
        let answer = client.read(&format!("/ledger/v1/events?after={after}&limit=1000"));
        let events = answer["events"].as_array().unwrap();
        assert_eq!(events.len(), page.len());
        for (record, event) in page.iter().zip(events) {
            let header = &event["header"];
            assert_eq!(header["sequence"].as_u64(), Some(record.header.sequence));
            assert_eq!(text(&header["id"]), record.header.id.to_string());
            assert_eq!(text(&header["body_digest"]), hex(&record.header.body_digest));
            assert_eq!(text(&header["previous_hash"]), hex(&record.header.previous_hash));
        }
        after = page.last().unwrap().header.sequence;
    }
}

/// The ledger's newest event.
fn head(client: &Client) -> u64 {
    client.read("/ledger/v1/events?limit=1")["sequence"].as_u64().unwrap()
}

fn providers(client: &Client) -> Vec<String> {
    (0..PROVIDERS)
        .map(|number| topology::provider(client, &format!("host{number}"), &[("VCPU", TOTAL)]))
        .collect()
}
