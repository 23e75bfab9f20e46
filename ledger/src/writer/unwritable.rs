//! Why no commands are taken at present.

use std::fmt;

/// Why no commands are taken, while reads go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// What kind of thing it is.
    pub cause: UnwritableCause,
    /// What is wrong, for people, and what helps where it does not end by itself.
    pub reason: String,
}

/// What keeps commands from being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwritableCause {
    /// Less is free than the ledger needs. It is over when there is room again.
    DiskFull,
    /// The file system takes no writes. It is over when it does.
    DiskReadOnly,
    /// The disk fails, or a file of the ledger is gone. It is over when that is.
    DiskFailed,
    /// The writer has ended by a defect. It is over with the process.
    Defect,
}

impl UnwritableCause {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::DiskFull, Self::DiskReadOnly, Self::DiskFailed, Self::Defect];

    /// The name in answers and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::DiskReadOnly => "disk_read_only",
            Self::DiskFailed => "disk_failed",
            Self::Defect => "defect",
        }
    }
}

impl Unwritable {
    pub(super) fn new(cause: UnwritableCause, reason: impl Into<String>) -> Self {
        Self { cause, reason: reason.into() }
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
