//! A disk that fails when a test says so: a small library (`failing_disk.c`) is preloaded. Linux
//! only.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::binaries;

/// Input or output error.
pub const EIO: i32 = 5;
/// No space left on device.
pub const ENOSPC: i32 = 28;
/// Read-only file system.
pub const EROFS: i32 = 30;

/// Something that fails: a call (`read`, `write`, `sync` or `change`), the end of the names of
/// the files that it fails on (`*`: all), and the error's number.
pub type Fault = (&'static str, &'static str, i32);

/// The disk of a server's folder.
pub struct FailingDisk {
    folder: TempDir,
}

impl FailingDisk {
    /// Compile the library; nothing fails.
    pub fn new() -> FailingDisk {
        let folder = tempfile::Builder::new().prefix("failing-disk-").tempdir();
        let disk = FailingDisk { folder: folder.expect("a folder can be made") };
        let status = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o"])
            .arg(disk.file("failing_disk.so"))
            .arg(binaries::root().join("tests/src/failing_disk.c"))
            .arg("-ldl")
            .status()
            .expect("there is a C compiler, cc");
        assert!(status.success(), "failing_disk.c does not compile");
        disk
    }

    /// The environment of a server on this disk.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |name: &str| self.file(name).to_str().expect("UTF-8").to_owned();
        vec![
            ("LD_PRELOAD".to_owned(), text("failing_disk.so")),
            ("FAILING_DISK_UNDER".to_owned(), "/data/".to_owned()),
            ("FAILING_DISK_FAULTS".to_owned(), text("faults")),
        ]
    }

    /// What fails from now on, and nothing else.
    pub fn fail(&self, faults: &[Fault]) {
        let lines = faults.iter().map(|(call, name, error)| format!("{call} {name} {error}\n"));
        // Replaced as a whole: the process reads it at any time.
        fs::write(self.file("next"), lines.collect::<String>()).expect("written");
        fs::rename(self.file("next"), self.file("faults")).expect("renamed");
    }

    /// Nothing fails from now on.
    pub fn mend(&self) {
        self.fail(&[]);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Default for FailingDisk {
    fn default() -> Self {
        Self::new()
    }
}
