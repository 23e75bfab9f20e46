//! All connections: what each is doing and since when, which of them end when, and which make room
//! for new ones.
//!
//! A connection is idle (nothing of a request has come), sends the head of a request, or is being
//! answered. One sweep a second looks at all of them, so that a request costs no timer of its own.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long the head of a request may take from its first byte on. A client sends it in one piece.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection may be kept without a request: longer than clients keep them (Keystone's
/// session 30 s, nginx 60 s), so that it is the client that closes and no request gets lost.
const IDLE: Duration = Duration::from_secs(75);
/// How long a client may take nothing of an answer that waits for it.
const STALLED: Duration = Duration::from_secs(30);
/// How long either may last on a connection of the reserve, where the next one waits.
const RESERVE_PATIENCE: Duration = Duration::from_secs(2);
/// The head of an honest request takes less than this, even from far away. One that takes longer
/// makes room for a new connection when there is no other.
const SUSPECT: Duration = Duration::from_secs(1);
/// Connections beyond the limit, for `/healthz`, `/readyz` and `/metrics` only: a probe, a scraper
/// and an operator each open a few.
const RESERVE: usize = 32;
/// Bytes of answers that wait for their clients, all connections together. Beyond this the
/// connection that has taken nothing for longest ends, and the next.
const UNSENT: u64 = 128 * 1024 * 1024;
/// How often all connections are looked at.
pub(super) const SWEEP: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Answering,
}

/// Why the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The head of a request took too long.
    Head,
    /// No request came.
    Idle,
    /// The client took nothing of its answer.
    Stalled,
    /// Others needed the room.
    Crowded,
}

const REASONS: [(Reason, &str); 4] = [
    (Reason::Head, "head"),
    (Reason::Idle, "idle"),
    (Reason::Stalled, "stalled"),
    (Reason::Crowded, "crowded"),
];

/// Marks the requests of a connection of the reserve.
#[derive(Clone, Copy, Debug)]
pub struct Crowded;

/// One connection.
pub(super) struct Connection {
    number: u64,
    /// Whether it is beyond the limit.
    pub(super) reserve: bool,
    began: Instant,
    /// The phase in the lowest two bits, above them since when, in milliseconds.
    phase: AtomicU64,
    /// Since when nothing could be written, in milliseconds, plus 1; 0: nothing waits.
    stalled: AtomicU64,
    /// Bytes of answers that were not written yet.
    unsent: AtomicU64,
    streams: AtomicBool,
    closing: Notify,
}

impl Connection {
    fn new(number: u64, reserve: bool, began: Instant) -> Self {
        let new = Self {
            number,
            reserve,
            began,
            phase: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            streams: AtomicBool::new(false),
            closing: Notify::new(),
        };
        new.enter(Phase::Idle);
        new
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(self.now() << 2 | phase as u64, Ordering::Relaxed);
    }

    fn phase(&self) -> (Phase, u64) {
        let value = self.phase.load(Ordering::Relaxed);
        let phase = match value & 3 {
            0 => Phase::Idle,
            1 => Phase::Head,
            _ => Phase::Answering,
        };
        (phase, value >> 2)
    }

    /// Something came.
    pub(super) fn has_read(&self) {
        if self.phase().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// A request is whole but for its body.
    pub(super) fn answers(&self) {
        self.enter(Phase::Answering);
    }

    /// There is an answer of so many bytes, as far as that is known.
    pub(super) fn owes(&self, bytes: u64) {
        self.unsent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The answer is one that goes on.
    pub(super) fn has_stream(&self) {
        self.streams.store(true, Ordering::Relaxed);
    }

    /// Whether an answer was one that goes on.
    pub(super) fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    /// The answer is handed over for writing, to its end.
    pub(super) fn has_answered(&self) {
        self.enter(Phase::Idle);
    }

    /// The client took so many bytes.
    pub(super) fn has_written(&self, bytes: usize) {
        // Heads of answers count as well, so that what is left is never too high for long.
        let unsent = self.unsent.load(Ordering::Relaxed);
        if unsent > 0 {
            self.unsent.store(unsent.saturating_sub(bytes as u64), Ordering::Relaxed);
        }
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        }
        if self.phase().0 == Phase::Idle {
            self.enter(Phase::Idle);
        }
    }

    /// The client takes nothing at present.
    pub(super) fn cannot_write(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(self.now() + 1, Ordering::Relaxed);
        }
    }

    /// Ready when the connection is to end.
    pub(super) async fn closed(&self) {
        self.closing.notified().await;
    }

    /// How long the client has taken nothing, in milliseconds.
    fn stalled_for(&self, now: u64) -> Option<u64> {
        let since = self.stalled.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_sub(since))
    }

    fn overdue(&self, now: u64) -> Option<Reason> {
        let limit = |usual| millis(if self.reserve { RESERVE_PATIENCE } else { usual });
        if let Some(stalled) = self.stalled_for(now) {
            return (stalled > limit(STALLED)).then_some(Reason::Stalled);
        }
        let (phase, since) = self.phase();
        let lasted = now.saturating_sub(since);
        match phase {
            Phase::Head if lasted > limit(HEAD) => Some(Reason::Head),
            Phase::Idle if lasted > limit(IDLE) => Some(Reason::Idle),
            _ => None,
        }
    }

    /// Whether it may make room, and in which order: idle ones first, then those that send a head
    /// slowly, each by how long.
    fn rank(&self, now: u64) -> Option<(bool, u64)> {
        let (phase, since) = self.phase();
        match phase {
            Phase::Idle if self.stalled_for(now).is_none() => Some((false, since)),
            Phase::Head if now.saturating_sub(since) > millis(SUSPECT) => Some((true, since)),
            _ => None,
        }
    }
}

/// All connections of a server.
pub struct Connections {
    began: Instant,
    most: usize,
    table: Mutex<Table>,
    closed: [AtomicU64; REASONS.len()],
}

#[derive(Default)]
struct Table {
    next: u64,
    served: HashMap<u64, Arc<Connection>>,
    reserve: HashMap<u64, Arc<Connection>>,
}

/// A connection's place; free again when dropped.
pub(super) struct Place {
    all: Arc<Connections>,
    pub(super) connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.all.table.lock();
        let number = self.connection.number;
        table.served.remove(&number);
        table.reserve.remove(&number);
    }
}

impl Connections {
    /// Room for so many connections, and the reserve.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            began: Instant::now(),
            most: most.max(1),
            table: Mutex::default(),
            closed: Default::default(),
        }
    }

    /// A place for a new connection. If all are taken, the connection that has been idle for
    /// longest makes room, else the one that has been sending a head for longest; else the place
    /// is in the reserve. `None`: the reserve is taken as well, by requests being answered.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Place> {
        let now = millis(self.began.elapsed());
        let mut table = self.table.lock();
        if table.served.len() >= self.most {
            let victim = first_to_go(&table.served, now);
            self.end(victim.and_then(|number| table.served.remove(&number)));
        }
        let reserve = table.served.len() >= self.most;
        if reserve && table.reserve.len() >= RESERVE {
            let oldest = table.reserve.values().filter(|it| it.phase().0 != Phase::Answering);
            let number = oldest.map(|it| it.number).min()?;
            self.end(table.reserve.remove(&number));
        }
        table.next += 1;
        let connection = Arc::new(Connection::new(table.next, reserve, self.began));
        let places = if reserve { &mut table.reserve } else { &mut table.served };
        places.insert(connection.number, Arc::clone(&connection));
        Some(Place { all: Arc::clone(self), connection })
    }

    /// Ends the connection that can best be spared, such as for want of file descriptors.
    pub(super) fn make_room(&self) {
        let now = millis(self.began.elapsed());
        let mut table = self.table.lock();
        let victim = first_to_go(&table.served, now);
        self.end(victim.and_then(|number| table.served.remove(&number)));
    }

    fn end(&self, victim: Option<Arc<Connection>>) {
        if let Some(connection) = victim {
            self.close(&connection, Reason::Crowded);
        }
    }

    fn close(&self, connection: &Connection, reason: Reason) {
        self.closed[reason as usize].fetch_add(1, Ordering::Relaxed);
        connection.closing.notify_one();
    }

    /// Ends what is overdue, and what waits for longest if answers take too much memory.
    pub(super) fn sweep(&self) {
        let now = millis(self.began.elapsed());
        let table = self.table.lock();
        let mut unsent = 0;
        let mut stalled = Vec::new();
        for connection in table.served.values().chain(table.reserve.values()) {
            let waits = connection.unsent.load(Ordering::Relaxed);
            if let Some(reason) = connection.overdue(now) {
                self.close(connection, reason);
                continue;
            }
            unsent += waits;
            if let Some(lasted) = connection.stalled_for(now).filter(|_| waits > 0) {
                stalled.push((lasted, waits, connection));
            }
        }
        if unsent > UNSENT {
            stalled.sort_by_key(|(lasted, ..)| *lasted);
            while unsent > UNSENT
                && let Some((_, waits, connection)) = stalled.pop()
            {
                self.close(connection, Reason::Stalled);
                unsent = unsent.saturating_sub(waits);
            }
        }
    }

    /// Bytes of answers that wait for their clients.
    pub fn unsent(&self) -> u64 {
        let table = self.table.lock();
        let all = table.served.values().chain(table.reserve.values());
        all.map(|connection| connection.unsent.load(Ordering::Relaxed)).sum()
    }

    /// Writes how many there are, by what they are doing, and how many the server ended, by reason.
    pub fn write(&self, out: &mut String) {
        let table = self.table.lock();
        let mut counts = [0_u64; 3];
        for connection in table.served.values() {
            counts[connection.phase().0 as usize] += 1;
        }
        let reserve = table.reserve.len();
        drop(table);
        // Writing to a string cannot fail, here and below.
        let _ =
            writeln!(out, "# HELP allocd_connections HTTP connections, by what they are doing.");
        let _ = writeln!(out, "# TYPE allocd_connections gauge");
        for (state, count) in ["idle", "head", "answering"].iter().zip(counts) {
            let _ = writeln!(out, "allocd_connections{{state=\"{state}\"}} {count}");
        }
        let _ = writeln!(out, "allocd_connections{{state=\"reserve\"}} {reserve}");
        let name = "allocd_connections_closed_total";
        let _ = writeln!(out, "# HELP {name} Connections that the server ended, by reason.");
        let _ = writeln!(out, "# TYPE {name} counter");
        for (reason, told) in REASONS {
            let count = self.closed[reason as usize].load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}{{reason=\"{told}\"}} {count}");
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("most", &self.most).finish_non_exhaustive()
    }
}

/// The connection that makes room for another.
fn first_to_go(served: &HashMap<u64, Arc<Connection>>, now: u64) -> Option<u64> {
    let ranked = served.values().filter_map(|it| Some((it.rank(now)?, it.number)));
    ranked.min().map(|(_, number)| number)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(connection: &Connection) -> bool {
        use std::future::Future;
        use std::task::{Context, Poll, Waker};
        let mut closed = std::pin::pin!(connection.closed());
        closed.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn idle_ones_make_room_first_and_then_there_is_the_reserve() {
        let all = Arc::new(Connections::new(2));
        let (first, second) = (all.admit().expect("room"), all.admit().expect("room"));
        first.connection.has_read();
        first.connection.answers();
        let third = all.admit().expect("room");
        assert!(!third.connection.reserve && is_closed(&second.connection));
        assert!(!is_closed(&first.connection));
        third.connection.answers();
        let fourth = all.admit().expect("the reserve");
        assert!(fourth.connection.reserve && !is_closed(&third.connection));
        first.connection.has_answered();
        let fifth = all.admit().expect("room");
        assert!(!fifth.connection.reserve && is_closed(&first.connection));
        drop((third, fifth));
        assert!(!all.admit().expect("room").connection.reserve);
    }

    #[test]
    fn the_oldest_of_the_reserve_makes_room_for_the_next_probe() {
        let all = Arc::new(Connections::new(1));
        let busy = all.admit().expect("room");
        busy.connection.answers();
        let places: Vec<Place> = (0..RESERVE).map(|_| all.admit().expect("the reserve")).collect();
        assert!(places.iter().all(|place| place.connection.reserve));
        let next = all.admit().expect("the reserve");
        assert!(next.connection.reserve && is_closed(&places[0].connection));
        assert!(!is_closed(&places[1].connection));
    }

    #[test]
    fn each_phase_has_its_limit() {
        let connection = Connection::new(1, false, Instant::now());
        let later = |time: Duration| connection.overdue(millis(time) + 1_000);
        assert_eq!((later(IDLE / 2), later(IDLE)), (None, Some(Reason::Idle)));
        connection.has_read();
        assert_eq!((later(HEAD / 2), later(HEAD)), (None, Some(Reason::Head)));
        connection.answers();
        assert_eq!(later(IDLE * 10), None);
        connection.cannot_write();
        assert_eq!((later(STALLED / 2), later(STALLED)), (None, Some(Reason::Stalled)));
        connection.has_written(1);
        assert_eq!(later(IDLE * 10), None);
    }

    #[test]
    fn too_much_that_nobody_takes_ends_who_took_nothing_for_longest() {
        let all = Arc::new(Connections::new(8));
        let (slow, other) = (all.admit().expect("room"), all.admit().expect("room"));
        for place in [&slow, &other] {
            place.connection.answers();
            place.connection.owes(UNSENT * 2 / 3);
        }
        slow.connection.cannot_write();
        all.sweep();
        assert!(is_closed(&slow.connection) && !is_closed(&other.connection));
        assert_eq!(all.unsent(), UNSENT * 2 / 3 * 2);
    }
}
