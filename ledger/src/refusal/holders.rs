//! Who holds what stands in a command's way.

use crate::ids::{ConsumerUuid, MoveId, ProviderUuid};
use serde::{Deserialize, Serialize};

/// How many consumers and live moves hold what a command needs to be free, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// Of which provider; none: of several, which the cause names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderUuid>,
    /// Of which class; none: of several, or of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// How many consumers hold something of it.
    pub consumers: u64,
    /// How many live moves have their source or destination there.
    pub moves: u64,
    /// Counting ended at [`crate::limits::HOLDERS_COUNTED`] holdings: there are more, and larger
    /// ones may be among them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The first, at most [`crate::limits::HOLDERS_TOLD`]. Of one class: those that hold most of
    /// it; otherwise: those that a live move is about. Fewer where the record of the refusal has no
    /// room for them, none where the caller may not see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Holder>,
}

/// One consumer that holds something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who.
    pub consumer: ConsumerUuid,
    /// How much of the class, in its unit; none: not about one class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// The live move that it holds a side of there; of several the latest.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub move_id: Option<MoveId>,
}
