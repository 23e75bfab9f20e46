//! Letting a view that has stopped go on.

use serde::{Deserialize, Serialize};

/// See [`super::Command::SkipEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkipEvent {
    /// The view that has stopped, by its name in `/readyz`.
    pub view: String,
    /// The event that it has stopped at.
    pub sequence: u64,
    /// Why it may be passed over.
    pub reason: String,
}
