//! Views folded from the ledger's events, and their publication on NATS.
//!
//! A projection is a pure fold: the same events give the same view in every process, and a view
//! always says which position it is true as of. Nothing here decides anything: admission looks at
//! the ledger's own state, so a projection that lags, is paused or has stopped cannot oversell.
//!
//! * [`Projections`] follows a ledger and publishes immutable snapshots of each view.
//! * [`buckets::Buckets`] writes current figures to JetStream key-value buckets.
//! * [`publisher::Publisher`] copies the log to a JetStream stream, message n being event n.

pub mod buckets;
mod candidate_view;
pub mod candidates;
pub mod class_names;
pub mod connection;
pub mod consumers;
pub mod fold;
mod follow;
pub mod links;
pub mod moves;
pub mod orphans;
mod projections;
mod published;
pub mod publisher;
pub mod usage;

pub use candidates::CandidateIndex;
pub use consumers::ConsumersView;
pub use fold::{Batch, Lines, Projection, ProjectionError, rebuild};
pub use moves::MovesView;
pub use projections::{Projections, ViewHealth, ViewName};
pub use published::Behind;
pub use usage::UsageView;

use rustc_hash::FxBuildHasher;

/// A persistent hash map: cloning it costs a reference count.
type Map<K, V> = imbl::GenericHashMap<K, V, FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;
