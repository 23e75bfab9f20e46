//! Placement's resources, one file each: from parsed requests to reads of a view or commands to
//! the ledger, and back to Placement's JSON.

pub mod aggregates;
pub mod allocation_forms;
pub mod allocations;
pub mod candidate_forms;
pub mod candidates;
pub mod candidates_body;
pub mod inventories;
pub mod lookup;
pub mod numbers;
pub mod provider_allocations;
pub mod provider_body;
pub mod provider_list;
pub mod provider_traits;
pub mod reshaper;
pub mod resource_classes;
pub mod resource_providers;
pub mod root;
pub mod summaries;
pub mod traits;
pub mod usages;
