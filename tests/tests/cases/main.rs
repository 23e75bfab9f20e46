//! Faults that users of Placement and Nova have reported, played again over HTTP. Each test
//! is named by what it shows, and cites the case and the bug it comes from.
#![allow(clippy::unwrap_used, missing_docs)]

mod candidates;
mod capacity_commands;
mod cloud;
mod determinism;
mod failed_moves;
mod files;
mod holders;
mod inventories;
mod leaks;
mod lists;
mod metrics;
mod orphans;
mod races;
mod readers;
mod refusals;
mod repeats;
mod same_host;
mod search_limits;
mod searches;
mod trees;
mod usages;
