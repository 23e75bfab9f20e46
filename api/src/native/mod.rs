//! The ledger's own API, `/ledger/v1`.

pub mod commands;
pub mod consumer;
mod consumer_filter;
pub mod consumers;
pub mod events;
pub mod explain;
mod filling;
pub mod fits;
mod in_flight;
pub mod living;
pub mod media;
pub mod moves;
pub mod named_command;
mod objects;
pub mod orphans;
mod page;
pub mod providers;
pub mod searching;
pub mod shared_events;
pub mod stream;
pub mod traits;
pub mod usages;
