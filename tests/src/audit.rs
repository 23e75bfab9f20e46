//! The audit of a copy of the event stream: by what came on NATS alone, without the ledger.

use crate::record::Record;
use crate::subscriber::Delivery;

/// Read every message from the first on: message n is event n, it is named as its headers say,
/// and the chain is whole. The error says which message is wrong, and how.
pub fn audit(deliveries: &[Delivery]) -> Result<Vec<Record>, String> {
    let mut records: Vec<Record> = Vec::new();
    for (expected, delivery) in (1..).zip(deliveries) {
        if delivery.sequence != expected {
            return Err(format!("message {} came instead of {expected}", delivery.sequence));
        }
        let record = Record::read(&delivery.body)?;
        if record.header.sequence != expected {
            return Err(format!("message {expected} is event {}", record.header.sequence));
        }
        named(delivery, &record)?;
        match records.last() {
            Some(before) => record.follows(before)?,
            None => first(&record)?,
        }
        records.push(record);
    }
    Ok(records)
}

/// The headers and the subject say what the record says.
fn named(delivery: &Delivery, record: &Record) -> Result<(), String> {
    let header = &record.header;
    for (name, value) in [
        ("Nats-Msg-Id", header.id.to_string()),
        ("ce-id", header.id.to_string()),
        ("ce-sequence", header.sequence.to_string()),
        ("ce-type", format!("allocd.v1.{}", header.kind)),
    ] {
        let found = delivery.header(name);
        if found != Some(value.as_str()) {
            return Err(format!("{name} of message {} is {found:?}", delivery.sequence));
        }
    }
    if !delivery.subject.starts_with(&format!("alloc.v1.event.{}.", header.kind)) {
        return Err(format!("{} came on {}", header.kind, delivery.subject));
    }
    Ok(())
}

fn first(record: &Record) -> Result<(), String> {
    let header = &record.header;
    let genesis = header.kind == "Genesis" && header.previous_hash.iter().all(|&byte| byte == 0);
    genesis.then_some(()).ok_or_else(|| "the first event is no beginning".to_owned())
}
