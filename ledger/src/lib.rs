//! The ledger: commands, decisions, events, state, and the log that keeps them.
//!
//! No HTTP, no NATS, no clock, no randomness. See ARCHITECTURE.md for the flow of one command.

pub mod amounts;
pub mod command;
pub mod event;
pub mod ids;
pub mod limits;
pub mod record;
pub mod refusal;
pub mod stamp;
pub mod state;
pub mod time;
