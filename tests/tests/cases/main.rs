//! Faults that users of Placement and Nova have reported, played again over HTTP. Each test
//! is named by what it shows, and cites the case and the bug it comes from.
#![allow(clippy::unwrap_used, missing_docs)]

mod cloud;
mod inventories;
mod leaks;
mod orphans;
mod races;
mod readers;
mod repeats;
mod same_host;
