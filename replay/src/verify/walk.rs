//! Going through all records in order: chain, gaps, digests, groups, and the fold.

use super::capacity::Capacity;
use super::fetch::{self, Fetched, Item, PrivatePart};
use super::findings::Findings;
use crate::open::Source;
use crate::progress::Progress;
use ledger::event::Event;

use ledger::record::{Hash, Header, Record, RecordError};
use ledger::state::State;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How often the state's invariants are checked on the way, in events.
const INVARIANTS_EVERY: u64 = 1_000_000;

/// The way through the log.
pub(super) struct Walk<'a> {
    source: &'a Source,
    /// Records that were read and checked.
    pub checked: u64,
    /// The state so far; none once something was met that cannot be folded.
    pub state: Option<State>,
    /// What is wrong so far.
    pub findings: Findings,
    next: u64,
    /// The hash of the record before; none: that one could not be read.
    hash: Option<Hash>,
    last: Option<Header>,
    group: Option<(u64, u32)>,
    capacity: Capacity,
    /// Records whose private part is gone, and those that an event says it was erased from.
    bare: BTreeSet<u64>,
    erased: BTreeSet<u64>,
}

impl<'a> Walk<'a> {
    /// At the beginning of the log.
    pub fn new(source: &'a Source) -> Self {
        Self {
            source,
            checked: 0,
            state: Some(State::default()),
            findings: Findings::default(),
            next: 1,
            hash: Some(Hash::default()),
            last: None,
            group: None,
            capacity: Capacity::default(),
            bare: BTreeSet::new(),
            erased: BTreeSet::new(),
        }
    }

    /// Goes to the end that the log had when it was opened.
    pub fn run(&mut self, progress: &mut Progress) {
        let head = self.source.head;
        // A fold that cannot be is a finding here, not a message of the runtime.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        std::thread::scope(|scope| {
            let chunks = fetch::ahead(scope, self.source.reader(), self.next, head.sequence);
            while let Ok(chunk) = chunks.recv() {
                chunk.into_iter().for_each(|item| self.item(item));
                progress.at(self.checked, head.sequence);
                if self.findings.is_full() {
                    break;
                }
            }
        });
        std::panic::set_hook(hook);
        if !self.findings.is_full() {
            self.end();
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            _ if self.findings.is_full() => {}
            Item::Read(fetched) => self.record(*fetched),
            Item::Unreadable(what) => self.unreadable(what),
        }
    }

    fn unreadable(&mut self, what: String) {
        self.wrong(format!("it cannot be read: {what}"));
        self.state = None;
        self.hash = None;
        self.last = None;
        self.group = None;
        self.next += 1;
    }

    fn record(&mut self, fetched: Fetched) {
        let Fetched { record, event, private } = fetched;
        self.follows(&record);
        self.header(&record.header);
        self.group(&record.header);
        self.private(private);
        match event {
            Ok(event) => self.event(&record, &event),
            Err(error) => {
                self.wrong(error.to_string());
                self.state = None;
            }
        }
        self.checked += 1;
        self.hash = Some(record.hash);
        self.acknowledged(&record);
        self.last = Some(record.header);
        self.next += 1;
    }

    /// Place in the chain, and the body's digest.
    fn follows(&mut self, record: &Record) {
        let before = self.hash.unwrap_or(record.header.previous_hash);
        if let Err(error) = record.check_follows(self.next - 1, before) {
            let hint = match error {
                RecordError::Chain { .. } => {
                    format!(
                        "; either it or event {} is not what was written",
                        self.next.saturating_sub(1)
                    )
                }
                _ => String::new(),
            };
            self.wrong(format!("{error}{hint}"));
            // What the record says may be forged: nothing is folded from here on.
            self.state = None;
        }
    }

    /// What must not go back from record to record.
    fn header(&mut self, header: &Header) {
        let Some(last) = &self.last else { return };
        let mut wrong = Vec::new();
        if header.ledger_id != last.ledger_id {
            wrong
                .push(format!("it belongs to ledger {}, not {}", header.ledger_id, last.ledger_id));
        }
        if header.recorded_at < last.recorded_at {
            wrong.push(format!(
                "time goes back from {} to {}",
                last.recorded_at, header.recorded_at
            ));
        }
        if header.epoch < last.epoch {
            wrong.push(format!(
                "the writer's epoch goes back from {} to {}",
                last.epoch, header.epoch
            ));
        }
        wrong.into_iter().for_each(|what| self.wrong(what));
    }

    /// A group is there whole: its events stand side by side and name the same first and count.
    fn group(&mut self, header: &Header) {
        let this = (header.group_first, header.group_count);
        let begins = header.group_first == header.sequence;
        match self.group {
            Some(open) if open != this => {
                self.wrong(format!(
                    "the group of {} events from event {} on is not whole",
                    open.1, open.0
                ));
            }
            None if !begins && self.last.is_some() => {
                self.wrong(format!(
                    "its group begins at event {}, but no group is open",
                    header.group_first
                ));
            }
            _ => {}
        }
        let last = header.group_first.saturating_add(header.group_count.into()).saturating_sub(1);
        if !(header.group_first..=last).contains(&header.sequence) {
            self.wrong(format!(
                "it is outside of its own group, events {} to {last}",
                header.group_first
            ));
        }
        self.group = (header.sequence < last).then_some(this);
    }

    fn private(&mut self, private: PrivatePart) {
        match private {
            PrivatePart::Good => {}
            PrivatePart::Gone => {
                self.bare.insert(self.next);
            }
            PrivatePart::Wrong(what) => self.wrong(what),
        }
    }

    fn event(&mut self, record: &Record, event: &Event) {
        if matches!(event, Event::Genesis(_)) != (self.next == 1) {
            self.wrong("a genesis is the first event, and the first event only".into());
            self.state = None;
        }
        if let Event::Erased(body) = event {
            self.erased.extend(&body.sequences);
        }
        if let Err(what) = self.fold(record, event) {
            self.wrong(format!("it does not follow on the state before it: {what}"));
            self.state = None;
        }
    }

    fn fold(&mut self, record: &Record, event: &Event) -> Result<(), String> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let header = &record.header;
        // The chain is sound, so only a program that decides differently could have written what
        // cannot be folded; that is a finding with a place, like all others.
        let folded = catch_unwind(AssertUnwindSafe(|| {
            state.apply(header.sequence, header.recorded_at, event);
            state.seal(record.hash, header.epoch);
        }));
        folded.map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            text.or(panic.downcast_ref::<&str>().copied())
                .unwrap_or("it cannot be folded")
                .to_owned()
        })?;
        self.capacity.event(state, header.sequence, event);
        if self.group.is_none() {
            self.capacity.group_ends(state, &mut self.findings);
        }
        if header.sequence.is_multiple_of(INVARIANTS_EVERY)
            && let Err(wrong) = state.check_invariants()
        {
            wrong.into_iter().for_each(|what| self.findings.add(header.sequence, what));
        }
        Ok(())
    }

    /// The server remembers the hash of what it acknowledged last.
    fn acknowledged(&mut self, record: &Record) {
        if let Some(acknowledged) = self.source.acknowledged
            && acknowledged.sequence == record.header.sequence
            && acknowledged.hash != record.hash
        {
            self.wrong(format!(
                "it has the hash {}, but the server acknowledged it with the hash {}",
                record.hash, acknowledged.hash
            ));
        }
    }

    /// What must hold at the end.
    fn end(&mut self) {
        let head = self.source.head;
        if self.group.is_some() && self.next > head.sequence {
            self.wrong("the log ends in the middle of a group".into());
        }
        if self.next > head.sequence && self.hash.is_some_and(|hash| hash != head.hash) {
            self.findings
                .add(head.sequence, "its hash is not the one that the log's head names".into());
        }
        if let Some(acknowledged) = self.source.acknowledged
            && acknowledged.sequence > head.sequence
        {
            let (from, to) = (head.sequence + 1, acknowledged.sequence);
            self.findings.add(from, format!("acknowledged events are gone: {from} to {to}"));
        }
        let bare = std::mem::take(&mut self.bare);
        for sequence in bare.difference(&self.erased) {
            let what = "its private part is gone, and no event says that it was erased";
            self.findings.add(*sequence, what.into());
        }
    }

    fn wrong(&mut self, what: String) {
        self.findings.add(self.next, what);
    }
}
