//! The ledger: commands, decisions, events, state, and the log that keeps them.
//!
//! No HTTP, no NATS, no clock, no randomness. See ARCHITECTURE.md for the flow of one command.

pub mod amounts;
pub mod command;
mod commands;
pub mod decide;
pub mod event;
pub mod fold;
pub mod ids;
pub mod limits;
pub mod log;
pub mod memory;
pub mod panics;
pub mod record;
pub mod refusal;
pub mod search;
pub mod stamp;
pub mod state;
pub mod time;
mod writer;

pub use writer::{
    Answer, Committed, DecideTimes, FreeSpace, Health, Ledger, OpenError, Options, Outcome,
    RefusalCounts, SubmitError, Tail, Unwritable, UnwritableCause,
};
