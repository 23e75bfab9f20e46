//! Projections: views of the ledger, computed from its events alone.

pub mod candidates;
