//! Where the programs under test are.
//!
//! Cargo tells a package only about its own binaries, and these belong to other
//! packages. So they are found beside the test's own executable, and built first:
//! a stale server would make a test pass or fail for the code of yesterday.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder with `allocd` and `replay`.
///
/// `ALLOCD_BINARIES` names it where they have been built already (the test command
/// does so once for all tests); otherwise `cargo build` runs, once a process.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| match env::var_os("ALLOCD_BINARIES") {
        Some(folder) => PathBuf::from(folder),
        None => build(),
    })
}

/// The server.
pub fn allocd() -> PathBuf {
    existing("allocd")
}

/// The tool that rebuilds, explains and verifies.
pub fn replay() -> PathBuf {
    existing("replay")
}

/// The checkout's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn existing(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(path.is_file(), "there is no {}: cargo build --workspace --bins", path.display());
    path
}

/// Build the whole workspace's binaries, as the test command does: with fewer packages
/// selected, cargo could choose other features and compile RocksDB once more.
fn build() -> PathBuf {
    let executable = env::current_exe().expect("the test knows its own path");
    // <target>/debug/deps/<test>
    let profile = executable.ancestors().nth(2).expect("a test lies in target/debug/deps");
    let target = profile.parent().expect("a profile lies in target");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--workspace", "--bins", "--target-dir"])
        .arg(target)
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the programs under test do not build");
    profile.to_path_buf()
}
