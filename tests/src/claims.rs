//! A client of the ledger's own API that claims under an id, and asks again until it knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use serde_json::json;

use crate::http::Client;
use crate::seed;

/// How long a claim may go without an answer, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(300);

/// How soon it is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// A claim that was accepted.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The id under which it was sent.
    pub key: String,
    /// Who holds it.
    pub consumer: String,
    /// The event that it became.
    pub sequence: u64,
    /// Requests that it took.
    pub requests: u64,
}

/// Claims one VCPU for one new consumer after another, on the providers in turn.
pub struct Claimer {
    client: Client,
    random: StdRng,
    providers: Vec<String>,
    next: usize,
    unanswered: Arc<AtomicU64>,
}

impl Claimer {
    /// A claimer with connections of its own (not a clone of another's client).
    pub fn new(client: Client, random: StdRng, providers: &[String]) -> Claimer {
        let unanswered = Arc::default();
        Claimer { client, random, providers: providers.to_vec(), next: 0, unanswered }
    }

    /// Counts requests without an answer, also while it claims.
    pub fn unanswered(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.unanswered)
    }

    /// Claim, and ask again under the same id while no answer comes. Panics if an answer is
    /// anything but that it is done.
    pub fn claim(&mut self) -> Claimed {
        let consumer = seed::uuid(&mut self.random).to_string();
        let key = format!("claim-{consumer}");
        let provider = self.providers[self.next % self.providers.len()].clone();
        self.next += 1;
        let body = json!({"claim": {
            "consumer": consumer, "project_id": "project", "user_id": "user",
            "consumer_type": "INSTANCE", "options": [{provider: {"VCPU": 1}}],
        }});
        let client = self.client.with("idempotency-key", &key);
        let deadline = Instant::now() + PATIENCE;
        for requests in 1.. {
            match client.post("/ledger/v1/commands", &body) {
                Ok(answer) => {
                    let answer = answer.expect(200).json();
                    let header = &answer["events"][0]["header"];
                    let sequence = header["sequence"].as_u64().expect("a claim is an event");
                    return Claimed { key, consumer, sequence, requests };
                }
                Err(error) => {
                    self.unanswered.fetch_add(1, Ordering::SeqCst);
                    assert!(Instant::now() < deadline, "no answer: {error}");
                }
            }
            thread::sleep(PAUSE);
        }
        unreachable!("the requests are counted without end")
    }
}
