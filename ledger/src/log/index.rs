//! What records can be found by: consumer, provider, move, request id, command id. Every entry is
//! a function of a record, so the index can be rebuilt from the log.

use crate::event::{AllocationEvent, Event};
use crate::ids::{ConsumerUuid, MoveId, ProviderUuid};
use crate::record::Header;
use crate::stamp::CommandId;

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexKey {
    /// Events that changed a consumer's holding, or refused one.
    Consumer(ConsumerUuid),
    /// Events that changed a provider, or refused something for want of it.
    Provider(ProviderUuid),
    /// Events of a move.
    Move(MoveId),
    /// Events of one user action.
    RequestId(String),
    /// The first event of a client's command.
    Command(CommandId),
}

impl IndexKey {
    /// The key's bytes: a letter and 16 bytes; names are hashed.
    pub(crate) fn bytes(&self) -> [u8; 17] {
        match self {
            Self::Consumer(id) => tagged(b'c', id.0.as_bytes()),
            Self::Provider(id) => tagged(b'p', id.0.as_bytes()),
            Self::Move(id) => tagged(b'm', id.0.as_bytes()),
            Self::RequestId(id) => tagged(b'r', &hashed(&[id.as_bytes()])),
            Self::Command(id) => command_key(&id.project, &id.id),
        }
    }
}

fn command_key(project: &str, id: &str) -> [u8; 17] {
    let length = (project.len() as u64).to_be_bytes();
    tagged(b'i', &hashed(&[&length, project.as_bytes(), id.as_bytes()]))
}

fn tagged(tag: u8, id: &[u8; 16]) -> [u8; 17] {
    let mut bytes = [tag; 17];
    bytes[1..].copy_from_slice(id);
    bytes
}

fn hashed(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("allocd 2026 index: names");
    for part in parts {
        hasher.update(part);
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    short
}

/// All keys that a record is found by.
pub(crate) fn keys_of(header: &Header, event: &Event) -> Vec<[u8; 17]> {
    let mut keys = Vec::with_capacity(8);
    if let Some(id) = &header.request_id {
        keys.push(IndexKey::RequestId(id.clone()).bytes());
    }
    if let (Some(id), Some(project)) = (&header.command_id, &header.command_project)
        && header.sequence == header.group_first
    {
        keys.push(command_key(project, id));
    }
    if let Some(id) = header.move_id {
        keys.push(IndexKey::Move(id).bytes());
    }
    event_keys(event, &mut keys);
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn event_keys(event: &Event, keys: &mut Vec<[u8; 17]>) {
    let mut provider = |id: ProviderUuid| keys.push(IndexKey::Provider(id).bytes());
    match event {
        Event::Claimed(body)
        | Event::DoubledUp(body)
        | Event::MovedToMigration(body)
        | Event::DestinationReleased(body)
        | Event::HostChanged(body)
        | Event::Reverted(body)
        | Event::Confirmed(body)
        | Event::Released(body)
        | Event::Reallocated(body) => allocation_keys(body, keys),
        Event::Reshaped(body) => {
            for change in &body.inventories {
                provider(change.provider);
            }
            allocation_keys(&body.allocations, keys);
        }
        Event::ProviderCreated(body) => provider(body.provider),
        Event::ProviderUpdated(body) => provider(body.provider),
        Event::ProviderDeleted(body) => provider(body.provider),
        Event::InventoryChanged(body) => provider(body.provider),
        Event::TraitsChanged(body) => provider(body.provider),
        Event::AggregatesChanged(body) => provider(body.provider),
        Event::Rejected(body) => {
            for shortage in &body.shortages {
                provider(shortage.provider);
            }
            keys.extend(body.asked.iter().map(|asked| IndexKey::Consumer(asked.consumer).bytes()));
            keys.extend(body.move_id.map(|id| IndexKey::Move(id).bytes()));
        }
        _ => {}
    }
}

fn allocation_keys(body: &AllocationEvent, keys: &mut Vec<[u8; 17]>) {
    keys.extend(body.consumers.iter().map(|change| IndexKey::Consumer(change.consumer).bytes()));
    keys.extend(body.providers.iter().map(|change| IndexKey::Provider(change.provider).bytes()));
    for this in &body.moves {
        keys.push(IndexKey::Move(this.id).bytes());
        keys.push(IndexKey::Consumer(this.instance).bytes());
        keys.extend(this.migration.map(|id| IndexKey::Consumer(id).bytes()));
    }
}
