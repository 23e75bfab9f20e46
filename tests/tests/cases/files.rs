//! The ledger's files are its user's alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use system_tests::server::Server;
use system_tests::topology;

/// All paths below a directory, itself included, with what others may do with each.
fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o077;
    let mut found = vec![(dir.to_owned(), mode(dir))];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(modes(&path)),
            false => found.push((path.clone(), mode(&path))),
        }
    }
    found
}

#[test]
fn other_users_can_neither_read_nor_change_a_ledger_old_or_new() {
    let mut server = Server::start();
    topology::provider(&server.client(), "host", &[("VCPU", 8)]);
    // With a checkpoint and table files.
    server.restart();
    server.kill();
    let found = modes(&server.data_dir());
    assert!(found.len() > 8, "{found:?}");
    assert!(found.iter().all(|(_, mode)| *mode == 0), "{found:?}");

    // A ledger of an earlier version was open to all.
    for (path, _) in found {
        let open = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
    }
    server.restart();
    let found = modes(&server.data_dir());
    assert!(found.iter().all(|(_, mode)| *mode == 0), "{found:?}");
}
