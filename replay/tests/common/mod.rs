//! A real ledger in a directory of its own, written through its own front door, and the tool run
//! on it as an operator runs it.
#![allow(dead_code, clippy::unwrap_used)]

use ledger::amounts::{Holding, Inventory, Resources};
use ledger::command::*;
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::stamp::{Actor, Stamp};
use ledger::time::{Clock, Timestamp};
use ledger::{Answer, Ledger, Options};
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use uuid::Uuid;

/// 2026-11-30T03:00:00Z, and a second more each time it is asked.
pub struct Ticking(AtomicI64);

pub const START: i64 = 1_796_007_600_000_000;

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn monotonic(&self) -> std::time::Duration {
        let since = self.0.load(Ordering::Relaxed) - START;
        std::time::Duration::from_micros(u64::try_from(since).unwrap_or(0))
    }
}

pub struct Book {
    pub dir: tempfile::TempDir,
    pub ledger: Ledger,
    stamps: AtomicU64,
}

pub fn provider(n: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(0xaaaa_0000_0000_0000_0000_0000_0000_0000 + n))
}

pub fn consumer(n: u128) -> ConsumerUuid {
    ConsumerUuid(Uuid::from_u128(0xcccc_0000_0000_0000_0000_0000_0000_0000 + n))
}

pub fn resources(amounts: &[(&str, u32)]) -> Resources {
    amounts.iter().map(|&(class, amount)| (class.to_owned(), amount)).collect()
}

pub fn on(provider: ProviderUuid, amounts: &[(&str, u32)]) -> Holding {
    Holding::from([(provider, resources(amounts))])
}

pub fn write(consumer: ConsumerUuid, allocations: Holding) -> ConsumerWrite {
    ConsumerWrite {
        consumer,
        allocations,
        project_id: "project-1".into(),
        user_id: "user-1".into(),
        consumer_type: None,
        generation: GenerationCheck::Unchecked,
    }
}

pub fn replace(via: Via, consumers: Vec<ConsumerWrite>) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations { via, consumers })
}

pub fn claim(consumer: ConsumerUuid, options: Vec<Holding>) -> Command {
    Command::Claim(Claim {
        consumer,
        project_id: "project-1".into(),
        user_id: "user-1".into(),
        consumer_type: None,
        options,
        candidates: None,
        searched: None,
    })
}

impl Book {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = open(dir.path());
        Self { dir, ledger, stamps: AtomicU64::new(0) }
    }

    /// Closes the ledger and lets go of it; the directory stays.
    pub fn shut(self) -> tempfile::TempDir {
        self.ledger.close();
        self.dir
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn submit(&self, request_id: &str, commands: Vec<Command>) -> Answer {
        let number = self.stamps.fetch_add(1, Ordering::Relaxed);
        let mut seed = [7; 16];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        let stamp = Stamp {
            seed,
            received_at: Timestamp::from_micros(START),
            actor: Actor {
                user: "nova".into(),
                project: "service".into(),
                address: "192.0.2.7".into(),
            },
            request_id: Some(request_id.to_owned()),
            command_id: None,
        };
        self.ledger.submit_blocking(commands, stamp).unwrap()
    }

    /// A host with these inventories.
    pub fn host(&self, id: ProviderUuid, name: &str, inventories: &[(&str, u32)]) {
        let made = CreateProvider { uuid: id, name: name.into(), parent: None };
        self.submit("req-host", vec![Command::CreateProvider(made)]);
        self.inventories(id, inventories);
    }

    pub fn inventories(&self, id: ProviderUuid, inventories: &[(&str, u32)]) {
        let all =
            inventories.iter().map(|&(class, total)| (class.to_owned(), Inventory::of(total)));
        let change = ChangeInventories {
            provider: id,
            generation: None,
            change: InventoryChange::ReplaceAll(all.collect()),
            may_reserve_all: true,
        };
        self.submit("req-host", vec![Command::ChangeInventories(change)]);
    }
}

pub fn open(dir: &Path) -> Ledger {
    let clock = Arc::new(Ticking(AtomicI64::new(START)));
    let options = Options { free_space: ledger::FreeSpace::Bytes(0), ..Options::default() };
    Ledger::open(dir, options, clock, [1; 16]).unwrap()
}

/// What the tool said, and its exit status.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub status: i32,
}

impl Said {
    /// Whether each of the texts is there, in this order.
    #[track_caller]
    pub fn tells(&self, texts: &[&str]) {
        let mut rest = self.out.as_str();
        for text in texts {
            match rest.find(text) {
                Some(at) => rest = &rest[at + text.len()..],
                None => panic!("{text:?} is not (there) in:\n{}\n{}", self.out, self.err),
            }
        }
    }
}

/// Runs the tool as an operator does.
pub fn replay(dir: &Path, arguments: &[&str]) -> Said {
    let output = Process::new(env!("CARGO_BIN_EXE_replay"))
        .args(arguments)
        .arg("--data-dir")
        .arg(dir)
        .output()
        .unwrap();
    Said {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        status: output.status.code().unwrap(),
    }
}
