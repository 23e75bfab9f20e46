//! Taking providers and inventories out of use: at once, or when nobody holds anything of them.

use crate::ids::ProviderUuid;
use serde::{Deserialize, Serialize};

/// See [`super::Command::Retire`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retire {
    /// Which providers.
    pub which: WhichProviders,
    /// Those in use are not offered any more and go when they are free. Without it, one in use
    /// keeps all of them from going.
    #[serde(default)]
    pub when_free: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Providers that a command is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichProviders {
    /// These.
    Providers(Vec<ProviderUuid>),
    /// All in an aggregate.
    Aggregate(String),
    /// This one and all below it.
    Subtree(ProviderUuid),
}

/// See [`super::Command::Unretire`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unretire {
    /// Whose wishes are taken back.
    pub provider: ProviderUuid,
    /// The wishes for these classes; none named: all of the provider, its own included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
