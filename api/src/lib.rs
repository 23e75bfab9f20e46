//! The server: Placement's HTTP API and the ledger's own, on top of the ledger.
//!
//! A request is authenticated and parsed here, becomes a command or a read of a view, and its
//! outcome becomes Placement's status, headers and body. Nothing in this crate touches storage.

pub mod app;
pub mod clock;
pub mod config;
pub mod failed_searches;
pub mod first_bytes;
pub mod handle;
pub mod http;
pub mod lag;
pub mod logging;
pub mod memory_metrics;
pub mod metrics;
pub mod native;
pub mod nats;
pub mod open_files;
pub mod ops;
pub mod orphans;
pub mod past;
pub mod placement;
pub mod provider_metrics;
pub mod query;
pub mod refusals;
pub mod repeats;
pub mod schema;
pub mod serve;
pub mod server;
mod unreadable;
