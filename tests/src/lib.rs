//! What the system tests share: real servers started and killed, a client, and the
//! sums that must come out.
//!
//! The tests are in `tests/*.rs` beside this crate. They know the server only from
//! outside: its command line, its HTTP answers, its files and its messages. Everything
//! here may panic, because a test that cannot go on has failed; nothing of it is
//! linked into the server.
#![allow(clippy::unwrap_used)]

pub mod asker;
pub mod asyncapi;
pub mod audit;
pub mod binaries;
pub mod books;
pub mod certificates;
pub mod claims;
pub mod clock;
pub mod credentials;
pub mod failing_disk;
pub mod garble;
pub mod http;
pub mod load;
pub mod nats;
pub mod power_cut;
pub mod process;
pub mod proxy;
pub mod python;
pub mod raw;
pub mod record;
pub mod replay_tool;
pub mod routes;
pub mod same_host;
pub mod seed;
pub mod server;
pub mod sse;
pub mod stop;
pub mod subscriber;
pub mod topology;
