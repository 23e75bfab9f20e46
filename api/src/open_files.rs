//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors besides those of connections: RocksDB's files, NATS, logs, and some to spare.
const OTHERS: u64 = ledger::memory::OPEN_FILES as u64 + 256;
/// The least that is left for connections, whatever the limit.
const FEWEST: u64 = 64;

/// Raises the limit of open files as far as `connections` need it and the system allows. Returns
/// how many connections that leaves room for: beyond it the server could accept none, not even
/// those that ask for its health.
pub fn raise(connections: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = OTHERS.saturating_add(connections as u64);
    let current = limit.current.unwrap_or(u64::MAX);
    let possible = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let mut allowed = current;
    if current < possible {
        let wanted = Rlimit { current: Some(possible), maximum: limit.maximum };
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => allowed = possible,
            Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
        }
    }
    let room = room(allowed);
    if room >= connections as u64 {
        return connections;
    }
    tracing::warn!(
        open_files = allowed,
        connections = room,
        "the limit of open files allows fewer connections than are configured"
    );
    usize::try_from(room).unwrap_or(connections)
}

/// Connections that a limit of open files leaves room for.
fn room(allowed: u64) -> u64 {
    allowed.saturating_sub(OTHERS).max(FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_need_is_left_to_them() {
        assert_eq!(room(OTHERS + 4_096), 4_096);
        assert_eq!(room(1_024), 1_024 - OTHERS);
        assert_eq!(room(100), FEWEST);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raise(10), 10);
        assert!(raise(usize::MAX >> 1) as u64 <= most);
    }
}
