//! A bounded queue in which callers take turns. One that sends more than its share waits behind
//! itself, and when there is no room it is turned away first.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::inboxes::Caller;

/// Callers that are kept apart; more share one place. So that their names stay small, and looking
/// for the longest of their queues is quick.
const CALLERS: usize = 256;

/// What may wait and be in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Requests in hand at a time.
    pub(super) running: usize,
    /// Requests that wait.
    pub(super) waiting: usize,
    /// Bytes of all of them together.
    pub(super) bytes: usize,
}

/// A request that has its turn. It is given back with [`FairQueue::done`].
#[derive(Debug)]
pub(super) struct Turn {
    caller: Caller,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    bytes: usize,
}

/// One caller's.
#[derive(Debug)]
struct Line<T> {
    waiting: VecDeque<Waiting<T>>,
    running: usize,
}

/// The queue.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    bounds: Bounds,
    lines: FxHashMap<Caller, Line<T>>,
    /// Callers with something that waits, next first.
    turns: VecDeque<Caller>,
    waiting: usize,
    running: usize,
    bytes: usize,
}

impl<T> FairQueue<T> {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            lines: FxHashMap::default(),
            turns: VecDeque::new(),
            waiting: 0,
            running: 0,
            bytes: 0,
        }
    }

    /// Takes a request in. Where that is too much, the newest of whoever has most waiting are
    /// turned away; that may be this one.
    pub(super) fn push(&mut self, caller: Caller, item: T, bytes: usize) -> Vec<T> {
        let caller = match self.lines.contains_key(&caller) || self.lines.len() < CALLERS {
            true => caller,
            false => Caller::others(),
        };
        let line = self
            .lines
            .entry(caller.clone())
            .or_insert_with(|| Line { waiting: VecDeque::new(), running: 0 });
        if line.waiting.is_empty() {
            self.turns.push_back(caller);
        }
        line.waiting.push_back(Waiting { item, bytes });
        self.waiting += 1;
        self.bytes += bytes;
        let mut away = Vec::new();
        while self.waiting > self.bounds.waiting || self.bytes > self.bounds.bytes {
            match self.newest_of_the_longest() {
                Some(item) => away.push(item),
                None => break,
            }
        }
        away
    }

    fn newest_of_the_longest(&mut self) -> Option<T> {
        let by_bytes = self.bytes > self.bounds.bytes;
        let size = |line: &Line<T>| match by_bytes {
            true => line.waiting.iter().map(|it| it.bytes).sum(),
            false => line.waiting.len(),
        };
        let some = self.lines.iter().filter(|(_, line)| !line.waiting.is_empty());
        let longest = some.max_by_key(|(_, line)| size(line)).map(|(caller, _)| caller.clone())?;
        let line = self.lines.get_mut(&longest)?;
        let last = line.waiting.pop_back()?;
        if line.waiting.is_empty() {
            self.turns.retain(|caller| *caller != longest);
        }
        self.waiting -= 1;
        self.bytes -= last.bytes;
        self.tidy(&longest);
        Some(last.item)
    }

    /// The next request whose turn it is, if another may be in hand. A caller has at most half of
    /// all turns, so that the others never wait for a caller whose requests take long.
    pub(super) fn pop(&mut self) -> Option<(T, Turn)> {
        if self.running >= self.bounds.running {
            return None;
        }
        let share = self.bounds.running.div_ceil(2);
        for _ in 0..self.turns.len() {
            let caller = self.turns.pop_front()?;
            let Some(line) = self.lines.get_mut(&caller) else { continue };
            if line.running >= share {
                self.turns.push_back(caller);
                continue;
            }
            let Some(Waiting { item, bytes }) = line.waiting.pop_front() else { continue };
            line.running += 1;
            if !line.waiting.is_empty() {
                self.turns.push_back(caller.clone());
            }
            self.waiting -= 1;
            self.running += 1;
            return Some((item, Turn { caller, bytes }));
        }
        None
    }

    /// Gives a turn back.
    pub(super) fn done(&mut self, turn: &Turn) {
        self.running = self.running.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(turn.bytes);
        if let Some(line) = self.lines.get_mut(&turn.caller) {
            line.running = line.running.saturating_sub(1);
        }
        self.tidy(&turn.caller);
    }

    /// Whether nothing is in hand.
    pub(super) fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// Takes out everything that waits.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let mut all = Vec::new();
        self.turns.clear();
        for line in self.lines.values_mut() {
            for Waiting { item, bytes } in std::mem::take(&mut line.waiting) {
                self.bytes -= bytes;
                all.push(item);
            }
        }
        self.waiting = 0;
        self.lines.retain(|_, line| line.running > 0);
        all
    }

    /// Forgets a caller that has nothing here.
    fn tidy(&mut self, caller: &Caller) {
        let nothing = |line: &Line<T>| line.waiting.is_empty() && line.running == 0;
        if self.lines.get(caller).is_some_and(nothing) {
            self.lines.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nats::inboxes::Inboxes;

    const BOUNDS: Bounds = Bounds { running: 2, waiting: 10, bytes: 1_000 };

    fn caller(name: &str) -> Caller {
        Inboxes::default().caller(Some(&format!("_INBOX.{name}.1")), None)
    }

    fn queue() -> FairQueue<&'static str> {
        FairQueue::new(BOUNDS)
    }

    #[test]
    fn callers_take_turns() {
        let mut queue = queue();
        for _ in 0..5 {
            assert!(queue.push(caller("flood"), "flood", 1).is_empty());
        }
        assert!(queue.push(caller("quiet"), "quiet", 1).is_empty());
        let (first, turn) = queue.pop().expect("one");
        assert_eq!(first, "flood");
        assert_eq!(queue.pop().expect("another").0, "quiet", "the second turn is another's");
        assert!(queue.pop().is_none(), "two at a time");
        queue.done(&turn);
        assert_eq!(queue.pop().expect("the next").0, "flood");
    }

    #[test]
    fn one_caller_never_has_all_turns() {
        let mut queue = queue();
        for _ in 0..5 {
            queue.push(caller("flood"), "flood", 1);
        }
        let (_, turn) = queue.pop().expect("one");
        assert!(queue.pop().is_none(), "half of two");
        queue.push(caller("quiet"), "quiet", 1);
        assert_eq!(queue.pop().expect("the other half").0, "quiet");
        queue.done(&turn);
        assert!(queue.pop().is_some());
    }

    #[test]
    fn who_has_most_waiting_is_turned_away_first() {
        let mut queue = queue();
        for _ in 0..10 {
            assert!(queue.push(caller("flood"), "flood", 1).is_empty());
        }
        assert_eq!(queue.push(caller("quiet"), "quiet", 1), ["flood"]);
        assert_eq!(queue.push(caller("flood"), "flood", 1), ["flood"]);
        assert!(queue.push(caller("large"), "large", 2_000).contains(&"large"), "by bytes");
        let mut left = 0;
        while let Some((_, turn)) = queue.pop() {
            left += 1;
            queue.done(&turn);
        }
        assert_eq!(left, 10);
        assert_eq!(
            (queue.bytes, queue.lines.len(), queue.turns.len()),
            (0, 0, 0),
            "all is given back"
        );
    }

    #[test]
    fn names_of_callers_are_bounded() {
        let mut queue: FairQueue<usize> = FairQueue::new(Bounds { waiting: 10_000, ..BOUNDS });
        for number in 0..5_000 {
            assert!(queue.push(caller(&number.to_string()), number, 0).is_empty());
        }
        assert!(queue.lines.len() <= CALLERS + 1, "{}", queue.lines.len());
        assert_eq!(queue.drain().len(), 5_000);
        assert_eq!(queue.lines.len(), 0);
    }
}
