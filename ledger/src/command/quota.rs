//! Limits of what projects hold.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// See [`super::Command::SetQuota`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetQuota {
    /// Whose limits; none: those of every project that has none of its own for the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The limit of each class named; none: the limit is taken away. Other classes keep theirs.
    pub limits: BTreeMap<String, Option<Limit>>,
}

/// How much of a class a project may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This much, in the class's unit.
    AtMost(u64),
    /// Any amount, whatever the limit for all projects is.
    Unlimited,
}
