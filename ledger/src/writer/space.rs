//! How much of a ledger's file system is free, and whether it can be written at all. Writes are
//! refused before it is full: RocksDB cannot clean up without space.

use super::unwritable::{Unwritable, UnwritableCause};
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::path::PathBuf;

/// A file system of which the bound would be more than this part, where the operator set none, has
/// this part as its bound: it must be of use also where it is small.
const PART: u64 = 8;
/// Once writes are refused, so much more than the bound must be free, as a part of it: what frees
/// a few bytes does not have them taken and refused again in turns.
const MORE: u64 = 8;

/// How much must be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeSpace {
    /// So many bytes; 0: nothing is asked.
    Bytes(u64),
    /// So many bytes, or an eighth of the file system if that is less.
    AtMost(u64),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Bytes that are free.
    pub(super) free: u64,
    /// Bytes that must be.
    pub(super) least: u64,
    /// Why nothing can be written.
    pub(super) unwritable: Option<Unwritable>,
}

/// Looks at the file system of a ledger's folder.
pub(super) struct Space {
    dir: PathBuf,
    bound: FreeSpace,
}

impl Space {
    pub(super) fn new(dir: PathBuf, bound: FreeSpace) -> Self {
        Self { dir, bound }
    }

    /// Looks; `refused`: writes are refused for want of space already.
    pub(super) fn look(&self, refused: bool) -> Found {
        match statvfs(&self.dir) {
            Err(error) => {
                let reason = format!("{} cannot be looked at: {error}", self.dir.display());
                let unwritable = Unwritable::new(UnwritableCause::DiskFailed, reason);
                Found { unwritable: Some(unwritable), ..Found::default() }
            }
            Ok(stat) => {
                let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
                let (free, total) = (bytes(stat.f_bavail), bytes(stat.f_blocks));
                let least = self.bound.bytes(total);
                let unwritable = match stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
                    true => Some(Unwritable::new(
                        UnwritableCause::DiskReadOnly,
                        format!("the file system of {} is read-only", self.dir.display()),
                    )),
                    false => low(free, least, refused),
                };
                Found { free, least, unwritable }
            }
        }
    }
}

impl FreeSpace {
    fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::AtMost(bytes) => bytes.min(total / PART),
        }
    }
}

fn low(free: u64, least: u64, refused: bool) -> Option<Unwritable> {
    let needed = if refused { least.saturating_add(least / MORE) } else { least };
    (free < needed).then(|| {
        Unwritable::new(
            UnwritableCause::DiskFull,
            format!("the disk has {free} bytes free, writes need {needed}; they are taken again once there is room"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_volume_has_a_small_bound_unless_the_operator_sets_one() {
        const MIB: u64 = 1024 * 1024;
        assert_eq!(FreeSpace::AtMost(256 * MIB).bytes(1024 * 1024 * MIB), 256 * MIB);
        assert_eq!(FreeSpace::AtMost(256 * MIB).bytes(200 * MIB), 25 * MIB);
        assert_eq!(FreeSpace::Bytes(256 * MIB).bytes(200 * MIB), 256 * MIB);
    }

    #[test]
    fn writes_are_taken_again_once_there_is_somewhat_more_room() {
        assert_eq!(low(800, 800, false), None);
        assert_eq!(low(799, 800, false).unwrap().cause, UnwritableCause::DiskFull);
        assert!(low(899, 800, true).is_some() && low(900, 800, true).is_none());
        assert_eq!(low(0, 0, true), None, "nothing is asked");
    }

    #[test]
    fn a_folder_that_is_gone_is_told() {
        let found = Space::new("/there/is/no/such".into(), FreeSpace::Bytes(0)).look(false);
        let told = found.unwritable.unwrap();
        assert!(told.cause == UnwritableCause::DiskFailed && told.reason.contains("/no/such"));
    }
}
