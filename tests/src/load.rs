//! A client under load that knows what it was promised.
//!
//! Each worker has consumers of its own and sends one write at a time, so it knows what
//! each of them must hold: what the last acknowledged write said. Of at most one write,
//! the last before its server died, it does not know the outcome; that one must be there
//! in full or not at all.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::books::{self, Holding};
use crate::http::{Answer, Client};
use crate::seed;

/// Consumers a worker has at most; beyond it, it releases rather than claims.
const CONSUMERS: usize = 40;

/// A consumer as the worker knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// What it holds.
    pub holding: Holding,
    /// Its generation; none while it holds nothing.
    pub generation: Option<u64>,
}

/// A write of the whole holdings of one or several consumers, which is atomic.
pub type Write = Vec<(String, Holding)>;

/// How a write ended.
#[derive(Debug)]
pub enum Outcome {
    /// Acknowledged: it must never be lost.
    Done,
    /// Refused for want of room: nothing has changed.
    Refused,
    /// No answer, or one that says so: all of it is there, or nothing.
    Unknown(Write),
}

/// One client thread and its books.
pub struct Worker {
    random: StdRng,
    providers: Vec<String>,
    classes: Vec<String>,
    /// The consumers that hold something.
    pub known: BTreeMap<String, Known>,
    /// Those that held something once.
    pub released: BTreeSet<String>,
    /// Those written since this was last taken.
    pub touched: BTreeSet<String>,
    /// Moves under way: instance and migration consumer.
    moves: Vec<(String, String)>,
    /// Writes acknowledged.
    pub done: u64,
    /// Writes refused.
    pub refused: u64,
}

impl Worker {
    /// A worker that claims these classes of these providers.
    pub fn new(random: StdRng, providers: &[String], classes: &[&str]) -> Worker {
        Worker {
            random,
            providers: providers.to_vec(),
            classes: classes.iter().map(|&class| class.to_owned()).collect(),
            known: BTreeMap::new(),
            released: BTreeSet::new(),
            touched: BTreeSet::new(),
            moves: Vec::new(),
            done: 0,
            refused: 0,
        }
    }

    /// Send one random write and enter its outcome in the books (an unknown one is not
    /// entered: see [`Worker::settle`]).
    pub fn step(&mut self, client: &Client) -> Outcome {
        let write = self.choose();
        match self.send(client, &write) {
            Ok(answer) if answer.status == 204 => {
                self.enter(&write);
                self.done += 1;
                Outcome::Done
            }
            Ok(answer) if answer.status == 409 => {
                let detail = answer.detail();
                assert!(
                    detail.contains("exceed the capacity"),
                    "refused for another reason: {detail}\n{write:?}"
                );
                self.refused += 1;
                Outcome::Refused
            }
            Ok(answer) if answer.status != 503 => {
                panic!("{}: {}\n{write:?}", answer.status, answer.text())
            }
            Ok(_) | Err(_) => Outcome::Unknown(write),
        }
    }

    /// Find out how an unknown write ended: in full, or not at all. Panics if it is half applied.
    pub fn settle(&mut self, client: &Client, write: &Write) {
        let read = |consumer: &String| {
            let (holding, generation) = books::read(client, consumer);
            Known { holding, generation }
        };
        let found: Vec<Known> = write.iter().map(|(consumer, _)| read(consumer)).collect();
        let before: Vec<Known> = write.iter().map(|(consumer, _)| self.known(consumer)).collect();
        let after: Vec<Known> =
            write.iter().map(|(consumer, holding)| self.after(consumer, holding)).collect();
        assert!(
            found == before || found == after,
            "half applied:\nfound  {found:?}\nbefore {before:?}\nafter  {after:?}"
        );
        if found == after {
            self.enter(write);
        }
    }

    /// Check that the consumers of `which` hold exactly what was acknowledged.
    pub fn check<'a>(&self, client: &Client, which: impl IntoIterator<Item = &'a String>) {
        for consumer in which {
            let (holding, generation) = books::read(client, consumer);
            assert_eq!(Known { holding, generation }, self.known(consumer), "consumer {consumer}");
        }
    }

    /// What all its consumers hold.
    pub fn holdings(&self) -> impl Iterator<Item = &Holding> {
        self.known.values().map(|known| &known.holding)
    }

    fn known(&self, consumer: &str) -> Known {
        self.known.get(consumer).cloned().unwrap_or_default()
    }

    /// How a consumer looks after a write: an emptied one is gone, and a new one starts at 1.
    fn after(&self, consumer: &str, holding: &Holding) -> Known {
        let generation = self.known(consumer).generation.unwrap_or(0) + 1;
        Known { holding: holding.clone(), generation: (!holding.is_empty()).then_some(generation) }
    }

    fn enter(&mut self, write: &Write) {
        for (consumer, holding) in write {
            let after = self.after(consumer, holding);
            self.touched.insert(consumer.clone());
            if holding.is_empty() {
                self.known.remove(consumer);
                self.released.insert(consumer.clone());
            } else {
                self.released.remove(consumer);
                self.known.insert(consumer.clone(), after);
            }
        }
        let known = &self.known;
        self.moves.retain(|(_, migration)| known.contains_key(migration));
        if let [(instance, left), (migration, taken)] = write.as_slice()
            && left.is_empty()
            && !taken.is_empty()
        {
            self.moves.push((instance.clone(), migration.clone()));
        }
    }

    /// The next write: a step of a move under way, or something new.
    fn choose(&mut self) -> Write {
        if !self.moves.is_empty() && self.random.random_bool(0.5) {
            return self.continue_move();
        }
        let free: Vec<String> = self.unmoved().cloned().collect();
        let Some(consumer) =
            (!free.is_empty()).then(|| free[self.random.random_range(0..free.len())].clone())
        else {
            return self.claim();
        };
        let crowded = free.len() >= CONSUMERS;
        match self.random.random_range(0..10) {
            0..=3 if !crowded => self.claim(),
            4 | 5 => vec![(consumer, self.some_holding())],
            6 | 7 => self.open_move(consumer),
            _ => vec![(consumer, Holding::new())],
        }
    }

    /// Consumers that are on neither side of a move.
    fn unmoved(&self) -> impl Iterator<Item = &String> {
        let moving =
            |consumer: &String| self.moves.iter().any(|(i, m)| i == consumer || m == consumer);
        self.known.keys().filter(move |consumer| !moving(consumer))
    }

    fn claim(&mut self) -> Write {
        vec![(seed::uuid(&mut self.random).to_string(), self.some_holding())]
    }

    fn open_move(&mut self, instance: String) -> Write {
        let holding = self.known(&instance).holding;
        vec![(instance, Holding::new()), (seed::uuid(&mut self.random).to_string(), holding)]
    }

    /// Claim the destination, or confirm, or revert.
    fn continue_move(&mut self) -> Write {
        let (instance, migration) =
            self.moves[self.random.random_range(0..self.moves.len())].clone();
        let source = self.known(&migration).holding;
        if self.known(&instance).holding.is_empty() && self.random.random_bool(0.8) {
            return vec![(instance, self.some_holding())];
        }
        if self.random.random_bool(0.5) && !self.known(&instance).holding.is_empty() {
            return vec![(migration, Holding::new())];
        }
        vec![(migration, Holding::new()), (instance, source)]
    }

    /// One to three providers, each with some of each class.
    fn some_holding(&mut self) -> Holding {
        let count = self.random.random_range(1..=3.min(self.providers.len()));
        let mut holding = Holding::new();
        for _ in 0..count {
            let provider =
                self.providers[self.random.random_range(0..self.providers.len())].clone();
            let random = &mut self.random;
            let amounts = self
                .classes
                .iter()
                .map(|class| (class.clone(), random.random_range(1..=6)))
                .collect();
            holding.insert(provider, amounts);
        }
        holding
    }

    fn send(&self, client: &Client, write: &Write) -> Result<Answer, ureq::Error> {
        if let [(consumer, holding)] = write.as_slice() {
            let path = format!("/allocations/{consumer}");
            if holding.is_empty() && self.done.is_multiple_of(2) {
                return client.delete(&path);
            }
            return client.put(&path, &self.body(consumer, holding));
        }
        let body: serde_json::Map<String, Value> = write
            .iter()
            .map(|(consumer, holding)| (consumer.clone(), self.body(consumer, holding)))
            .collect();
        client.post("/allocations", &body.into())
    }

    fn body(&self, consumer: &str, holding: &Holding) -> Value {
        json!({
            "allocations": books::to_json(holding),
            "project_id": "project",
            "user_id": "user",
            "consumer_type": "INSTANCE",
            "consumer_generation": self.known(consumer).generation,
        })
    }
}
