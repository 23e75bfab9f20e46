//! How fast the tool is on a larger ledger. Without REPLAY_EVENTS it is small and quick; with it
//! (say 1000000) the figures are worth reading: `cargo test -p replay --test large -- --nocapture`.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use ledger::amounts::Holding;
use ledger::command::{Release, Via};
use std::time::Instant;

#[test]
fn verify_and_at_on_a_ledger_of_claims_and_releases() {
    let events: u128 =
        std::env::var("REPLAY_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let book = Book::new();
    for n in 0..100 {
        book.host(provider(n), &format!("compute{n}"), &[("VCPU", 4096), ("DISK_GB", 1_000_000)]);
    }
    for list in 0..events / 1000 {
        let ids = (0..500).map(|n| list * 500 + n);
        let claims = ids.clone().map(|n| {
            let holding = on(provider(n % 100), &[("VCPU", 1), ("DISK_GB", 20)]);
            replace(Via::Put, vec![write(consumer(n), holding)])
        });
        book.submit("req-claims", claims.collect());
        let releases = ids.map(|n| {
            let gone = Release { consumer: consumer(n), ended: false, reason: None };
            if n % 10 == 0 && n < 100_000 {
                replace(
                    Via::Put,
                    vec![write(
                        consumer(n),
                        Holding::from([(provider(n % 100), resources(&[("VCPU", 2)]))]),
                    )],
                )
            } else {
                ledger::command::Command::Release(gone)
            }
        });
        book.submit("req-releases", releases.collect());
    }
    let head = book.ledger.view().sequence();
    let dir = book.shut();
    let said = replay(dir.path(), &["verify"]);
    assert_eq!(said.status, 0, "{said:?}");
    println!("{}", said.out);
    for point in [head, head / 2] {
        let begun = Instant::now();
        let said = replay(dir.path(), &["at", &point.to_string(), "--limit", "1"]);
        assert_eq!(said.status, 0, "{said:?}");
        println!("at {point}: {:.2} s", begun.elapsed().as_secs_f64());
    }
}
