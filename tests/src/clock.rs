//! A server whose clock a test sets: a small library (`clock.c`) is preloaded. Linux only.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::binaries;

/// A clock that can jump.
pub struct TestClock {
    folder: TempDir,
}

impl TestClock {
    /// Compile the library; the clock is right.
    pub fn new() -> TestClock {
        let folder = tempfile::Builder::new().prefix("clock-").tempdir();
        let clock = TestClock { folder: folder.expect("a folder can be made") };
        let status = Command::new("cc")
            .args([
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O2",
                "-shared",
                "-fPIC",
                "-D_GNU_SOURCE",
                "-o",
            ])
            .arg(clock.file("clock.so"))
            .arg(binaries::root().join("tests/src/clock.c"))
            .arg("-ldl")
            .status()
            .expect("there is a C compiler, cc");
        assert!(status.success(), "clock.c does not compile");
        clock.set(0);
        clock
    }

    /// The environment of a process with this clock.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |name: &str| self.file(name).to_str().expect("UTF-8").to_owned();
        vec![("LD_PRELOAD".to_owned(), text("clock.so")), ("TEST_CLOCK".to_owned(), text("offset"))]
    }

    /// By how many seconds the clock is off from now on.
    pub fn set(&self, seconds: i64) {
        // Written in place: the process has the file mapped.
        let mut options = fs::OpenOptions::new();
        options.create(true).write(true).truncate(false);
        let mut file = options.open(self.file("offset")).expect("a file");
        file.write_all(&seconds.to_ne_bytes()).expect("written");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}
