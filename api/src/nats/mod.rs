//! Commands and queries by NATS request and reply, beside HTTP: the same commands, the same
//! handlers, the same answers.
//!
//! ```text
//! alloc.v1.command.<name>   one command; the body is what stands under its name over HTTP
//! alloc.v1.query.<name>     a GET; the body is an object of its parameters
//! $SRV.PING|INFO|STATS      who serves this, and how busy it is (the NATS service API)
//! ```
//!
//! Who may send what is the broker's business: its accounts and permissions decide who can publish
//! to these subjects. Answers go to inboxes only (`inboxes`), and commands and queries each have a
//! connection and a budget of their own (`lane`), in which callers take turns (`fair`). NATS away, slow or wrong never touches HTTP or the ledger.

mod ask;
mod board;
mod endpoint;
mod fair;
mod inboxes;
mod lane;
mod link;
mod parameters;
mod reply;
mod service;
mod verbs;

pub use board::{Board, Flood, ServiceStatus};
pub use inboxes::Inboxes;
pub use service::Service;
