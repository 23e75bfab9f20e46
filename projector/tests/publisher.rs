//! Invariant 8 on a real nats-server: message n is event n, or is missing and will come.

mod common;

use common::nats::{NatsServer, assert_is_the_ledger, copy_dir, messages};
use common::{claim, holding, make_provider, must, open, provider, runtime, until};
use ledger::Ledger;
use projector::connection::Connection;
use projector::publisher::{Publisher, PublisherOptions};
use std::time::Duration;
use tempfile::TempDir;

/// A ledger with one large provider.
fn begin() -> (TempDir, Ledger) {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 1_000_000)]));
    (dir, ledger)
}

fn options(server: &NatsServer) -> PublisherOptions {
    PublisherOptions {
        inspect_every: Duration::from_millis(200),
        protected: false,
        ..PublisherOptions::new(Connection::to(server.url()))
    }
}

/// Claims `count` times; each must be accepted.
fn claims(ledger: &Ledger, first: u128, count: u128) {
    for number in first..first + count {
        must(ledger, vec![claim(number, holding(provider(1), &[("VCPU", 1)]))]);
    }
}

/// Waits until everything is published and no alarm is left.
fn settled(publisher: &Publisher, ledger: &Ledger) {
    until("everything is published", || {
        let status = publisher.status();
        status.connected
            && status.lag == 0
            && status.alarm.is_none()
            && status.published == ledger.view().sequence()
    });
}

fn end(publisher: &Publisher, ledger: &Ledger) {
    publisher.stop();
    ledger.close();
}

/// I23: with the broker away every claim is accepted, and its event arrives later.
#[test]
fn claims_go_on_without_a_server() {
    let mut server = NatsServer::start();
    server.kill();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    claims(&ledger, 0, 100);
    let status = publisher.status();
    assert!(!status.connected);
    assert_eq!(status.lag, ledger.view().sequence());
    server.run();
    settled(&publisher, &ledger);
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// Many windows and pages, in groups of hundreds: the whole log goes out, in order.
#[test]
fn a_long_log_is_published_whole() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    for list in 0..100u128 {
        let one = |number| claim(list * 200 + number, holding(provider(1), &[("VCPU", 1)]));
        must(&ledger, (0..200).map(one).collect());
    }
    let begun = std::time::Instant::now();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    settled(&publisher, &ledger);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{} events in {seconds:.3} s", ledger.view().sequence());
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// I1, I23: the server is killed again and again under load; subscribers get every event once.
#[test]
fn a_killed_server_loses_nothing() {
    let mut server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    std::thread::scope(|scope| {
        let load = scope.spawn(|| claims(&ledger, 0, 2_000));
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(rand::random_range(50..300)));
            server.kill();
            std::thread::sleep(Duration::from_millis(rand::random_range(0..200)));
            server.run();
        }
        load.join().expect("every claim is accepted");
    });
    settled(&publisher, &ledger);
    assert_eq!(publisher.status().alarms, 0, "a killed server is no damage");
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// I23: the publisher is stopped between commit and publish, again and again; it needs no memory
/// of its own to go on.
#[test]
fn a_publisher_that_starts_again_goes_on() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    for round in 0..20 {
        let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
        claims(&ledger, round * 100, 50);
        publisher.stop();
        claims(&ledger, round * 100 + 50, 5);
    }
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    settled(&publisher, &ledger);
    assert_eq!(publisher.status().alarms, 0);
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// I4: the stream is gone under load: an alarm, a new stream, and everything in it.
#[test]
fn a_stream_that_is_gone_is_filled_again() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    claims(&ledger, 0, 100);
    settled(&publisher, &ledger);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| claims(&ledger, 1_000, 400));
        runtime().block_on(async {
            let context = server.jetstream().await;
            context.delete_stream("ALLOC_EVENTS").await.expect("removed");
        });
        load.join().expect("every claim is accepted");
    });
    until("the alarm", || publisher.status().alarms > 0);
    settled(&publisher, &ledger);
    let told = publisher.status().last_alarm.expect("an alarm");
    assert!(told.contains("gone"), "{told}");
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// The stream is emptied, or one message is taken out of it.
#[test]
fn a_stream_with_a_hole_is_filled_again() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    claims(&ledger, 0, 50);
    settled(&publisher, &ledger);
    let runtime = runtime();
    let context = runtime.block_on(server.jetstream());
    for (alarms, purge) in [(1, true), (2, false)] {
        runtime.block_on(async {
            let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
            if purge {
                stream.purge().await.expect("purged");
            } else {
                stream.delete_message(20).await.expect("removed");
            }
        });
        until("the alarm", || publisher.status().alarms == alarms);
        settled(&publisher, &ledger);
        runtime.block_on(assert_is_the_ledger(&context, &ledger));
    }
    end(&publisher, &ledger);
}

/// A protected stream, as the server makes it, refuses both.
#[test]
fn a_protected_stream_cannot_be_emptied() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let options = PublisherOptions { protected: true, ..options(&server) };
    let publisher = Publisher::start(&ledger, options).expect("a thread");
    settled(&publisher, &ledger);
    runtime().block_on(async {
        let context = server.jetstream().await;
        let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
        stream.purge().await.expect_err("not allowed");
        stream.delete_message(2).await.expect_err("not allowed");
        assert_is_the_ledger(&context, &ledger).await;
    });
    end(&publisher, &ledger);
}

/// I1: the server comes back with an older copy of its store.
#[test]
fn an_older_copy_is_brought_up_to_date() {
    let mut server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    claims(&ledger, 0, 500);
    settled(&publisher, &ledger);
    server.kill();
    let copies = tempfile::tempdir().expect("a directory");
    let copy = copies.path().join("store");
    copy_dir(&server.store(), &copy);
    server.run();
    claims(&ledger, 1_000, 500);
    settled(&publisher, &ledger);
    server.kill();
    std::fs::remove_dir_all(server.store()).expect("removed");
    copy_dir(&copy, &server.store());
    server.run();
    until("the alarm", || publisher.status().alarms > 0);
    settled(&publisher, &ledger);
    let told = publisher.status().last_alarm.expect("an alarm");
    assert!(told.contains("older copy"), "{told}");
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}

/// Somebody else's message, while nothing is written and in the middle of a full window.
#[test]
fn a_foreign_message_does_not_stay() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    settled(&publisher, &ledger);
    let runtime = runtime();
    let context = runtime.block_on(server.jetstream());
    let foreign = || {
        runtime.block_on(async {
            let sent = context.publish("alloc.v1.event.Claimed.c.000", "nonsense".into()).await;
            sent.expect("sent").await.map(drop)
        })
    };
    foreign().expect("stored");
    until("the alarm", || publisher.status().alarms == 1);
    settled(&publisher, &ledger);
    runtime.block_on(assert_is_the_ledger(&context, &ledger));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8u128)
            .map(|writer| {
                let ledger = &ledger;
                scope.spawn(move || claims(ledger, 10_000 * (writer + 1), 200))
            })
            .collect();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(20));
            // Refused for a moment while the stream is made anew: that is as good.
            let _ = foreign();
        }
        for writer in writers {
            writer.join().expect("every claim is accepted");
        }
    });
    until("the alarm", || publisher.status().alarms >= 2);
    settled(&publisher, &ledger);
    runtime.block_on(assert_is_the_ledger(&context, &ledger));
    end(&publisher, &ledger);
}

/// Behind more events than are published again for it, a stranger's message costs none of them: the
/// stream begins anew where the stranger stands, whether events follow already or not.
#[test]
fn a_foreign_message_behind_many_events_costs_none_of_them() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let options = PublisherOptions { refilled: 100, ..options(&server) };
    let publisher = Publisher::start(&ledger, options.clone()).expect("a thread");
    claims(&ledger, 0, 300);
    settled(&publisher, &ledger);
    let runtime = runtime();
    let context = runtime.block_on(server.jetstream());
    let foreign = || {
        runtime.block_on(async {
            let sent = context.publish("alloc.v1.event.Claimed.x.-", "nonsense".into()).await;
            sent.expect("sent").await.expect("stored");
        });
    };
    let from = |first: u64| {
        runtime.block_on(async {
            let head = ledger.view().sequence();
            for (sequence, body) in messages(&context, first, head + 1 - first).await {
                let kept = ledger.reader().record(sequence).expect("readable").expect("there");
                assert!(body == kept.bytes(), "message {sequence} is not event {sequence}");
            }
            let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
            let state = &stream.cached_info().state;
            assert_eq!((state.first_sequence, state.last_sequence), (first, head));
        });
    };
    // Nothing follows yet.
    let cut = ledger.view().sequence() + 1;
    foreign();
    foreign();
    until("the alarm", || publisher.status().alarms == 1);
    let told = publisher.status().last_alarm.expect("an alarm");
    assert!(told.contains(&format!("begins anew at event {cut}")), "{told}");
    settled(&publisher, &ledger);
    claims(&ledger, 1_000, 200);
    settled(&publisher, &ledger);
    from(cut);
    let told = publisher.status().warnings;
    assert!(told.iter().any(|it| it.contains(&format!("begins at event {cut}"))), "{told:?}");
    // Events follow: they were claimed while nobody published.
    publisher.stop();
    let cut = ledger.view().sequence() + 1;
    foreign();
    claims(&ledger, 2_000, 50);
    let publisher = Publisher::start(&ledger, options).expect("a thread");
    until("the alarm", || publisher.status().alarms == 1);
    settled(&publisher, &ledger);
    from(cut);
    // A process that starts again finds nothing wrong with such a stream.
    publisher.stop();
    let publisher = Publisher::start(&ledger, self::options(&server)).expect("a thread");
    claims(&ledger, 3_000, 5);
    settled(&publisher, &ledger);
    assert_eq!(publisher.status().alarms, 0);
    from(cut);
    end(&publisher, &ledger);
}

/// Two ledgers with one stream name: the second leaves the first one's alone, and says so.
#[test]
fn another_ledgers_stream_is_left_alone() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    settled(&publisher, &ledger);
    let (_other_dir, other) = begin();
    claims(&other, 0, 10);
    let stranger = Publisher::start(&other, options(&server)).expect("a thread");
    until("the alarm", || stranger.status().alarm.is_some());
    let told = stranger.status().alarm.expect("an alarm");
    assert!(told.contains("belongs to ledger"), "{told}");
    claims(&ledger, 0, 10);
    settled(&publisher, &ledger);
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&stranger, &other);
    end(&publisher, &ledger);
}

/// I25: limits that an operator sets drop old messages; a late reader is told where the stream
/// begins and reads the rest from the ledger.
#[test]
fn limits_are_no_damage() {
    let server = NatsServer::start();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    settled(&publisher, &ledger);
    let runtime = runtime();
    let context = runtime.block_on(server.jetstream());
    runtime.block_on(async {
        let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
        let mut config = stream.cached_info().config.clone();
        config.max_messages = 100;
        context.update_stream(config).await.expect("limited");
    });
    claims(&ledger, 0, 1_000);
    settled(&publisher, &ledger);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(publisher.status().alarms, 0);
    let head = ledger.view().sequence();
    let first = runtime.block_on(async {
        let stream = context.get_stream("ALLOC_EVENTS").await.expect("the stream");
        assert_eq!(stream.cached_info().state.last_sequence, head);
        stream.cached_info().state.first_sequence
    });
    assert_eq!(first, head - 99);
    let late = ledger.reader().read(11, usize::try_from(first - 11).expect("small"));
    assert_eq!(late.expect("the ledger has the rest").len() as u64, first - 11);
    end(&publisher, &ledger);
}

/// J10: the broker's disk is full: an alarm (events that wait for 15 seconds are one in any case),
/// claims go on, and what is missing comes when there is room.
#[test]
fn a_full_disk_is_an_alarm() {
    let mut server = NatsServer::start();
    server.kill();
    server.set_limit(100_000);
    server.run();
    let (_dir, ledger) = begin();
    let publisher = Publisher::start(&ledger, options(&server)).expect("a thread");
    let filled = std::time::Instant::now();
    claims(&ledger, 0, 300);
    until("the alarm", || publisher.status().alarm.is_some());
    println!("the alarm came after {:?}", filled.elapsed());
    let told = publisher.status();
    assert!(told.lag > 0 && told.fault.is_some(), "{told:?}");
    claims(&ledger, 1_000, 100);
    server.kill();
    server.set_limit(1 << 30);
    server.run();
    settled(&publisher, &ledger);
    runtime().block_on(async { assert_is_the_ledger(&server.jetstream().await, &ledger).await });
    end(&publisher, &ledger);
}
