//! For programs that use an allocd ledger by NATS.
//!
//! * [`Commander`] sends commands and asks again under the same id until it knows the outcome.
//! * [`Follower`] reads events from any position on: each once, in order, with the chain of hashes
//!   checked, whatever the broker loses, repeats or makes up. What is missing comes from the ledger
//!   itself, over HTTP.
//! * [`View`] watches one of the key-value buckets: all of it, then what changes.
//!
//! The crate knows messages and bytes only. It shares no code with the server, so that using it
//! does not mean building RocksDB, and so that it shows what a reader in another language has to
//! do.

mod backoff;
mod command;
mod error;
mod follow;
mod ledger;
mod record;
mod view;

pub use command::{Commander, Done, Retries};
pub use error::{CommandError, FollowError, LedgerError, RecordError, ViewError};
pub use follow::{Counts, FollowOptions, Follower, Source};
pub use ledger::LedgerHttp;
pub use record::{Hash, Header, Record};
pub use view::{Change, View};
