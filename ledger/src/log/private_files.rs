//! A ledger is for the user that runs the process alone: it says who holds what, and whoever could
//! change its files could change history.

use rustix::fs::Mode;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// What everybody else may do: nothing.
const OTHERS: u32 = 0o077;

/// Makes a ledger's directory if there is none. From now on, whatever this process makes is its
/// user's alone: RocksDB makes files for as long as it runs, and takes their modes from the umask.
///
/// # Errors
/// What the system says.
pub(super) fn make_directory(dir: &Path) -> io::Result<()> {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
    DirBuilder::new().recursive(true).mode(0o777 & !OTHERS).create(dir)
}

/// Takes away what others may do with a directory that is there already, and with all in it.
///
/// What belongs to another user cannot be changed; it stays as it is, with a warning.
///
/// # Errors
/// If the directory cannot be read.
pub(super) fn close_to_others(dir: &Path) -> io::Result<()> {
    close(dir, &dir.metadata()?.permissions());
    for entry in dir.read_dir()? {
        let entry = entry?;
        // RocksDB may delete what was listed a moment ago. Links are not followed.
        let Ok(found) = entry.metadata() else { continue };
        match found.file_type() {
            kind if kind.is_dir() => close_to_others(&entry.path())?,
            kind if kind.is_file() => close(&entry.path(), &found.permissions()),
            _ => {}
        }
    }
    Ok(())
}

fn close(path: &Path, found: &Permissions) {
    if found.mode() & OTHERS == 0 {
        return;
    }
    let closed = Permissions::from_mode(found.mode() & 0o7777 & !OTHERS);
    match std::fs::set_permissions(path, closed) {
        Ok(()) => tracing::info!(path = %path.display(), "closed to other users"),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot be closed to other users");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_and_what_was_there_are_closed_to_others_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        std::fs::write(&outside, "").unwrap();
        std::fs::set_permissions(&outside, Permissions::from_mode(0o644)).unwrap();
        let dir = root.path().join("a/b");
        make_directory(&dir).unwrap();
        assert_eq!((mode(&dir), mode(&root.path().join("a"))), (0o700, 0o700));

        let inner = dir.join("log");
        std::fs::create_dir(&inner).unwrap();
        let file = inner.join("000001.sst");
        std::fs::write(&file, "").unwrap();
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        for (path, open) in [(&dir, 0o755), (&inner, 0o777), (&file, 0o644)] {
            std::fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, dir.join("link")).unwrap();
        close_to_others(&dir).unwrap();
        assert_eq!((mode(&dir), mode(&inner), mode(&file)), (0o700, 0o700, 0o600));
        assert_eq!(mode(&outside), 0o644);
    }
}
