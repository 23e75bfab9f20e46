//! The ledger over HTTP: what the broker lacks is read here.

use crate::error::{LedgerError, RecordError};
use crate::record::Record;
use std::time::Duration;
use ureq::Agent;

/// The form in which events are asked for: records as stored, each after its length.
const RECORDS: &str = "application/vnd.allocd.records";
/// Says where the ledger ends.
const SEQUENCE: &str = "ledger-sequence";
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of one answer.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A ledger's HTTP API, as far as readers need it. Cheap to clone.
#[derive(Clone)]
pub struct LedgerHttp {
    agent: Agent,
    base: String,
    token: String,
}

/// A page of records.
#[derive(Debug)]
pub(crate) struct Page {
    /// Records in order.
    pub(crate) records: Vec<Record>,
    /// Where the ledger ended when it was asked.
    pub(crate) head: u64,
}

impl LedgerHttp {
    /// The ledger at `base`, such as `http://127.0.0.1:8778`, asked with this `X-Auth-Token`.
    pub fn new(base: &str, token: &str) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build()
            .into();
        Self { agent, base: base.trim_end_matches('/').to_owned(), token: token.to_owned() }
    }

    /// Where the ledger ends.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn head(&self) -> Result<u64, LedgerError> {
        self.page(u64::MAX - 1, 1).await.map(|page| page.head)
    }

    /// At most `limit` records after `after`.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn records(&self, after: u64, limit: usize) -> Result<Vec<Record>, LedgerError> {
        self.page(after, limit).await.map(|page| page.records)
    }

    pub(crate) async fn page(&self, after: u64, limit: usize) -> Result<Page, LedgerError> {
        let this = self.clone();
        let read = tokio::task::spawn_blocking(move || this.read(after, limit));
        read.await.map_err(|error| LedgerError::Away(error.to_string()))?
    }

    fn read(&self, after: u64, limit: usize) -> Result<Page, LedgerError> {
        let url = format!("{}/ledger/v1/events?after={after}&limit={limit}", self.base);
        let away = |error: ureq::Error| LedgerError::Away(error.to_string());
        let asked = self.agent.get(&url).header("accept", RECORDS);
        let mut answer = asked.header("x-auth-token", &self.token).call().map_err(away)?;
        let status = answer.status().as_u16();
        let head = answer.headers().get(SEQUENCE).and_then(|value| value.to_str().ok());
        let head = head.and_then(|text| text.parse().ok());
        let body = answer.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(away)?;
        if status != 200 {
            let text = String::from_utf8_lossy(&body).into_owned();
            return Err(LedgerError::Status { status, text });
        }
        let head = head.ok_or_else(|| LedgerError::Answer(format!("no header {SEQUENCE}")))?;
        let records = split(&body).map_err(|error| LedgerError::Answer(error.to_string()))?;
        Ok(Page { records, head })
    }
}

/// Records, each after its length in 4 bytes, big endian.
fn split(mut bytes: &[u8]) -> Result<Vec<Record>, RecordError> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let short = || RecordError::Damaged("the list ends in a record".to_owned());
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (record, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        records.push(Record::read(record)?);
        bytes = rest;
    }
    Ok(records)
}
