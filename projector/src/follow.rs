//! Following a ledger: one thread takes what became durable to each view.

use crate::fold::{Batch, Projection, ProjectionError, READ_RECORDS, apply_records, decode};
use crate::published::Published;
use ledger::Ledger;
use ledger::event::Event;
use ledger::panics::{Place, caught};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tokio::sync::Notify;

/// What readers and the follower share of one view.
pub(crate) struct Shared<P> {
    pub(crate) published: Published<P>,
    pub(crate) paused: AtomicBool,
    pub(crate) stopped: Mutex<Option<Stopped>>,
}

/// Why and where a view has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The event that it could not fold, as far as that is known.
    pub(crate) at: Option<u64>,
    /// Why.
    pub(crate) why: String,
}

impl<P: Projection> Shared<P> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            published: Published::new(),
            paused: AtomicBool::new(false),
            stopped: Mutex::new(None),
        })
    }

    fn stop(&self, error: &ProjectionError) {
        tracing::error!(view = P::NAME, %error, "the view has stopped; the ledger goes on");
        *self.stopped.lock() = Some(Stopped { at: error.sequence(), why: error.to_string() });
    }
}

/// One view as the follower sees it.
pub(crate) trait Follower: Send {
    /// Takes the view to `durable`, or as far as a call may go. Tells whether more is to be done.
    fn advance(&mut self, ledger: &Ledger, durable: u64) -> bool;
}

/// Where the first view comes from.
type First<P> = crossbeam_channel::Receiver<Result<P, ProjectionError>>;

/// A view that is built in a thread of its own and then follows.
pub(crate) struct Follow<P> {
    shared: Arc<Shared<P>>,
    wake: Arc<Notify>,
    view: Option<P>,
    /// While it has stopped: up to which event it was looked whether it may go on.
    looked: u64,
    first: First<P>,
    builder: Option<JoinHandle<()>>,
}

impl<P: Projection> Follow<P> {
    /// Starts to build the view of the ledger's state; `wake` tells the follower when it is there.
    pub(crate) fn start(
        ledger: &Ledger,
        shared: &Arc<Shared<P>>,
        wake: Arc<Notify>,
    ) -> std::io::Result<Self> {
        let (first, builder) = Self::build(ledger, &wake)?;
        let shared = Arc::clone(shared);
        Ok(Self { shared, wake, view: None, looked: 0, first, builder: Some(builder) })
    }

    fn build(ledger: &Ledger, wake: &Arc<Notify>) -> std::io::Result<(First<P>, JoinHandle<()>)> {
        let (send, first) = crossbeam_channel::bounded(1);
        let (ledger, wake) = (ledger.clone(), Arc::clone(wake));
        let builder =
            std::thread::Builder::new().name(format!("view-{}", P::NAME)).spawn(move || {
                let built = guarded(0, || P::from_state(&ledger.view(), &*ledger.reader()));
                // The follower may be gone already: then nobody needs the view.
                let _ = send.send(built);
                wake.notify_one();
            })?;
        Ok((first, builder))
    }

    /// Where the view has stopped: whether it was put on record since that this event may be passed
    /// over (J17). Then the view is made anew from the ledger's state, which has everything in it.
    fn go_on(&mut self, ledger: &Ledger, durable: u64) -> Result<(), ProjectionError> {
        let Some(stopped) = self.shared.stopped.lock().clone() else { return Ok(()) };
        let from = self.looked.max(stopped.at.unwrap_or(durable)) + 1;
        let records = match from <= durable {
            true => ledger.reader().read(from, READ_RECORDS)?,
            false => return Ok(()),
        };
        self.looked = records.last().map_or(self.looked, |record| record.header.sequence);
        let allowed = records.iter().filter(|record| record.header.kind == "EventSkipped");
        let ours = |event| match event {
            Event::EventSkipped(it) => it.view == P::NAME && Some(it.sequence) == stopped.at,
            _ => false,
        };
        if allowed.filter_map(|record| record.event().ok()).any(ours) {
            tracing::warn!(view = P::NAME, event = ?stopped.at, "passed over, as is on record");
            if let Ok((first, builder)) = Self::build(ledger, &self.wake) {
                (self.first, self.builder, self.view) = (first, Some(builder), None);
                *self.shared.stopped.lock() = None;
            }
        }
        Ok(())
    }

    fn rests(&self) -> bool {
        self.shared.paused.load(Ordering::Acquire) || self.shared.stopped.lock().is_some()
    }

    fn take_first(&mut self) -> Result<(), ProjectionError> {
        if let (None, Ok(built)) = (&self.view, self.first.try_recv()) {
            let view = built?;
            self.shared.published.publish(view.clone());
            self.view = Some(view);
        }
        Ok(())
    }

    /// One step: a few batches from memory, or a page of the log. Tells whether it got anywhere.
    fn step(&mut self, ledger: &Ledger, durable: u64) -> Result<bool, ProjectionError> {
        self.take_first()?;
        let Some(view) = &self.view else {
            return Ok(false);
        };
        let at = view.sequence();
        if at >= durable {
            return Ok(false);
        }
        let mut next = view.clone();
        guarded(at, || catch_up(&mut next, ledger, durable))?;
        if next.sequence() == at {
            return Ok(false);
        }
        self.shared.published.publish(next.clone());
        self.view = Some(next);
        Ok(true)
    }
}

impl<P> Drop for Follow<P> {
    fn drop(&mut self) {
        // The builder uses the ledger too: whoever waits for the follower's end waits for it.
        if let Some(builder) = self.builder.take()
            && builder.join().is_err()
        {
            tracing::error!("a view's builder panicked");
        }
    }
}

impl<P: Projection> Follower for Follow<P> {
    fn advance(&mut self, ledger: &Ledger, durable: u64) -> bool {
        if let Err(error) = self.go_on(ledger, durable) {
            tracing::error!(view = P::NAME, %error, "it cannot be looked whether the view may go on");
        }
        if self.rests() {
            return false;
        }
        self.step(ledger, durable).unwrap_or_else(|error| {
            self.shared.stop(&error);
            false
        })
    }
}

fn catch_up<P: Projection>(
    view: &mut P,
    ledger: &Ledger,
    durable: u64,
) -> Result<(), ProjectionError> {
    let from = view.sequence() + 1;
    if let Some(tail) = ledger.tail(from) {
        let batches = tail.batches.iter();
        let batches = batches.map(|it| Batch { records: &it.records, events: &it.events });
        return view.follow_to(&batches.collect::<Vec<_>>(), &tail.state);
    }
    if P::NEEDS_STATE {
        return catch_up_with_state(view, ledger);
    }
    let records = ledger.reader().read(from, READ_RECORDS)?;
    apply_records(view, records, durable).map(drop)
}

/// Takes a view that needs the state from what the log has to the ledger's newest state, or makes
/// it anew from that state where the log has more than is worth reading.
fn catch_up_with_state<P: Projection>(
    view: &mut P,
    ledger: &Ledger,
) -> Result<(), ProjectionError> {
    let (state, reader) = (ledger.view(), ledger.reader());
    let (mut from, to) = (view.sequence() + 1, state.sequence());
    let mut pages = Vec::new();
    while from <= to && to - from < READ_RECORDS as u64 {
        let mut records = reader.read(from, READ_RECORDS)?;
        records.retain(|record| record.header.sequence <= to);
        let Some(last) = records.last() else { break };
        let next = last.header.sequence + 1;
        // The state has in it what this version cannot read.
        let Ok(events) = decode(&records) else { break };
        from = next;
        pages.push((records, events));
    }
    if from <= to {
        *view = P::from_state(&state, &*reader)?;
        return Ok(());
    }
    let batches = pages.iter().map(|(records, events)| Batch { records, events });
    view.follow_to(&batches.collect::<Vec<_>>(), &state)
}

/// Runs a fold; a panic in it is an error of that view and nothing else's.
fn guarded<T>(
    at: u64,
    fold: impl FnOnce() -> Result<T, ProjectionError>,
) -> Result<T, ProjectionError> {
    caught(Place::View, fold)
        .unwrap_or_else(|panic| Err(ProjectionError::Panicked { at, what: panic.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UsageView;
    use ledger::command::{Command, Named, SkipEvent};
    use ledger::log::LogReader;
    use ledger::stamp::{Actor, Stamp};
    use ledger::state::State;
    use ledger::time::{Clock, Timestamp};
    use ledger::{Options, Outcome};

    /// A view that cannot fold the making of one trait.
    #[derive(Clone)]
    struct Fragile(u64);

    const POISON: &str = "CUSTOM_POISON";
    const PANIC: &str = "CUSTOM_PANIC";

    impl Projection for Fragile {
        const NAME: &'static str = "fragile";

        fn from_state(state: &Arc<State>, _: &dyn LogReader) -> Result<Self, ProjectionError> {
            Ok(Self(state.sequence()))
        }

        fn sequence(&self) -> u64 {
            self.0
        }

        fn apply(&mut self, batch: &Batch<'_>) -> Result<(), ProjectionError> {
            for (header, event) in batch.after(self.0)? {
                if matches!(event, Event::TraitCreated(it) if it.name == POISON) {
                    let what = "poison".to_owned();
                    return Err(ProjectionError::Contradiction { sequence: header.sequence, what });
                }
                // A defect that has half-changed the view.
                self.0 = header.sequence;
                assert!(!matches!(event, Event::TraitCreated(it) if it.name == PANIC), "planted");
            }
            Ok(())
        }
    }

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(1)
        }

        fn monotonic(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }

    fn submit(ledger: &Ledger, command: Command) -> u64 {
        let stamp = Stamp {
            seed: rand::random(),
            received_at: Timestamp::from_micros(1),
            actor: Actor { user: "operator".into(), ..Actor::default() },
            request_id: None,
            command_id: None,
        };
        let answer = ledger.submit_blocking(vec![command], stamp).expect("an answer");
        assert!(matches!(answer.outcome, Outcome::Accepted { .. }), "{:?}", answer.outcome);
        answer.sequence
    }

    fn make_trait(ledger: &Ledger, name: &str) -> u64 {
        submit(ledger, Command::CreateTrait(Named { name: name.into() }))
    }

    fn skip(view: &str, sequence: u64) -> Command {
        let reason = "a defect of the view".into();
        Command::SkipEvent(SkipEvent { view: view.into(), sequence, reason })
    }

    /// A view that panics stops alone, as it was before, and says what the panic said.
    #[test]
    fn a_view_that_panics_stops_alone_with_its_cause() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options { free_space: ledger::FreeSpace::Bytes(0), ..Options::default() };
        let ledger = Ledger::open(dir.path(), options, Arc::new(Still), [7; 16]).expect("a ledger");
        let fragile = Shared::<Fragile>::new();
        let wake = Arc::new(Notify::new());
        let mut follow = Follow::start(&ledger, &fragile, wake).expect("a thread");
        while fragile.published.newest().is_none() {
            follow.advance(&ledger, ledger.view().sequence());
            std::thread::yield_now();
        }
        let before = make_trait(&ledger, "CUSTOM_A");
        while follow.advance(&ledger, before) {}
        let poison = make_trait(&ledger, PANIC);
        assert!(!follow.advance(&ledger, poison));
        let stopped = fragile.stopped.lock().clone().expect("it has stopped");
        assert!(stopped.at == Some(poison) && stopped.why.contains("planted"), "{stopped:?}");
        assert_eq!(fragile.published.newest().map(|view| view.sequence()), Some(before));
        drop(follow);
        ledger.close();
    }

    /// Case J17: a view that cannot fold an event stops there with its cause, others go on, and it
    /// goes on itself only once somebody put that on record.
    #[test]
    fn j17_a_view_stops_at_a_poison_event_and_passes_over_it_only_on_record() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options { free_space: ledger::FreeSpace::Bytes(0), ..Options::default() };
        let ledger = Ledger::open(dir.path(), options, Arc::new(Still), [7; 16]).expect("a ledger");
        let (fragile, usage) = (Shared::<Fragile>::new(), Shared::<UsageView>::new());
        let wake = Arc::new(Notify::new());
        let mut followers: [Box<dyn Follower>; 2] = [
            Box::new(Follow::start(&ledger, &fragile, Arc::clone(&wake)).expect("a thread")),
            Box::new(Follow::start(&ledger, &usage, wake).expect("a thread")),
        ];
        let at = || fragile.published.newest().map(|view| view.sequence());
        let stopped = || fragile.stopped.lock().clone().map(|stopped| stopped.at);
        let mut until = |what: &str, so: &dyn Fn() -> bool| {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !so() {
                assert!(std::time::Instant::now() < deadline, "not in 60 seconds: {what}");
                followers.iter_mut().for_each(|it| {
                    it.advance(&ledger, ledger.view().sequence());
                });
            }
        };
        until("the views are there", &|| at().is_some());
        let before = make_trait(&ledger, "CUSTOM_A");
        until("the view follows", &|| at() == Some(before));
        let poison = make_trait(&ledger, POISON);
        let after = make_trait(&ledger, "CUSTOM_B");
        until("it stops there", &|| stopped() == Some(Some(poison)));
        let seen = || usage.published.newest().map(|view| view.sequence());
        until("the other one goes on", &|| seen() == Some(after));
        assert_eq!(at(), Some(before), "it serves what it has");
        // Neither another view's nor another event's leave is its own.
        submit(&ledger, skip("usage", poison));
        let not_ours = submit(&ledger, skip("fragile", before));
        until("all is seen", &|| seen() == Some(not_ours));
        assert_eq!((at(), stopped()), (Some(before), Some(Some(poison))));
        let leave = submit(&ledger, skip("fragile", poison));
        until("it goes on", &|| at() == Some(leave));
        assert_eq!(stopped(), None);
        let reader = ledger.reader();
        let actor = reader.private(leave).expect("readable").expect("there").actor();
        assert_eq!(actor.expect("an actor").user, "operator");
        drop(followers);
        ledger.close();
    }
}
