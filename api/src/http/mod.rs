//! HTTP as Placement does it, without any of its resources: versions, authentication, policy,
//! content negotiation, errors, CORS and routes.

pub mod accept;
pub mod auth;
pub mod body;
pub mod bounds;
pub mod cors;
pub mod error;
pub mod failure;
pub mod idempotency;
pub mod last_modified;
pub mod microversion;
pub mod operation;
pub mod payload;
pub mod policy;
pub mod reply;
pub mod request;
pub mod request_id;
pub mod router;
mod routes;
