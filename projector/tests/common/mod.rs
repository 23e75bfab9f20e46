//! What the tests of this crate share: a real ledger in a directory of its own.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod nats;
pub mod traffic;

use ledger::amounts::{Holding, Inventory};
use ledger::command::{ChangeInventories, Claim, Command, CreateProvider, InventoryChange};
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::stamp::{Actor, Stamp};
use ledger::time::{Clock, Timestamp};
use ledger::{Answer, Ledger, Options, Outcome};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// The machine's clock.
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        Timestamp::from_micros(i64::try_from(since.as_micros()).expect("before the year 294246"))
    }

    fn monotonic(&self) -> Duration {
        static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        BEGUN.get_or_init(Instant::now).elapsed()
    }
}

/// A real ledger on RocksDB.
pub fn open(dir: &Path) -> Ledger {
    let options = Options { free_space: ledger::FreeSpace::Bytes(0), ..Options::default() };
    Ledger::open(dir, options, Arc::new(MachineClock), rand::random()).expect("the ledger opens")
}

/// A stamp as the server would make one.
pub fn stamp(request_id: Option<&str>) -> Stamp {
    Stamp {
        seed: rand::random(),
        received_at: MachineClock.now(),
        actor: Actor::default(),
        request_id: request_id.map(str::to_owned),
        command_id: None,
    }
}

/// Submits a list of commands and waits for the answer.
pub fn submit(ledger: &Ledger, commands: Vec<Command>) -> Answer {
    ledger.submit_blocking(commands, stamp(None)).expect("the ledger answers")
}

/// Submits commands that must be accepted.
pub fn must(ledger: &Ledger, commands: Vec<Command>) -> u64 {
    let answer = submit(ledger, commands);
    match answer.outcome {
        Outcome::Accepted { .. } => answer.sequence,
        Outcome::Refused { refusal, .. } => panic!("refused: {refusal:?}"),
    }
}

pub fn provider(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xA000_0000 + number))
}

pub fn consumer(number: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xC000_0000 + number))
}

/// `amount` of `class` on a provider.
pub fn holding(provider: ProviderUuid, resources: &[(&str, u32)]) -> Holding {
    let resources = resources.iter().map(|&(class, amount)| (class.to_owned(), amount)).collect();
    Holding::from([(provider, resources)])
}

/// Makes a provider that has `resources`.
pub fn make_provider(number: u128, resources: &[(&str, u32)]) -> Vec<Command> {
    let inventories =
        resources.iter().map(|&(class, total)| (class.to_owned(), Inventory::of(total))).collect();
    vec![
        Command::CreateProvider(CreateProvider {
            uuid: provider(number),
            name: format!("host-{number}"),
            parent: None,
        }),
        Command::ChangeInventories(ChangeInventories {
            provider: provider(number),
            generation: None,
            change: InventoryChange::ReplaceAll(inventories),
            may_reserve_all: true,
        }),
    ]
}

/// A claim of one option.
pub fn claim(number: u128, holding: Holding) -> Command {
    Command::Claim(Claim {
        consumer: consumer(number),
        project_id: "project".into(),
        user_id: "user".into(),
        consumer_type: Some("INSTANCE".into()),
        options: vec![holding],
        candidates: None,
        searched: None,
    })
}

/// A runtime for the few things that are asynchronous.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Waits until something is so, and fails with `what` if it does not become so in five minutes.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !so() {
        assert!(Instant::now() < deadline, "not in five minutes: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
