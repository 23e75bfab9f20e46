//! One process at a time may write a ledger. The lock is the kernel's, so it goes with the
//! process however it dies; what stands in the file only tells the second who has it.

use super::private_files;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

const NAME: &str = "owner";

/// The right to write a ledger, held until dropped.
#[derive(Debug)]
pub struct Owner {
    _file: File,
}

/// Why a ledger cannot be had for writing.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// Another process has it.
    #[error("the ledger in {dir} is open for writing already: {who}")]
    Taken {
        /// The directory.
        dir: String,
        /// What that process wrote about itself.
        who: String,
    },
    /// The directory or the file cannot be used.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
}

impl Owner {
    /// Takes the directory for this process; `who` is told to others that try.
    ///
    /// # Errors
    /// [`OwnerError`] if another process has it, or the directory cannot be written.
    pub fn take(dir: &Path, who: &str) -> Result<Self, OwnerError> {
        let path = dir.join(NAME);
        let io = |error| OwnerError::Io { path: path.display().to_string(), error };
        private_files::make_directory(dir).map_err(io)?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(io)?;
                return Err(OwnerError::Taken {
                    dir: dir.display().to_string(),
                    who: text.trim().into(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        private_files::close_to_others(dir).map_err(io)?;
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        writeln!(file, "process {}, {who}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it_and_gets_it_when_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Owner::take(dir.path(), "serving 127.0.0.1:1").unwrap();
        let told = Owner::take(dir.path(), "second").unwrap_err().to_string();
        assert!(told.contains("serving 127.0.0.1:1") && told.contains("process"), "{told}");
        drop(first);
        Owner::take(dir.path(), "second").unwrap();
    }
}
