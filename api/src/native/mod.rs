//! The ledger's own API, `/ledger/v1`.

pub mod commands;
pub mod events;
pub mod explain;
mod in_flight;
pub mod media;
pub mod moves;
